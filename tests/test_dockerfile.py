"""The Dockerfile, where no Docker is: what it copies is there and enough to serve, and its command parses."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.helpers.forked import ROOT

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_it_installs_what_the_repository_pins() -> None:
    (copied,) = re.findall(r"^COPY (requirements.*) \./$", TEXT, re.MULTILINE)
    installed = set(re.findall(r"-r (requirements\S*\.txt)", TEXT)) | {re.findall(r"REQUIREMENTS=(\S+)", TEXT)[-1]}
    needed = {*installed}
    for name in copied.split():
        needed |= set(re.findall(r"^-r (\S+)", (ROOT / name).read_text(), re.MULTILINE))
    assert {*copied.split()} >= needed
    assert "requirements-serve.txt" in installed


def test_what_it_copies_is_enough_to_serve(tmp_path: Path) -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    for source, target in re.findall(r"^COPY (?!--from)(\S+) /app/(\S*)$", TEXT, re.MULTILINE):
        assert f"!{source}" in ignored
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, tmp_path / target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, tmp_path / target)
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", TEXT, re.MULTILINE)
    _, program, *arguments = json.loads(entry)
    typed = [sys.executable, program.replace("/app", str(tmp_path)), *arguments, "--serving", "nowhere"]
    given = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(typed, cwd=tmp_path, capture_output=True, text=True, env=given, timeout=300)
    assert ended.returncode == 66, ended.stderr
    assert "nowhere" in ended.stderr
