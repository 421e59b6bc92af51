"""DR-RAG's data from stored questions: the same draws, batch for batch, as when all files are in memory."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from common.records import Passage
from datamodules.drrag import DrRagData
from datamodules.examples.audit import audit
from datamodules.examples.chains import ChainSampling, mined_expansions
from datamodules.examples.chains import draw as draw_chains
from datamodules.examples.splits import QuestionSource
from datamodules.examples.triples import Sampling, draw
from datamodules.formats.expansions import Expansion, read_expansions, to_row, write_expansions
from datamodules.formats.mined_negatives import Mined, read_mined, write_mined
from datamodules.formats.reading import read_questions
from datamodules.stored import content_digests
from tests.helpers.layout_rows import MUSIQUE
from tests.helpers.tiny_runs import set_up
from trainers.drrag import DrRagTrainer

SAMPLING = Sampling(1.5, 0.6, 0.5, 2, paired_share=0.5)
CHAINS = ChainSampling(candidates=2, noise_chains=2, mined_share=0.6, chains_per_question=3)


@pytest.fixture
def files(hotpot_file: Path, tmp_path: Path) -> Path:
    """Two training files in two layouts, one of which lacks a gold passage; files of mined passages and expansions."""
    rows = json.loads(hotpot_file.read_text())
    for row in rows[::5]:
        row["supporting_facts"].append(["not shipped", 0])
    (tmp_path / "hotpot.json").write_text(json.dumps(rows))
    others = [MUSIQUE | {"id": f"3hop__{n}", "question": f"who is name{n} of the film"} for n in range(6)]
    (tmp_path / "musique.jsonl").write_text("".join(json.dumps(row) + "\n" for row in others))
    questions = list(read_questions("hotpotqa", str(tmp_path / "hotpot.json")))
    mined, expansions = [], []
    for number, question in enumerate(questions):
        new = [
            Passage.of(f"m{number}", f"the film of name{number}"),
            Passage.of("n", f"name{number} was born"),
            *question.passages[:1],
        ]
        if number % 2:
            gold = [passage.id for passage in question.gold]
            hits = {gold[0]: [new[0].id, *gold[1:], "unknown"], new[1].id: [new[0].id, gold[0]], "unknown": [gold[0]]}
            mined += [(question.id, Mined([*new, new[0]], hits))]
        if number % 3:
            met = [Expansion((), (*new, *question.gold)), Expansion((new[1],), (new[0], *question.gold[:1])),
                   Expansion(question.gold[:1], question.passages)]  # fmt: skip
            expansions.append(to_row(question.id, met))
    write_mined(tmp_path / "mined.jsonl", mined)
    write_mined(tmp_path / "again.jsonl", mined[:4])
    write_expansions(tmp_path / "expansions.jsonl", expansions)
    return tmp_path


def read(folder: Path, module: DrRagTrainer, chains: ChainSampling | None, **kept: Any) -> DrRagData:
    """The data of the files, set up for a module."""
    data = DrRagData(
        [QuestionSource("hotpotqa", str(folder / "hotpot.json")),
            QuestionSource("musique", str(folder / "musique.jsonl"))],
        validation_fraction=0.3, mined=[str(folder / "mined.jsonl"), str(folder / "again.jsonl")], sampling=SAMPLING,
        tokens_per_step=600, tokens_per_validation_batch=500, chains=chains,
        expansions=[str(folder / "expansions.jsonl")] if chains else None, **kept,
    )  # fmt: skip
    return set_up(data, module)


@pytest.fixture
def module(checkpoints: dict[str, Path]) -> DrRagTrainer:
    return DrRagTrainer(str(checkpoints["bert"]), max_tokens=96)


EARLIER = {  # of the same data module before questions were stored
    "triples": "3073c01e21a47f85a014dd0d2c24deb0a49c979dd59f4ffa412a77c8b853143c",
    "chains": "13b0ac300851a9ca825070c503e127810d42003264a39fc6d943a84326976397",
    "listwise": "cffef3d2e263d3769643de9d31d0b6905561254403efcc1ffd93a8a5419b8cc7",
}


@pytest.mark.parametrize("kept", ["memory", "disk"])
@pytest.mark.parametrize("kind", EARLIER)
def test_batches_are_those_of_earlier_releases(
    files: Path, checkpoints: dict[str, Path], monkeypatch: pytest.MonkeyPatch, kept: str, kind: Any
) -> None:
    if kept == "disk":
        monkeypatch.setattr(content_digests, "SMALL_BYTES", 0)
    loss: Any = "listwise" if kind == "listwise" else "binary"
    module = DrRagTrainer(str(checkpoints["bert"]), max_tokens=96, loss=loss)
    chains = None if kind == "triples" else CHAINS
    for _ in range(2 if kept == "disk" else 1):
        data = read(files, module, chains, cache=str(files / "cache"))
        digest = hashlib.sha256(json.dumps(data.audit).encode())
        loaders = (data.train_dataloader(), data.train_dataloader(), data.val_dataloader())
        batches = [batch for loader in loaders for batch in loader]
        for batch in batches:
            for each in (
                batch.ids_PT,
                batch.attention_PT,
                batch.labels_P,
                batch.weights_P,
                batch.rows_P,
                batch.groups_P,
            ):
                digest.update(each.numpy().tobytes())
            digest.update(str((batch.step_triples, batch.step_groups)).encode())
        one = data.largest_batch(0)
        largest = len(one.ids_PT), int(one.attention_PT.sum(dim=1).max())
        digest.update(str((largest, data.validation_pairs.tolist(), data.validation_groups.tolist())).encode())
        assert len(batches) > 20
        assert digest.hexdigest() == EARLIER[kind]


@pytest.mark.parametrize("chains", [None, CHAINS], ids=["triples", "chains"])
@pytest.mark.parametrize("large", [False, True], ids=["memory", "disk"])
def test_every_draw_is_that_of_files_in_memory(
    files: Path, module: DrRagTrainer, monkeypatch: pytest.MonkeyPatch, chains: ChainSampling | None, large: bool
) -> None:
    if large:
        monkeypatch.setattr(content_digests, "SMALL_BYTES", 0)
    data = read(files, module, chains, cache=str(files / "cache"))
    mined = read_mined([str(files / "mined.jsonl"), str(files / "again.jsonl")])
    expansions = read_expansions([str(files / "expansions.jsonl")]) if chains else {}
    for epoch in range(3):
        expected: list[Any] = []
        for question in data.questions:
            found = mined.get(question.id, Mined())
            if chains is None:
                expected += draw(question, found, SAMPLING, 0, epoch, found.hits)
            else:
                met = [*mined_expansions(question, found), *expansions.get(question.id, ())]
                expected += draw_chains(question, found, met, chains, 0, epoch)
        drawn = data._epoch(epoch)
        assert list(drawn.examples) == expected
        assert len(expected) > 60
        encode = module.classifier.encode
        assert [drawn.encoded(row) for row in range(len(drawn))] == [encode(*each.texts) for each in expected]
        assert drawn.untruncated().tolist() == [encode.untruncated(*each.texts) for each in expected]
        assert drawn.lengths().max() <= 96
        assert drawn.positive.tolist() == [each.positive for each in expected]
        if epoch == 0:
            report = audit(
                list(data.questions), expected, mined, drawn.lengths().tolist(), 96, drawn.untruncated().tolist()
            )
            assert data.audit == report | {key: data.audit[key] for key in data.audit.keys() - report.keys()}
    assert (files / "cache").exists() == large


def test_token_ids_of_a_damaged_file_are_made_anew(
    files: Path, module: DrRagTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_digests, "SMALL_BYTES", 0)

    def encoded() -> list[list[int]]:
        drawn = read(files, module, None, cache=str(files / "cache"))._epoch(0)
        return [drawn.encoded(row) for row in range(len(drawn))]

    expected = encoded()
    damaged = list((files / "cache").rglob("ids.bin"))
    assert len(damaged) == 2
    damaged[0].write_bytes(damaged[0].read_bytes()[:-2])
    damaged[1].unlink()
    assert encoded() == expected
    assert sorted((files / "cache").rglob("ids.bin")) == sorted(damaged)
