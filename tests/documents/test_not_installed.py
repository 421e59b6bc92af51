"""Without the packages of the extras: a reranker trains and answers, and what needs one of them says what to type."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.commands import command, refused
from tests.helpers.forked import ROOT
from tests.trainers import test_rerag_training

EXTRA = ("pypdfium2", "trafilatura", "docx", "markdown_it", "reportlab")  # matplotlib brings pillow
TRAINS = """
import importlib.abc, sys
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import train, infer
sys.argv = ["train.py"]
train.main(["fit", "--config", "config.yaml", "--model.generator", "null", "--model.loss.label_weight", "1",
            "--checkpoint.monitor", "val/recall_1", "--trainer.max_epochs", "1"])
infer.main(["ask", "--system", "harness.systems.rerag.ReRag", "--system.serving", "checkpoints/tiny/serving",
            "--system.contexts", "2", "--questions", "fid.json", "--layout", "fid", "--limit", "1"])
"""


@pytest.mark.whole_run
def test_a_reranker_trains_and_answers(tmp_path: Path, checkpoints: dict[str, Path]) -> None:
    test_rerag_training.write_config(tmp_path, checkpoints["t5"])
    given = {**os.environ, "PYTHONPATH": str(ROOT)}
    typed = [sys.executable, "-c", TRAINS.format(missing=EXTRA)]
    ended = subprocess.run(typed, cwd=tmp_path, env=given, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert "5 passages scored" in ended.stdout


@pytest.mark.parametrize(
    ("file", "content", "needed"),
    [
        ("manual.pdf", b"%PDF-1.7\n", "pypdfium2"),
        ("page.html", b"<!doctype html><html><body><p>A pump.</p></body></html>", "lxml"),
        ("notes.md", b"# Pump\n\nIt takes 24 V.\n", "markdown_it"),
    ],
)
def test_reading_documents_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, content: bytes, needed: str
) -> None:
    for module in (*EXTRA, "lxml"):
        monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    (tmp_path / "manuals").mkdir()
    (tmp_path / "manuals" / file).write_bytes(content)
    ended = command(tmp_path, "infer.py", "index", "--documents", "manuals", "--kind", "bm25", "--out", "index")
    refused(ended, 2, needed, "'.[documents]'")


def test_reading_pages_of_the_web_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    searched = ["--system.retriever", "harness.retrievers.web.WebRetriever", "--system.retriever.service", "searxng"]
    ended = command(tmp_path, "infer.py", "ask", "--system", "harness.systems.retrieve_read.RetrieveRead", *searched,
                    "--system.retriever.base_url", "http://127.0.0.1:9", "--question", "Who?")  # fmt: skip
    refused(ended, 2, "trafilatura", "'.[web]'", "read_pages")
