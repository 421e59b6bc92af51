"""Damaged files and full disks under infer.py: one clear line, an exit code, nothing half-written."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.commands import Ended, command, refused
from tests.helpers.document_folders import manual, write_files
from tests.helpers.runs import ROOT


@pytest.mark.parametrize(
    ("name", "sound", "damaged", "part"),
    [
        ("both/serving.json", b'"max_tokens": 64', b'"max_tokens": 65', "serving.json is"),
        ("both/serving.json", b'"max_tokens": 64', b'"max_tokens": "64"', "serving.json is"),
        ("both/serving.json", b'"max_tokens": 64', b'"max_tokens": 64,,', "serving.json is"),
        ("both/estimator/model.safetensors", None, None, "model.safetensors is corrupt"),
        ("bm25/passages.jsonl", b"river", b"rover", "bm25"),
    ],
)
def test_a_damaged_file_is_named(
    made: Callable[[str], Path], name: str, sound: bytes | None, damaged: bytes, part: str
) -> None:
    place = made("asking")
    whole = (place / name).read_bytes()
    (place / name).write_bytes(whole.replace(sound, damaged, 1) if sound else whole[:-1])
    try:
        refused(command(place, "infer.py", "ask", "--config", "rerag.yaml", "--question", "alba river"), 74, part)
    finally:
        (place / name).write_bytes(whole)


def test_a_full_disk_is_one_line_and_leaves_no_index(made: Callable[[str], Path], tmp_path: Path) -> None:
    """Of processes for which a file beyond 1 KiB fails as on a full disk."""
    shutil.copy(made("asking") / "questions.json", tmp_path)
    write_files(tmp_path / "manuals", {"a.md": manual("Alba", 200)})
    for options, said in (
        (("--corpus", "questions.json", "--layout", "hotpotqa"), "cannot write"),
        (("--documents", "manuals"), "document.md: cannot write"),
    ):
        typed = [sys.executable, str(ROOT / "infer.py"), "index", "--kind", "bm25", "--out", "bm25", *options]
        limited = ["bash", "-c", 'ulimit -f 1; exec "$@"', "bash", *typed]
        given = os.environ | {
            "PYTHONDONTWRITEBYTECODE": "1"
        }  # CPython takes a compiled module that is cut for a whole one
        full = subprocess.run(limited, cwd=tmp_path, env=given, capture_output=True, text=True, timeout=120)
        refused(Ended(full.returncode, full.stdout, full.stderr), 74, said, "Free space")
        assert not [*tmp_path.glob("*bm25*")]
