"""Worker processes that make batches: those of the training process, and no process that outlives the training."""

import dataclasses
import gc
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing import active_children
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from common.errors import DataError, MemoryShortError
from common.records import Passage
from datamodules.cache import content_digests
from datamodules.drrag import DrRagData
from datamodules.examples.batches import Batch
from datamodules.examples.data_files import QuestionDataFile
from datamodules.examples.prefetch import Prefetcher
from datamodules.examples.step_loader import StepData
from datamodules.formats.mined_negatives import Mined
from datamodules.formats.reading import read_questions
from tests.conftest import hotpot_rows
from tests.helpers.forked import ROOT
from tests.helpers.mined_files import write_mined
from tests.helpers.rerag_data import context_data, fid_rows
from tests.helpers.runs import assert_repeated, fit_in_turn, weights
from tests.helpers.slow_batches import Slow, Told
from tests.helpers.tiny_runs import divided_steps, set_up
from tests.trainers import test_drrag, test_rerag_training
from trainers.drrag import DrRagTrainer
from trainers.rerag import ReRagTrainer
from trainers.rerag_options import Text


def generators() -> tuple[Any, ...]:
    """The states of the generators that a training uses."""
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # type: ignore[index]


def test_batches_come_in_order_and_no_generator_moves() -> None:
    before = generators()
    ahead = Prefetcher(Slow(0), 2, keep=True)
    first = list(ahead(iter(range(7))))
    again = ahead(iter(range(7, 12)))
    part = [next(again) for _ in range(2)]  # a pass that is given up
    last = list(ahead(iter(range(20, 24))))
    assert [int(each.request) for each in (*first, *part, *last)] == [*range(9), *range(20, 24)]
    assert {int(each.process) for each in last} == {int(each.process) for each in first}  # the workers are kept
    assert os.getpid() not in {int(each.process) for each in first}
    assert generators() == before
    ahead.close()
    del again
    assert not active_children()


def test_workers_end_with_their_owner_also_in_a_cycle_of_references() -> None:
    """As Lightning's loops hold a pass that has been given up."""
    for keep in (True, False):
        owner = SimpleNamespace(ahead=Prefetcher(Slow(0), 2, keep=keep))
        owner.itself, owner.batches = owner, owner.ahead(iter(range(9)))
        next(owner.batches)
        assert len(active_children()) == 2
        started = time.monotonic()
        del owner
        gc.collect()
        assert not active_children()
        assert time.monotonic() - started < 5  # of which DataLoader waits for a worker before it kills it


def test_a_worker_that_is_killed_ends_the_run_in_one_line() -> None:
    ahead = Prefetcher(Slow(0.05), 1)
    batches = ahead(iter(range(1000)))
    os.kill(int(next(batches).process), signal.SIGKILL)
    with pytest.raises(MemoryShortError, match=r"lower data\.workers") as caught:
        list(batches)
    assert "\n" not in str(caught.value)


def session(leader: int) -> list[int]:
    """The processes of a session that have not ended."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, of = file.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(of) == leader and state != "Z":
            found.append(int(file.parent.name))
    return found


@pytest.fixture
def training() -> Iterator[subprocess.Popen[str]]:
    """A training with two workers, which are started."""
    command = [sys.executable, "-m", "tests.helpers.slow_batches", "0.2"]
    started = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)
    yield started
    for each in session(started.pid):
        os.kill(each, signal.SIGKILL)
    started.communicate()


def test_workers_outlive_the_signals_that_stop_a_run_and_not_the_training(training) -> None:
    assert training.stdout is not None
    processes, requests = zip(*(training.stdout.readline().split() for _ in range(4)), strict=True)
    assert len(set(processes)) == 2
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):  # to all, as a terminal or a scheduler sends them
        os.killpg(training.pid, each)
    later = [training.stdout.readline().split() for _ in range(12)]
    assert {process for process, _ in later} == set(processes)
    assert [*requests, *(request for _, request in later)] == [str(number) for number in range(16)]
    assert len(session(training.pid)) >= 3
    os.kill(training.pid, signal.SIGKILL)
    until = time.monotonic() + 10
    while session(training.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert session(training.pid) == []


def test_pinned_batches_are_pinned_to_the_last_tensor(monkeypatch) -> None:
    monkeypatch.setattr(Tensor, "pin_memory", lambda tensor: -tensor)  # without a GPU there is no pinned memory
    pinned = Told(Told(torch.tensor(1), torch.tensor(2)), [torch.tensor(3), 4]).pin_memory()  # type: ignore[arg-type]
    assert pinned == Told(Told(torch.tensor(-1), torch.tensor(-2)), [torch.tensor(-3), 4])  # type: ignore[arg-type]
    assert isinstance(pinned, Batch)


@pytest.mark.parametrize(
    ("device", "given", "cores", "local", "expected"),
    [("cpu", None, 64, 1, 0), ("cpu", 3, 64, 1, 3), ("cuda", None, 64, 8, 4), ("cuda", None, 16, 8, 2),
        ("cuda", None, 2, 8, 1), ("cuda", 0, 64, 1, 0), ("cuda", 9, 2, 1, 9)],
)  # fmt: skip
def test_the_number_of_workers_follows_from_the_device_unless_it_is_given(
    monkeypatch, device, given, cores, local, expected
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)))
    data = StepData()
    data.workers = given
    data.trainer = SimpleNamespace(strategy=SimpleNamespace(root_device=torch.device(device)), num_devices=local)  # type: ignore[assignment]
    assert data._workers() == (expected, device == "cuda" and expected > 0)


Read = Callable[..., StepData]  # workers, ranks, rank -> data, set up


def same(one: object, other: object) -> bool:
    """Whether batches are the same to the last bit, types and shapes included."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return (
            one.dtype == other.dtype
            and one.shape == other.shape
            and bool(((one == other) | (one.isnan() & other.isnan())).all())
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if dataclasses.is_dataclass(one):
        return type(one) is type(other) and all(
            same(getattr(one, field.name), getattr(other, field.name)) for field in dataclasses.fields(one)
        )
    return one == other


def triples(checkpoints: dict[str, Path], folder: Path, **model: Any) -> Read:
    module = DrRagTrainer(str(checkpoints["bert"]), **{"max_tokens": 96, **model}).load()
    file = str(folder / "hotpot.json")
    read = enumerate(read_questions("hotpotqa", file))
    mined = [(each.id, Mined([Passage.of(f"m{number}", f"the film of name{number}")])) for number, each in read]
    write_mined(folder / "mined.jsonl", mined)
    options = {"hard_negatives": [str(folder / "mined.jsonl")], "validation_fraction": 0.3}
    sizes = {"tokens_per_step": 600, "tokens_per_validation_batch": 500}
    source = QuestionDataFile(file, "hotpotqa")
    return lambda workers, *rank: set_up(DrRagData([source], workers=workers, **options, **sizes), module, *rank)


def contexts(
    checkpoints: dict[str, Path], folder: Path, models: tuple[str | None, str], model: Any = None, **options: Any
) -> Read:
    estimator, generator = (name and str(checkpoints[name]) for name in models)
    module = ReRagTrainer(estimator, generator, **{"max_tokens": 64, **(model or {})}).load()
    rows, file, mined = fid_rows(30), folder / "fid.json", folder / "hard_negatives.jsonl"
    file.write_text(json.dumps(rows))
    write_mined(mined, [(row["id"], Mined([Passage.of("m", row["answers"][0])])) for row in rows[::2]])
    sizes = {"contexts": 4, "questions_per_step": 5, "questions_per_validation_batch": 2}
    given = {"hard_negatives": [str(mined)], "labels": "has_answer", **sizes, **options}
    return lambda workers: context_data(file, module, workers=workers, **given)


CASES: dict[str, Callable[[dict[str, Path], Path], Read]] = {
    "triples": triples,
    "block-sparse triples": partial(triples, max_tokens=5000, attention="block_sparse"),
    "one encoder": partial(contexts, models=("t5", "t5"), crop_words=6, crop_growth_words=1, substitution=0.7),
    "gold": partial(contexts, models=("t5", "t5"), labels="gold", context_sampling="gold"),
    "two encoders": partial(contexts, models=("bert", "t5")),
    "all documents at once": partial(contexts, models=(None, "t5"), model={"text": Text("packed")}),
}


@pytest.fixture
def folder(hotpot_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(hotpot_file.parent)  # for the cache
    return hotpot_file.parent


@pytest.mark.parametrize(
    ("case", "stored"), [*((c, False) for c in CASES), ("triples", True), ("one encoder", True), ("gold", True)]
)
def test_batches_of_workers_are_those_of_the_training_process(checkpoints, folder, monkeypatch, case, stored) -> None:
    read = CASES[case](checkpoints, folder)
    without = read(0)
    if stored:  # and found again in each other way of drawing
        monkeypatch.setattr(content_digests, "SMALL_BYTES", 0)
        read(0)
    ours = read(2)
    assert Path("cache/questions").exists() == stored
    generator = torch.get_rng_state()
    made: list[Any] = []
    for data in (without, ours):
        training, validation = data.train_dataloader(), data.val_dataloader()
        epochs = [list(training), list(validation), list(training), list(validation)]
        made.append([[len(training), len(validation)], *epochs])
    assert torch.equal(torch.get_rng_state(), generator)
    assert same(made[1], made[0])
    assert len(made[0][1]) > 2
    assert not same(made[0][1], made[0][3])  # epochs differ
    ours.teardown("fit")


@pytest.mark.parametrize("case", ["triples", "one encoder"])
def test_a_question_that_is_too_long_is_cut_and_counted_and_the_others_are_as_before(checkpoints, folder, case) -> None:
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
def test_inputs_whose_contexts_are_too_long_are_counted_as_they_are_trained_on(checkpoints, folder, packed) -> None:
    models, text = ((None, "t5"), {"text": Text("packed")}) if packed else (("t5", "t5"), {})
    found, lengths = {}, list[int]()
    for max_tokens in (400, 26):
        data = contexts(checkpoints, folder, models, model={"max_tokens": max_tokens, **text})(0)
        buckets = [bucket for batch in data.train_dataloader() for bucket in batch.buckets]
        lengths = lengths or [int(length) for bucket in buckets for length in bucket.attention_MT.sum(1)]
        found[max_tokens] = data.audit["inputs_cut"]
    cut = sum(length > 26 for length in lengths)
    assert 0 < cut <= len(lengths)
    assert found == {400: f"0 of the first {len(lengths)}", 26: f"{cut} of the first {len(lengths)}"}


@pytest.mark.whole_run
@pytest.mark.parametrize("system", ["drrag", "rerag"])
def test_two_ranks_with_workers_train_the_same_weights(tmp_path, checkpoints, hotpot_file, system) -> None:
    if system == "drrag":
        test_drrag.write_config(tmp_path, checkpoints["bert"], hotpot_file)
    else:
        test_rerag_training.write_config(tmp_path, checkpoints["t5"])
    fit_in_turn(tmp_path, [["--name", f"with-{count}", "--data.workers", str(count)] for count in (0, 1)])
    assert_repeated(weights(tmp_path, "with-1"), weights(tmp_path, "with-0"))


def test_a_step_is_divided_among_ranks_and_accumulated_batches(checkpoints, folder) -> None:
    read = triples(checkpoints, folder)
    data = read(0)
    examples = data._epoch(0).examples
    seen: list[int] = []
    for whole, batches in divided_steps(partial(read, 0), ranks=2, accumulate=3):
        for batch in batches:
            assert batch.step_triples == len(whole.rows_P)
            assert batch.labels_P.tolist() == [float(examples[row].positive) for row in batch.rows_P.tolist()]
        real = [row for batch in batches if batch.weights_P.any() for row in batch.rows_P.tolist()]
        assert sorted(real) == sorted(whole.rows_P.tolist())
        seen += real
    assert sorted(seen) == list(range(len(examples)))
    assert data.units_per_step == pytest.approx(len(examples) / data.steps_per_epoch)


@pytest.mark.parametrize("part", ["train", "validation"])
def test_the_file_that_lacks_negatives_is_named(part, checkpoints, hotpot_file, tmp_path) -> None:
    rows, lacking = hotpot_rows(12, seed=1), tmp_path / "lacking.json"
    for row in rows:
        if part == "train":
            row["supporting_facts"] = row["supporting_facts"][:1]
        else:
            row["context"] = [each for each in row["context"] if each[0] in dict(row["supporting_facts"])]
    lacking.write_text(json.dumps(rows))
    files = {name: [QuestionDataFile(str(hotpot_file), "hotpotqa")] for name in ("train", "validation")}
    files[part] = [QuestionDataFile(str(lacking), "hotpotqa")]
    with pytest.raises(DataError, match=rf"validation triples, from {lacking}: a question needs"):
        set_up(DrRagData(**files, tokens_per_step=900), DrRagTrainer(str(checkpoints["bert"]), max_tokens=96).load())
