"""Bad input on the real command line of infer.py: one clear line, an exit code, nothing half-written.

(train.py's are in tests/trainers.)
"""

import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import infer
from common.errors import exit_code
from models.drrag.triple_classifier import TripleClassifier
from models.drrag.triple_tokenizer import TEXT_FORMAT
from models.serving_manifest import write_manifest
from tests.conftest import hotpot_rows

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> int:
    """What the shell would see, without starting a process each time."""
    try:
        return exit_code("infer.py", lambda: infer.main(list(arguments)))
    except SystemExit as stop:
        return int(stop.code or 0)


Refused = Callable[..., None]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """Checks that a command is refused: with this code, in one line that holds these words."""

    def check(arguments: Sequence[str], code: int, *messages: str) -> None:
        capsys.readouterr()
        found, error = run(*arguments), capsys.readouterr().err
        assert found == code, (found, error[-2000:])
        line = next(line for line in error.splitlines() if line.startswith("infer.py: "))
        for message in messages:
            assert message in line

    return check


@pytest.fixture
def place(tmp_path: Path, checkpoints: dict[str, Path]) -> Path:
    """Two question files, a BM25 index of the first, a serving folder and a config."""
    for name, seed in (("here.json", 0), ("elsewhere.json", 9)):
        (tmp_path / name).write_text(json.dumps(hotpot_rows(8, seed)))
    assert run(*INDEX, "--corpus", "here.json") == 0
    TripleClassifier.build(str(checkpoints["bert"]), 96).save(tmp_path / "serving")
    write_manifest(tmp_path / "serving", "triple_classifier", TEXT_FORMAT, 96, attention="auto", threshold=0.5)
    return tmp_path


INDEX = ("index", "--kind", "bm25", "--layout", "hotpotqa", "--out", "bm25")
STRATEGY = (
    "--strategy", "harness.strategies.drrag.DrRag", "--strategy.serving", "serving", "--strategy.device", "cpu",
    "--strategy.retriever", "harness.retrievers.bm25.Bm25Retriever", "--strategy.retriever.index", "bm25",
)  # fmt: skip
EVALUATE = ("evaluate", *STRATEGY, "--out", "report", "--resamples", "50")
ASK = ("ask", *STRATEGY, "--question", "where was name1 born")


def test_the_good_way_works(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*EVALUATE, "--questions", "here.json") == 0
    table = (place / "report/report.md").read_text()
    assert all(name in table for name in ("SM", "QDC", "CIS", "CFS", "ranked"))
    capsys.readouterr()
    assert run(*ASK, "--json", "true") == 0
    assert len(json.loads(capsys.readouterr().out)["evidence"]) <= 4


def test_bad_questions(place: Path, refused: Refused) -> None:
    whole = gzip.compress((place / "here.json").read_bytes())
    (place / "torn.json.gz").write_bytes(whole[: len(whole) // 2])
    refused([*EVALUATE, "--questions", "torn.json.gz"], 65, "torn.json.gz", "truncated")
    rows = hotpot_rows(4)
    del rows[2]["context"]
    (place / "bare.json").write_text(json.dumps(rows, indent=1))
    refused([*EVALUATE, "--questions", "bare.json"], 65, "bare.json", "context", "line")
    refused([*EVALUATE, "--questions", "here.json", "--layout", "hotpot"], 2, "hotpot", "Did you mean hotpotqa?")
    refused([*EVALUATE, "--questions", "here.json", "--layout", "musique"], 65, "looks like hotpotqa")
    refused([*EVALUATE, "--questions", "nowhere.json"], 66, "nowhere.json")
    refused([*EVALUATE, "--questions", "elsewhere.json"], 74, "index of another corpus")
    assert not list(place.glob("report*"))


def test_bad_keys(place: Path, refused: Refused) -> None:
    refused([*ASK, "--strategy.threshhold", "0.5"], 2, "threshhold")
    refused([*ASK, "--strategy.selection.method", "best"], 2, "best", "cfs")
    refused([*ASK, "--strategy.selection.k", "0"], 2, "k")
    refused([*ASK, "--strategy.selection.k", "four"], 2, "four")
    refused(["aks"], 2, "aks")
    (place / "config.yaml").write_text("qestion: where\n")
    refused([*ASK, "--config", "config.yaml"], 2, "qestion")


def test_missing_or_corrupt_artefacts(place: Path, refused: Refused) -> None:
    refused([*ASK, "--strategy.serving", "nowhere"], 66, "nowhere", "no serving folder")
    refused([*ASK, "--strategy.retriever.index", "nowhere"], 66, "nowhere", "infer.py index")
    (place / "serving/README.md").write_text("an edited card")
    assert run(*ASK) == 0
    manifest = place / "serving/serving.json"
    whole = manifest.read_text()
    for typo in ('"threshold": 0.6', '"threshold": "0.5"', '"treshold": 0.5', '"threshold": 0.5,,'):
        manifest.write_text(whole.replace('"threshold": 0.5', typo))
        refused([*ASK], 74, "serving.json is")
    manifest.write_text(whole)
    weights = place / "serving/classifier/model.safetensors"
    whole_weights = weights.read_bytes()
    weights.write_bytes(whole_weights[:-1])
    refused([*ASK], 74, "model.safetensors is corrupt")
    weights.write_bytes(whole_weights)
    passages = place / "bm25/passages.jsonl"
    passages.write_bytes(passages.read_bytes().replace(b"born", b"dead", 1))
    refused([*ASK, "--strategy.selection.method", "sm"], 74, "bm25")


def test_another_index_is_not_overwritten_unasked(place: Path, refused: Refused) -> None:
    refused([*INDEX, "--corpus", "elsewhere.json"], 2, "bm25", "--overwrite")
    assert run(*INDEX, "--corpus", "elsewhere.json", "--overwrite", "true") == 0


def test_a_full_disk_leaves_nothing(place: Path) -> None:
    shutil.rmtree(place / "bm25")
    command = [sys.executable, str(ROOT / "infer.py"), *INDEX, "--corpus", "here.json"]
    limited = ["bash", "-c", 'ulimit -f 1; exec "$@"', "bash", *command]  # a file beyond 1 KiB fails as on a full disk
    full = subprocess.run(limited, cwd=place, capture_output=True, text=True, timeout=120)
    assert full.returncode == 74, full.stderr
    (line,) = [line for line in full.stderr.splitlines() if line.startswith("infer.py: ")]
    assert "cannot write" in line
    assert "Free space" in line
    assert "Traceback" not in full.stderr
    assert sorted(p.name for p in place.iterdir()) == ["elsewhere.json", "here.json", "serving"]
