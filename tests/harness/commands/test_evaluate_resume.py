"""`infer.py evaluate` after an interruption.

What was computed is used again, and the report is the one of an unbroken run.
"""

import json
import shutil
import signal
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
import torch

import infer
from common.records import Passage
from harness.evaluation import engine
from harness.readers import read_once
from harness.retrievers.bm25 import build_bm25
from models.calibration import Calibration
from models.rerag.marginal_reader import MarginalReader
from models.rerag.model import ReRagModel
from tests.conftest import hotpot_rows
from tests.helpers.commands import apart
from tests.helpers.forked import ROOT
from tests.helpers.killing_retriever import KILLED_AT
from tests.helpers.reports import Key, measured_cells, questions, timeless
from tests.helpers.rerag_world import write_serving

Report = tuple[dict[Key, float], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> dict[str, Path]:
    """Serving folders, a BM25 index of all passages, a sentence encoder, questions and training questions."""
    root = tmp_path_factory.mktemp("resume")
    made = {"root": root, "encoder": checkpoints["bert"], "dev": root / "dev.json", "train": root / "train.json"}
    for name, seed in (("dev", 0), ("train", 1)):
        made[name].write_text(json.dumps(hotpot_rows(9, seed)))
    build_bm25(
        [Passage.of(title, "".join(text)) for row in hotpot_rows(9) for title, text in row["context"]], root / "i"
    )
    made["index"] = root / "i"
    options = {"calibration": Calibration(0.5, 0.0), "threshold": 0.7, "max_tokens": 96}
    made["serving"] = write_serving(checkpoints["t5"], root / "both", **options)
    return made


def in_twos(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine questions make five batches."""
    monkeypatch.setattr(read_once, "QUESTIONS_AT_ONCE", 2)
    monkeypatch.setattr(engine, "QUESTIONS_AT_ONCE", 2)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `in_twos`, for one test."""
    in_twos(monkeypatch)


@pytest.fixture(scope="module")
def unbroken(folders: dict[str, Path]) -> Report:
    """The report of an unbroken run of RE-RAG in small batches over the questions' own passages."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        in_twos(monkeypatch)
        infer.main(rerag(folders, folders["root"] / "unbroken"))
    return report(folders["root"] / "unbroken")


def rerag(folders: dict[str, Path], out: Path, retriever: str = "", *more: str) -> list[str]:
    """Arguments of RE-RAG, over the questions' own passages unless a retriever is named."""
    found_by = ["--system.retriever", retriever, "--system.retriever.index", str(folders["index"])]
    return [
        "evaluate", "--system", "harness.systems.rerag.ReRag", "--system.serving", str(folders["serving"]),
        "--system.contexts", "3", "--system.candidates", "5", "--system.device", "cpu",
        *(found_by if retriever else ["--study.encoder", str(folders["encoder"])]),
        "--questions", str(folders["dev"]), "--out", str(out), "--resamples", "20", *more,
    ]  # fmt: skip


def report(out: Path) -> Report:
    """The tables and the records without what the clock says."""
    return measured_cells(out), [timeless(record) for record in questions(out)]


def partial(out: Path) -> Path:
    return out.with_name(out.name + ".partial")


class Interrupt:
    """Stops a method before its call number `at`, as Ctrl-C does, and counts the calls that it lets through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str, at: int) -> None:
        self.monkeypatch, self.owner, self.name, self.at, self.calls = monkeypatch, owner, name, at, 0
        self.original = getattr(owner, name)
        monkeypatch.setattr(owner, name, wraps(self.original)(lambda *args: self(*args)))

    def __call__(self, *args: object) -> object:
        if self.calls == self.at:
            raise KeyboardInterrupt
        self.calls += 1
        return self.original(*args)

    def resume(self, command: list[str]) -> int:
        """Run a command to its end; the number of calls it took."""
        self.calls, self.at = 0, -1
        infer.main(command)
        return self.calls


def reading(monkeypatch: pytest.MonkeyPatch, at: int) -> Interrupt:
    return Interrupt(monkeypatch, MarginalReader, "matrices", at)


@pytest.mark.whole_run
def test_a_killed_process_goes_on_where_it_stopped(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    file = tmp_path / "many.json"
    file.write_text(json.dumps(hotpot_rows(65)))  # two batches of questions, readings of 32: three
    retriever = "tests.helpers.killing_retriever.KillingRetriever"
    same = ("--system.precision", "fp32")  # as `auto` is in this process alone
    more = ("--questions", str(file), *same)
    command = rerag(folders, tmp_path / "out", retriever, *more)
    run = apart(ROOT, *command, **{KILLED_AT: "1"})
    assert run.returncode == -signal.SIGKILL, run.stderr[-3000:]
    assert not (tmp_path / "out").exists()
    (kept,) = partial(tmp_path / "out").glob("matrices-*.jsonl")
    lines = [json.loads(line)[1] for line in kept.read_text().splitlines()[1:]]
    assert [len(line["values"]) for line in lines] == [32, 32]

    counted = reading(monkeypatch, -1)
    assert counted.resume(command) == 1
    assert "matrices-" in (said := capsys.readouterr().err)
    assert "reusing 64 values of matrices from earlier runs" in said
    assert not partial(tmp_path / "out").exists()
    spent = json.loads((tmp_path / "out" / "report.json").read_text())["seconds"]
    assert spent > sum(line["seconds"] for line in lines)

    assert counted.resume(rerag(folders, tmp_path / "whole", retriever, *more)) == 3
    assert report(tmp_path / "out") == report(tmp_path / "whole")


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("at", [0, 1, 4])
def test_own_passages_resume_from_any_batch(
    folders: dict[str, Path],
    unbroken: Report,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    at: int,
) -> None:
    command = rerag(folders, tmp_path / "out")
    interrupted = reading(monkeypatch, at)
    with pytest.raises(KeyboardInterrupt):
        infer.main(command)
    assert partial(tmp_path / "out").exists()
    assert interrupted.resume(command) == 5 - at
    assert not partial(tmp_path / "out").exists()
    assert report(tmp_path / "out") == unbroken


@pytest.mark.usefixtures("small_batches")
@pytest.mark.whole_run
def test_what_other_work_needs_too_is_used_again(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = {**folders, "serving": tmp_path / "serving"}
    shutil.copytree(folders["root"] / "both", folders["serving"])
    interrupted = reading(monkeypatch, 3)
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        infer.main(rerag(folders, out))
    shutil.copytree(partial(out), tmp_path / "saved")
    more = ["--system.abstain", "true", "--system.threshold", "0.9", "--system.marginal", "fast", "--ks", "[1,2]"]
    assert interrupted.resume(rerag(folders, out, "", *more)) == 2
    shutil.copytree(tmp_path / "saved", partial(out))
    assert interrupted.resume(rerag(folders, out, "", "--system.contexts", "2", "--limit", "8")) == 1

    shutil.copytree(tmp_path / "saved", partial(out))
    model = ReRagModel.load(folders["serving"], "cpu")
    with torch.no_grad():
        model.generator.network.get_input_embeddings().weight[20:40] *= 2
    shutil.rmtree(folders["serving"])
    folders["serving"].mkdir()
    model.save(folders["serving"])
    assert interrupted.resume(rerag(folders, out)) == 5
    infer.main(rerag(folders, tmp_path / "whole"))
    assert report(out) == report(tmp_path / "whole")


@pytest.mark.usefixtures("small_batches")
def test_files_of_others_in_the_folder_of_saved_results_stay(folders: dict[str, Path], tmp_path: Path) -> None:
    partial(tmp_path / "out").mkdir()
    for name in ("notes.jsonl", "thesis.tex"):
        (partial(tmp_path / "out") / name).write_text('{"the": "only copy"}\n')
    infer.main(rerag(folders, tmp_path / "out"))
    assert sorted(path.name for path in partial(tmp_path / "out").iterdir()) == ["notes.jsonl", "thesis.tex"]
