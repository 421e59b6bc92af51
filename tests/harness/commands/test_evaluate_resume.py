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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    """A serving folder, a BM25 index of all passages, and questions."""
    root = tmp_path_factory.mktemp("resume")
    (root / "dev.json").write_text(json.dumps(hotpot_rows(9)))
    passages = [Passage.of(title, "".join(text)) for row in hotpot_rows(9) for title, text in row["context"]]
    build_bm25(passages, root / "index")
    write_serving(checkpoints["t5"], root / "serving", calibration=Calibration(0.5, 0.0), threshold=0.7, max_tokens=96)
    shutil.copytree(checkpoints["bert"], root / "encoder")
    return root


def rerag(folder: Path, out: Path, retriever: str = "", *more: str) -> list[str]:
    """Arguments of RE-RAG, over the questions' own passages unless a retriever is named."""
    found_by = ["--system.retriever", retriever, "--system.retriever.index", str(folder / "index")]
    return [
        "evaluate", "--system", "harness.systems.rerag.ReRag", "--system.serving", str(folder / "serving"),
        "--system.contexts", "3", "--system.candidates", "5", "--system.device", "cpu",
        *(found_by if retriever else ["--study.encoder", str(folder / "encoder")]),
        "--questions", str(folder / "dev.json"), "--out", str(out), "--resamples", "20", *more,
    ]  # fmt: skip


def report(out: Path) -> tuple[dict[Key, float], list[dict[str, Any]]]:
    """The tables and the records without what the clock says."""
    return measured_cells(out), [timeless(record) for record in questions(out)]


def partial(out: Path) -> Path:
    return out.with_name(out.name + ".partial")


class Interrupt:
    """Stops the reading of contexts before its call number `at`, as Ctrl-C does, and counts those it lets through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
        self.at, self.calls, original = at, 0, MarginalReader.matrices

        @wraps(original)
        def matrices(*arguments: Any) -> Any:
            if self.calls == self.at:
                raise KeyboardInterrupt
            self.calls += 1
            return original(*arguments)

        monkeypatch.setattr(MarginalReader, "matrices", matrices)

    def resume(self, command: list[str]) -> int:
        """Run a command to its end; the number of calls it took."""
        self.calls, self.at = 0, -1
        infer.main(command)
        return self.calls


@pytest.mark.whole_run
def test_a_killed_process_goes_on_where_it_stopped(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    file = tmp_path / "many.json"
    file.write_text(json.dumps(hotpot_rows(65)))  # two batches of questions, readings of 32: three
    retriever = "tests.helpers.killing_retriever.KillingRetriever"
    more = ("--questions", str(file), "--system.precision", "fp32")  # as `auto` is in this process alone
    command = rerag(folder, tmp_path / "out", retriever, *more)
    run = apart(ROOT, *command, **{KILLED_AT: "1"})
    assert run.returncode == -signal.SIGKILL, run.stderr[-3000:]
    assert not (tmp_path / "out").exists()
    (kept,) = partial(tmp_path / "out").glob("matrices-*.jsonl")
    lines = [json.loads(line)[1] for line in kept.read_text().splitlines()[1:]]
    assert [len(line["values"]) for line in lines] == [32, 32]

    counted = Interrupt(monkeypatch, -1)
    assert counted.resume(command) == 1
    assert "matrices-" in (said := capsys.readouterr().err)
    assert "reusing 64 values of matrices from earlier runs" in said
    assert not partial(tmp_path / "out").exists()
    spent = json.loads((tmp_path / "out" / "report.json").read_text())["seconds"]
    assert spent > sum(line["seconds"] for line in lines)

    assert counted.resume(rerag(folder, tmp_path / "whole", retriever, *more)) == 3
    assert report(tmp_path / "out") == report(tmp_path / "whole")


@pytest.mark.whole_run
def test_what_other_work_needs_too_is_used_again(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (read_once, engine):
        monkeypatch.setattr(module, "QUESTIONS_AT_ONCE", 2)  # nine questions make five batches
    shutil.copytree(folder, tmp_path / "world")
    interrupted, out, folder = Interrupt(monkeypatch, 3), tmp_path / "out", tmp_path / "world"
    partial(out).mkdir()
    for name in ("notes.jsonl", "thesis.tex"):  # of others, in the folder of saved results: they stay
        (partial(out) / name).write_text('{"the": "only copy"}\n')
    with pytest.raises(KeyboardInterrupt):
        infer.main(rerag(folder, out))
    shutil.copytree(partial(out), tmp_path / "saved")
    more = ["--system.abstain", "true", "--system.threshold", "0.9", "--system.marginal", "fast", "--ks", "[1,2]"]
    assert interrupted.resume(rerag(folder, out, "", *more)) == 2
    for options, calls in ((["--system.contexts", "2", "--limit", "8"], 1), ([], 2)):
        shutil.copytree(tmp_path / "saved", partial(out), dirs_exist_ok=True)
        assert interrupted.resume(rerag(folder, out, "", *options)) == calls
    assert sorted(path.name for path in partial(out).iterdir()) == ["notes.jsonl", "thesis.tex"]
    infer.main(rerag(folder, tmp_path / "whole"))
    assert report(out) == report(tmp_path / "whole")

    shutil.copytree(tmp_path / "saved", partial(out), dirs_exist_ok=True)
    model = ReRagModel.load(folder / "serving", "cpu")
    with torch.no_grad():
        model.generator.network.get_input_embeddings().weight[20:40] *= 2
    shutil.rmtree(folder / "serving")
    (folder / "serving").mkdir()
    model.save(folder / "serving")
    assert interrupted.resume(rerag(folder, out)) == 5  # another model
