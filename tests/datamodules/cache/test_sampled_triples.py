"""DR-RAG's data from stored questions: the same draws, batch for batch, as when all files are in memory."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from common.records import Passage
from datamodules.drrag import DrRagData
from datamodules.examples.data_files import QuestionDataFile
from datamodules.examples.triples import Sampling
from datamodules.formats.mined_negatives import Mined
from datamodules.formats.reading import read_questions
from tests.helpers.layout_rows import MUSIQUE
from tests.helpers.mined_files import write_mined
from tests.helpers.tiny_runs import set_up
from trainers.drrag import DrRagTrainer

SAMPLING = Sampling(1.5, 0.6, 0.5, 2, paired_share=0.5)


@pytest.fixture
def files(hotpot_file: Path, tmp_path: Path) -> Path:
    """Two training files in two layouts, one of which lacks a gold passage; files of mined passages."""
    rows = json.loads(hotpot_file.read_text())
    for row in rows[::5]:
        row["supporting_facts"].append(["not shipped", 0])
    (tmp_path / "hotpot.json").write_text(json.dumps(rows))
    others = [MUSIQUE | {"id": f"3hop__{n}", "question": f"who is name{n} of the film"} for n in range(6)]
    (tmp_path / "musique.jsonl").write_text("".join(json.dumps(row) + "\n" for row in others))
    questions = list(read_questions("hotpotqa", str(tmp_path / "hotpot.json")))
    mined = []
    for number, question in enumerate(questions):
        new = [
            Passage.of(f"m{number}", f"the film of name{number}"),
            Passage.of("n", f"name{number} was born"),
            *question.passages[:1],
        ]
        if number % 2:
            gold = [passage.id for passage in question.gold_passages]
            hits = {gold[0]: [new[0].id, *gold[1:], "unknown"], new[1].id: [new[0].id, gold[0]], "unknown": [gold[0]]}
            mined += [(question.id, Mined([*new, new[0]], hits))]
    write_mined(tmp_path / "mined.jsonl", mined)
    write_mined(tmp_path / "again.jsonl", mined[:4])
    return tmp_path


def read(folder: Path, module: DrRagTrainer, **kept: Any) -> DrRagData:
    """The data of the files, set up for a module."""
    data = DrRagData(
        [QuestionDataFile(str(folder / "hotpot.json"), "hotpotqa"),
            QuestionDataFile(str(folder / "musique.jsonl"), "musique")],
        validation_fraction=0.3, hard_negatives=[str(folder / "mined.jsonl"), str(folder / "again.jsonl")],
        sampling=SAMPLING,
        tokens_per_step=600, tokens_per_validation_batch=500, **kept,
    )  # fmt: skip
    return set_up(data, module)


@pytest.fixture
def module(checkpoints: dict[str, Path]) -> DrRagTrainer:
    return DrRagTrainer(str(checkpoints["bert"]), max_tokens=96).load()


EARLIER = "a14d35fefa61f1f33bce04ec67915ec8bcef2ede02bb9f23bc3ea04d15eafda5"  # of release 0.1 with mined passages


def test_batches_are_those_of_earlier_releases(files: Path, module: DrRagTrainer, large: bool) -> None:
    for _ in range(1 + large):
        data = read(files, module, cache=str(files / "cache"))
        new = {"copies_of_gold_left_out", "questions_cut", "unusual_rows"}
        audit = {key: value for key, value in data.audit.items() if key not in new}
        digest = hashlib.sha256(json.dumps(audit).encode())
        loaders = (data.train_dataloader(), data.train_dataloader(), data.val_dataloader())
        batches = [batch for loader in loaders for batch in loader]
        for batch in batches:
            for each in (batch.ids_PT, batch.attention_PT, batch.labels_P, batch.weights_P, batch.rows_P):
                digest.update(each.numpy().tobytes())
            digest.update(str(batch.step_triples).encode())
        one = data.largest_batch(0)
        digest.update(str((len(one.ids_PT), int(one.attention_PT.sum(dim=1).max()))).encode())
        assert len(batches) > 20
        assert digest.hexdigest() == EARLIER


@pytest.mark.usefixtures("on_disk")
def test_token_ids_of_a_damaged_file_are_made_anew(files: Path, module: DrRagTrainer) -> None:
    def encoded() -> list[list[int]]:
        drawn = read(files, module, cache=str(files / "cache"))._epoch(0)
        return [drawn.encoded(row) for row in range(len(drawn))]

    expected = encoded()
    damaged = list((files / "cache").rglob("derived/*"))
    contents = [file.read_bytes() for file in damaged]
    assert len(damaged) > 4  # of two parts, token ids beside numbers
    for number, file in enumerate(damaged):
        if number % 2:
            file.write_bytes(contents[number][:-2])
        else:
            file.unlink()
    assert encoded() == expected
    assert [file.read_bytes() for file in damaged] == contents
