"""`infer.py score`: write the scores of a sentence encoder into a question file, as a retriever's scores."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from common.errors import DataError
from common.outputs import OutputFile
from common.ranges import Precision
from common.records import Question, passage_id
from datamodules.formats.open_data import first_fields

LAYOUT = "fid"  # the only layout whose passages have scores
QUESTIONS_AT_ONCE = 256  # bounds memory; also the unit in which an interrupted run resumes, and that ranks share


SCORED = OutputFile("`infer.py score`", "a question file with scores", lambda path: "scored_by" in first_fields(path))


def score(
    questions: str, out: Path, encoder: str | None = None, device: str = "auto", precision: Precision = "auto"
) -> None:
    """Write a copy of a question file in which every passage has a score: the encoder's cosine with the question.

    A generator can be trained on these scores (model.relevance retriever), and `evaluate` uses them instead of its own
    cosine. Scores that the file gives already are replaced, so that all are of one kind; all else in the rows stays,
    and each names the encoder as `scored_by`. A stopped run resumes: type it again. Under torchrun all processes share
    the work.

    Args:
        questions: Question file in the layout fid, with passages.
        out: JSON Lines file to write, replaced if this command wrote it.
        encoder: Folder or hub id of the sentence encoder; MiniLM when omitted.
        device: Device of the encoder: auto, cpu or cuda.
        precision: Of the encoder: auto (bf16 where the device has it in hardware), fp32 or bf16.
    """
    from hashlib import sha256

    from common.progress import say, say_facts, track
    from datamodules.formats.reading import check_questions, read_questions
    from datamodules.formats.row_counts import RowCounts
    from harness.indexing.sentence_encoder import SentenceEncoder
    from harness.retrievers.question_passages import cosines
    from harness.runtime.shared_lines import check_unless_shared, write_shared
    from models.pretrained import MINILM

    check_questions(LAYOUT, [questions])
    check_unless_shared(SCORED, out)
    model = SentenceEncoder(encoder or MINILM, device, precision=precision)
    counts = {"questions": 0, "passages": 0, "replaced": 0}
    unusual = RowCounts(without_gold=None)

    def read() -> Iterator[tuple[Question, dict[str, Any]]]:
        for question in read_questions(LAYOUT, questions, counts=unusual):
            yield question, dict(unusual.row)

    def survey() -> tuple[int, dict[str, object]]:
        """Number of questions, and what their lines depend on."""
        hashed = sha256()
        for question, row in track(read(), None, "reading questions"):
            hashed.update(json.dumps(row).encode())
            counts["questions"] += 1
            counts["passages"] += len(row["ctxs"])
            counts["replaced"] += bool(question.scores)
        say_facts(unusual.lines())
        if not counts["passages"]:
            raise DataError(f"{questions}: no question has passages to score. Choose a file with passages (ctxs).")
        return counts["questions"], {
            "encoder": model.recipe, "name": model.name, "dtype": model.dtype, "device": model.device.type,
            "rows": hashed.hexdigest(),
        }  # fmt: skip

    def lines(batch: Sequence[tuple[Question, dict[str, Any]]]) -> list[str]:
        found = cosines([question for question, _ in batch], model)
        for (question, row), cosine_C in zip(batch, found, strict=True):
            score_of = dict(zip((passage.id for passage in question.passages), cosine_C.tolist(), strict=True))
            for item in filter(None, row["ctxs"]):  # one may be null
                score = score_of.get(passage_id(item.get("title") or "", item["text"] or ""))  # none if it is empty
                item["score"] = None if score is None else round(score, 6)
        return [json.dumps({**row, "scored_by": model.name}) for _, row in batch]

    failed = write_shared(SCORED, out, survey, read, QUESTIONS_AT_ONCE, lines, "scoring", lambda each: each[0].id)
    replaced = f"; scores of {counts['replaced']:,} questions were replaced" if counts["replaced"] else ""
    say(
        f"{out}: {counts['passages']:,} passages of {counts['questions']:,} questions scored by the cosine of "
        f"{model.name}{replaced}."
    )
    failed.check()
