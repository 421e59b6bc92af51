"""Bad input on the real command line of infer.py: one clear line, an exit code, nothing half-written.

(train.py's are in tests/trainers.)
"""

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from common.files import digests
from models.drrag.triple_classifier import TripleClassifier
from models.drrag.triple_tokenizer import TEXT_FORMAT
from models.serving_manifest import write_manifest
from tests.conftest import hotpot_rows
from tests.helpers.commands import Ended, command, refused
from tests.helpers.document_folders import manual, write_files
from tests.helpers.runs import ROOT

INDEX = "index --kind bm25 --layout hotpotqa --out bm25"
STRATEGY = (
    "--system harness.systems.drrag.DrRag --system.serving serving --system.device cpu "
    "--system.retriever harness.retrievers.bm25.Bm25Retriever --system.retriever.index bm25"
)
EVALUATE = f"evaluate {STRATEGY} --out report --resamples 50"
ASK = f"ask {STRATEGY} --question name1"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    """Question files, sound and broken, a BM25 index of the first, a serving folder and a config."""
    folder = tmp_path_factory.mktemp("bad")
    for name, seed in (("here.json", 0), ("elsewhere.json", 9)):
        (folder / name).write_text(json.dumps(hotpot_rows(8, seed)))
    whole = gzip.compress((folder / "here.json").read_bytes())
    (folder / "torn.json.gz").write_bytes(whole[: len(whole) // 2])
    rows = hotpot_rows(4)
    del rows[2]["context"]
    (folder / "bare.json").write_text(json.dumps(rows, indent=1))
    (folder / "config.yaml").write_text("qestion: where\n")
    assert typed(folder, f"{INDEX} --corpus here.json").code == 0
    TripleClassifier.build(str(checkpoints["bert"]), 96).save(folder / "serving")
    write_manifest(folder / "serving", "triple_classifier", TEXT_FORMAT, 96, attention="auto", threshold=0.5)
    return folder


def typed(folder: Path, line: str) -> Ended:
    return command(folder, "infer.py", *line.split())


def test_the_good_way_works(place: Path, tmp_path: Path) -> None:
    assert typed(place, f"{EVALUATE} --questions here.json --out {tmp_path}/report").code == 0
    table = (tmp_path / "report/report.md").read_text()
    assert all(name in table for name in ("SM", "QDC", "CIS", "CFS", "ranked"))
    (place / "serving/README.md").write_text("an edited card is no damage")
    assert len(json.loads(typed(place, f"{ASK} --json true").out)["evidence"]) <= 4


@pytest.mark.parametrize(
    ("line", "code", "parts"),
    [
        (f"{EVALUATE} --questions torn.json.gz", 65, ["torn.json.gz", "truncated"]),
        (f"{EVALUATE} --questions bare.json", 65, ["bare.json", "context", "line"]),
        (f"{EVALUATE} --questions elsewhere.json", 74, ["index of another corpus"]),
        (f"{INDEX} --corpus elsewhere.json", 2, ["bm25", "--overwrite"]),
        (f"{ASK} --system.threshhold 0.5", 2, ["threshhold"]),
        (f"{ASK} --system.selection.k 0", 2, ["k"]),
        (f"{ASK} --system.selection.k four", 2, ["four"]),
        (f"{ASK} --config config.yaml", 2, ["qestion"]),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(place: Path, line: str, code: int, parts: list[str]) -> None:
    before = digests(place)
    refused(typed(place, line), code, *parts)
    assert digests(place) == before


@pytest.mark.parametrize(
    ("name", "sound", "damaged", "part"),
    [
        ("serving/serving.json", b'"threshold": 0.5', b'"threshold": 0.6', "serving.json is"),
        ("serving/serving.json", b'"threshold": 0.5', b'"threshold": "0.5"', "serving.json is"),
        ("serving/serving.json", b'"threshold": 0.5', b'"threshold": 0.5,,', "serving.json is"),
        ("serving/classifier/model.safetensors", None, None, "model.safetensors is corrupt"),
        ("bm25/passages.jsonl", b"born", b"dead", "bm25"),
    ],
)
def test_a_damaged_file_is_named(place: Path, name: str, sound: bytes | None, damaged: bytes, part: str) -> None:
    whole = (place / name).read_bytes()
    (place / name).write_bytes(whole.replace(sound, damaged, 1) if sound else whole[:-1])
    try:
        refused(typed(place, ASK), 74, part)
    finally:
        (place / name).write_bytes(whole)


def on_a_full_disk(folder: Path, *arguments: str) -> Ended:
    """infer.py where a file beyond 1 KiB fails as on a full disk."""
    started = [sys.executable, str(ROOT / "infer.py"), *arguments]
    limited = ["bash", "-c", 'ulimit -f 1; exec "$@"', "bash", *started]
    given = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
    }  # CPython takes a compiled module that is cut for a whole one
    full = subprocess.run(limited, cwd=folder, env=given, capture_output=True, text=True, timeout=120)
    return Ended(full.returncode, full.stdout, full.stderr)


def test_a_full_disk_leaves_nothing(place: Path, tmp_path: Path) -> None:
    shutil.copy(place / "here.json", tmp_path)
    refused(on_a_full_disk(tmp_path, *INDEX.split(), "--corpus", "here.json"), 74, "cannot write", "Free space")
    assert [path.name for path in tmp_path.iterdir()] == ["here.json"]


def test_a_full_disk_ends_the_reading_of_documents(tmp_path: Path) -> None:
    write_files(tmp_path / "manuals", {"a.md": manual("Alba", 200)})
    ended = on_a_full_disk(tmp_path, "index", "--documents", "manuals", "--kind", "bm25", "--out", "bm25")
    refused(ended, 74, "document.md: cannot write", "Free space")


def test_a_file_that_is_nested_too_deeply_is_one_line(place: Path, tmp_path: Path) -> None:
    deep = "[" * 3000 + "]" * 3000
    write_files(tmp_path, {"config.yaml": f"system: {deep}\n", "serving/serving.json": deep})
    refused(typed(tmp_path, "ask --config config.yaml --question x"), 65, "nested more deeply")
    refused(typed(tmp_path, "export --serving serving --out onnx"), 74, "serving.json is not valid JSON")
