"""RE-RAG's data for a writer of questions: question and answer change places."""

import json
from pathlib import Path

from models.length_batching import IGNORE
from tests.helpers.rerag_data import context_data, fid_rows
from trainers.rerag import ReRagTrainer


def test_a_writer_reads_answers_and_writes_questions(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    rows = fid_rows(12)
    (tmp_path / "fid.json").write_text(json.dumps(rows))
    module = ReRagTrainer(None, str(checkpoints["t5"]), text_format="question_writing", max_tokens=96)
    data = context_data(tmp_path / "fid.json", module, contexts=1, pick="gold", substitution=1.0)
    tokenizer = module.generator.encode.tokenizer
    asked = {row["question"] for row in rows}
    answers = {row["question"]: row["answers"][0] for row in rows}
    assert {one.answer for one in data.validation_sets} <= asked
    assert all(
        one.question.answers == (one.answer,) and one.question.text == answers[one.answer]
        for one in data.validation_sets
    )
    changed = 0
    for epoch in range(2):  # the same questions in every epoch: they are not exchanged twice
        batch = data._collate(epoch, list(range(len(data.questions))), list(range(len(data.questions))))
        targets = tokenizer.batch_decode(
            batch.answers_BA.masked_fill(batch.answers_BA == IGNORE, 0), skip_special_tokens=True
        )
        texts = {cell: tokenizer.decode(ids, skip_special_tokens=True)
                 for bucket in batch.buckets
                 for cell, ids in zip(bucket.cells_M.tolist(), bucket.ids_MT, strict=True)}  # fmt: skip
        for place, target in enumerate(targets):
            assert target in asked
            answer = texts[place].split()[2]
            assert texts[place].startswith(f"answer : {answer} document 1 :")
            assert texts[place].endswith(f"is {answer} .")  # a substituted answer is so in the passage too
            changed += answer != answers[target]
    assert changed > 0
