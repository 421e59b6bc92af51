"""Data modules with worker processes: the batches of those without, also after a stop, and the same errors."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from common.records import Passage
from datamodules.cache import content_digests
from datamodules.drrag import DrRagData
from datamodules.examples.data_files import QuestionDataFile
from datamodules.examples.step_loader import StepData, StepLoader
from datamodules.formats.mined_negatives import Mined
from datamodules.formats.reading import read_questions
from datamodules.rerag import ReRagData
from tests.helpers.mined_files import write_mined
from tests.helpers.rerag_data import fid_rows
from tests.helpers.runs import assert_repeated, fit_in_turn, weights
from tests.helpers.tiny_runs import set_up
from tests.trainers import test_drrag, test_rerag_training
from trainers.drrag import DrRagTrainer
from trainers.rerag import ReRagTrainer
from trainers.rerag_options import Text

Read = Callable[..., StepData]  # workers, ranks, rank -> data, set up


def same(one: object, other: object) -> bool:
    """Whether batches are the same to the last bit, types and shapes included."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if dataclasses.is_dataclass(one):
        return type(one) is type(other) and all(
            same(getattr(one, field.name), getattr(other, field.name)) for field in dataclasses.fields(one)
        )
    return one == other


def triples(checkpoints: dict[str, Path], folder: Path, **options: Any) -> Read:
    module = DrRagTrainer(str(checkpoints["bert"]), **{"max_tokens": 96, **options.pop("model", {})}).load()
    source = QuestionDataFile(str(folder / "hotpot.json"), "hotpotqa")
    mined = [
        (question.id, Mined([Passage.of(f"m{number}", f"the film of name{number}")]))
        for number, question in enumerate(read_questions(source.layout, source.path))
    ]
    write_mined(folder / "mined.jsonl", mined)

    def read(workers: int | None, ranks: int = 1, rank: int = 0) -> DrRagData:
        data = DrRagData(
            [source], validation_fraction=0.3, hard_negatives=[str(folder / "mined.jsonl")], tokens_per_step=600,
            tokens_per_validation_batch=500, workers=workers, **options,
        )  # fmt: skip
        return set_up(data, module, rank, ranks)

    return read


def contexts(checkpoints: dict[str, Path], folder: Path, models: tuple[str | None, str], **options: Any) -> Read:
    estimator, generator = (name and str(checkpoints[name]) for name in models)
    module = ReRagTrainer(estimator, generator, **{"max_tokens": 64, **options.pop("model", {})}).load()
    rows = fid_rows(30)
    (folder / "fid.json").write_text(json.dumps(rows))
    write_mined(
        folder / "hard_negatives.jsonl", [(row["id"], Mined([Passage.of("m", row["answers"][0])])) for row in rows[::2]]
    )

    def read(workers: int | None, ranks: int = 1, rank: int = 0) -> ReRagData:
        data = ReRagData(
            [QuestionDataFile(str(folder / "fid.json"), "fid")], validation_fraction=0.3,
            hard_negatives=[str(folder / "hard_negatives.jsonl")], contexts=4, context_sampling="sampled",
            questions_per_step=5, tokens_per_bucket=250,
            questions_per_validation_batch=2, workers=workers, **options,
        )  # fmt: skip
        return set_up(data, module, rank, ranks)

    return read


CASES: dict[str, Callable[[dict[str, Path], Path], Read]] = {
    "triples": triples,
    "block-sparse triples": lambda models, folder: triples(models, folder, model={"max_tokens": 5000,
        "attention": "block_sparse"}),
    "one encoder": lambda models, folder: contexts(models, folder, ("t5", "t5"), crop_words=6, crop_growth_words=1,
        substitution=0.7),
    "two encoders": lambda models, folder: contexts(models, folder, ("bert", "t5")),
    "all documents at once": lambda models, folder: contexts(models, folder, (None, "t5"),
        model={"text": Text("packed")}),
}  # fmt: skip


@pytest.fixture
def folder(hotpot_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(hotpot_file.parent)  # for the cache
    return hotpot_file.parent


@pytest.mark.parametrize(
    ("case", "stored"),
    [*((case, False) for case in CASES), ("triples", True), ("one encoder", True)],
)  # fmt: skip
def test_batches_of_workers_are_those_of_the_training_process(
    checkpoints: dict[str, Path], folder: Path, monkeypatch: pytest.MonkeyPatch, case: str, stored: bool
) -> None:
    if stored:
        monkeypatch.setattr(content_digests, "SMALL_BYTES", 0)
    read = CASES[case](checkpoints, folder)
    without, ours = read(0), read(2)
    assert Path("cache/questions").exists() == stored
    generator = torch.get_rng_state()
    loaders: list[Any] = []
    for data in (without, ours):
        training, validation = data.train_dataloader(), data.val_dataloader()
        epochs = [list(training), list(validation), list(training), list(validation)]
        loaders.append((len(training), len(validation), epochs))
    assert torch.equal(torch.get_rng_state(), generator)
    assert loaders[0][:2] == loaders[1][:2]
    assert same(loaders[1][2], loaders[0][2])
    assert len(loaders[0][2][0]) > 2
    assert not same(loaders[0][2][0], loaders[0][2][2])  # epochs differ
    ours.teardown("fit")


def taken(loader: StepLoader, count: int) -> list[Any]:
    """The next batches, across epochs."""
    found: list[Any] = []
    while len(found) < count:
        for batch in loader:
            found.append(batch)
            if len(found) == count:
                break
    return found


@pytest.mark.parametrize("case", ["triples", "one encoder"])
def test_a_question_that_is_too_long_is_cut_and_counted_and_the_others_are_as_before(
    checkpoints: dict[str, Path], folder: Path, case: str
) -> None:
    read = CASES[case](checkpoints, folder)
    file = folder / ("hotpot.json" if case == "triples" else "fid.json")
    rows = json.loads(file.read_text())
    before = read(0)
    assert before.audit["questions_cut"] == 0
    rows[7]["question"] = "who is " * 60
    file.write_text(json.dumps(rows))
    whole = [*(data := read(0)).train_dataloader()]
    assert data.audit["questions_cut"] == 1
    assert data.audit["questions"] == before.audit["questions"]
    assert len(whole) > 1
    data.teardown("fit")


@pytest.mark.parametrize("packed", [False, True])
def test_inputs_whose_contexts_are_too_long_are_counted_as_they_are_trained_on(
    checkpoints: dict[str, Path], folder: Path, packed: bool
) -> None:
    models = (None, "t5") if packed else ("t5", "t5")
    found, lengths = {}, list[int]()
    for max_tokens in (400, 26):
        model = {"max_tokens": max_tokens, **({"text": Text("packed")} if packed else {})}
        data = contexts(checkpoints, folder, models, model=model)(0)
        batches = [*data.train_dataloader()]
        lengths = lengths or [
            int(length) for batch in batches for bucket in batch.buckets for length in bucket.attention_MT.sum(1)
        ]
        found[max_tokens] = data.audit["inputs_cut"]
        data.teardown("fit")
    cut = sum(length > 26 for length in lengths)
    assert 0 < cut <= len(lengths)
    assert found == {400: f"0 of the first {len(lengths)}", 26: f"{cut} of the first {len(lengths)}"}


@pytest.mark.whole_run
@pytest.mark.parametrize("system", ["drrag", "rerag"])
def test_two_ranks_with_workers_train_the_same_weights(
    tmp_path: Path, checkpoints: dict[str, Path], hotpot_file: Path, system: str
) -> None:
    if system == "drrag":
        test_drrag.write_config(tmp_path, checkpoints["bert"], hotpot_file)
    else:
        test_rerag_training.write_config(tmp_path, checkpoints["t5"])
    fit_in_turn(tmp_path, [["--name", f"with-{count}", "--data.workers", str(count)] for count in (0, 1)])
    assert_repeated(weights(tmp_path, "with-1"), weights(tmp_path, "with-0"))
