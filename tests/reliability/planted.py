"""Planted changes: one line of code is changed at a time, and the test that notices it is written down.

    python -m tests.reliability.planted               # plants those of planted.json that have no result, one by one
    python -m tests.reliability.planted --only 1..30

The 120 changes were drawn by hash, as commit 3857baac has it: comparisons, signs, constants, dropped lines. A change is
planted in a copy of the last commit, never in the checkout. The test files that import its module run until the first
failure, the nearest by name first. A run that was stopped goes on where it was.
"""

import argparse
import ast
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RECORDS = Path(__file__).with_name("planted.json")
FOLDERS = ("models", "trainers", "datamodules", "harness")
TEST_FILES = 12
LIMIT_S, WAITED = 180, 5  # of processor time; times as long by the clock, on a busy machine
MARKS = "not slow and not gpu and not network"
Record = dict[str, Any]


def python_files(root: Path, *more: str) -> list[Path]:
    """All files of code, and of the folders named."""
    return sorted(path for name in (*FOLDERS, "common", "documents", *more) for path in (root / name).rglob("*.py"))


def block(record: Record) -> list[str]:
    """The line and its neighbours, by which it is found again."""
    return [*record["before"], record["old"], *record["after"]]


def places(record: Record, root: Path) -> list[tuple[Path, int]]:
    """The files and lines (from 0) where a change can be planted, also after its file has moved."""
    found, wanted = [], block(record)
    for path in python_files(root):
        if record["old"] in (text := path.read_text(encoding="utf-8")):
            lines = text.split("\n")
            starts = (at for at in range(len(lines)) if lines[at : at + len(wanted)] == wanted)
            found += [(path, at + len(record["before"])) for at in starts]
    return found


def tests_of(file: str, root: Path) -> list[str]:
    """The test files that import a file, or else those that import what imports it; the nearest by name first."""
    named: dict[str, set[str]] = {}
    for path in python_files(root, "tests"):
        names = named[path.relative_to(root).as_posix()] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    wanted, seen = {file}, {""}
    while wanted:
        modules = {name.removesuffix(".py").replace("/", ".") for name in wanted}
        importing = {name for name, names in named.items() if names & modules}
        near = {name: SequenceMatcher(None, file, name.removeprefix("tests/").replace("test_", "")).ratio()
                for name in importing if Path(name).name.startswith("test_")}  # fmt: skip
        if near:
            return sorted(near, key=lambda name: (-near[name], name))[:TEST_FILES]
        seen |= wanted
        wanted = importing - seen
    return []


def failures(tests: list[str], root: Path, limit_s: int, *options: str) -> list[str]:
    """The tests that fail, in order; `time` if they need more processor time, or do not end."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", MARKS, *options, *tests]
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            command, cwd=root, stdout=said, stderr=said, start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s)),
        )  # fmt: skip
        try:
            code = process.wait(WAITED * limit_s)
        except subprocess.TimeoutExpired:
            return ["time"]
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        if code in (-signal.SIGXCPU, -signal.SIGKILL):
            return ["time"]
        said.seek(0)
        named = re.findall(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", said.read(), re.MULTILINE)
    return named or ([] if code in (0, 5) else ["tests/conftest.py"])  # 5: no test has these marks


def result(record: Record, root: Path) -> str | None:
    """Plant a change, and name what catches it; None if it cannot be planted."""
    found = places(record, root)
    if len(found) != 1:
        return None
    path, at = found[0]
    tests = tests_of(path.relative_to(root).as_posix(), root)
    whole = path.read_bytes()
    lines = whole.decode().split("\n")
    try:
        path.write_text("\n".join([*lines[:at], record["new"], *lines[at + 1 :]]), encoding="utf-8")
        return next(iter(failures(tests, root, LIMIT_S, "-x")), "nothing") if tests else "nothing"
    finally:
        path.write_bytes(whole)


def save(records: list[Record]) -> None:
    """Write all records, or leave the file as it was."""
    part = RECORDS.with_suffix(".partial")
    part.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(RECORDS)


def run(copy: Path, first: int, last: int) -> None:
    """Try the changes that have no result; a test that fails without a change too has caught nothing."""
    records = json.loads(RECORDS.read_text(encoding="utf-8"))
    for number, record in enumerate(records[first - 1 : last], start=first):
        if record["caught_by"] is None:
            record["caught_by"] = result(record, copy)
            save(records)
            print(number, record["file"], record["function"], record["caught_by"] or "CANNOT BE PLANTED", flush=True)
    caught = {record["caught_by"].split("[")[0] for record in records[first - 1 : last] if record["caught_by"]}
    known = sorted(caught - {"time", "nothing"})
    for test in failures(known, copy, 20 * LIMIT_S) if known else []:
        print(f"{test} fails without a change too: its changes have no result", flush=True)
        for record in records:
            record["caught_by"] = None if record["caught_by"] == test else record["caught_by"]
    save(records)
    print(Counter(re.sub("^tests/.*", "a test", str(each["caught_by"])) for each in records))


def main() -> None:
    """Plant the changes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="1..120", help="the changes of these numbers, N..M")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        copy = Path(folder) / "copy"
        subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(copy)], check=True)
        run(copy, *map(int, options.only.split("..")))


if __name__ == "__main__":
    main()
