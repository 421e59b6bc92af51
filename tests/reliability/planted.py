"""Planted changes: one line of code is changed at a time, and the test that notices it is written down.

    python -m tests.reliability.planted --results FILE   # plants those of planted.json, one by one
    python -m tests.reliability.planted --results FILE --only 1..30

The 120 changes were drawn by hash, as commit 3857baac has it: comparisons, signs, constants, dropped lines; those whose
code had left were drawn anew for version 0.3.0, as commit 9e540b97 has it. A change is planted in a copy of the last
commit, never in the checkout. First the test runs that noticed it last time, then the test files of the same folder
that import its module, the nearest by name first, those that train last, until the first failure. Each result is a line
of FILE at once, and a run that was stopped goes on where it was; with the last result all of them are written into
planted.json.
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
from functools import cache
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


@cache
def imported(root: Path) -> dict[str, set[str]]:
    """What each file of code and tests imports."""
    named: dict[str, set[str]] = {}
    for path in python_files(root, "tests"):
        names = named[path.relative_to(root).as_posix()] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return named


def tests_of(file: str, root: Path) -> list[str]:
    """The test files that import a file, or else those that import what imports it; the nearest by name first.

    Those of the file's own folder alone, if there are any.
    """
    wanted, seen = {file}, {""}
    while wanted:
        modules = {name.removesuffix(".py").replace("/", ".") for name in wanted}
        importing = {name for name, names in imported(root).items() if names & modules}
        near = {name: SequenceMatcher(None, file, name.removeprefix("tests/").replace("test_", "")).ratio()
                for name in importing if Path(name).name.startswith("test_")}  # fmt: skip
        if near:
            of_room = [name for name in near if name.startswith(f"tests/{file.split('/')[0]}/")]
            return sorted(of_room or near, key=lambda name: (-near[name], name))[:TEST_FILES]
        seen |= wanted
        wanted = importing - seen
    return []


def known_test(record: Record, root: Path) -> list[str]:
    """The test that noticed a change last time, whatever its parameters and wherever its file is now."""
    file, _, name = str(record["caught_by"]).split("[")[0].partition("::")
    defined = re.compile(rf"def {name.rpartition('::')[2]}\(")
    files = [root / file, *sorted((root / "tests").rglob("test_*.py"))] if name else []
    found = (path for path in files if path.is_file() and defined.search(path.read_text(encoding="utf-8")))
    return [f"{path.relative_to(root).as_posix()}::{name}" for path in found][:1]


def failures(tests: list[str], root: Path, limit_s: int, marks: str, *options: str) -> list[str]:
    """The tests that fail, in order; `time` if they need more processor time, or do not end."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", marks, *options, *tests]
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
    near = tests_of(path.relative_to(root).as_posix(), root)
    whole_runs = [name for name in near if "whole_run" in (root / name).read_text(encoding="utf-8")]
    turns = (
        (known_test(record, root), MARKS),
        (near, f"{MARKS} and not whole_run"),
        (whole_runs, f"{MARKS} and whole_run"),
    )
    whole = path.read_bytes()
    lines = whole.decode().split("\n")
    try:
        path.write_text("\n".join([*lines[:at], record["new"], *lines[at + 1 :]]), encoding="utf-8")
        failed = (failures(tests, root, LIMIT_S, marks, "-x") for tests, marks in turns if tests)
        return next((found[0] for found in failed if found), "nothing")
    finally:
        path.write_bytes(whole)


def save(records: list[Record]) -> None:
    """Write all records, or leave the file as it was."""
    part = RECORDS.with_suffix(".partial")
    part.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(RECORDS)


def run(copy: Path, results: Path, first: int, last: int) -> None:
    """Try the changes that have no result; a test that fails without a change too has caught nothing."""
    records: list[Record] = json.loads(RECORDS.read_text(encoding="utf-8"))
    lines = results.read_text(encoding="utf-8").splitlines() if results.is_file() else []
    caught = {(row["file"], row["old"], row["new"]): row["caught_by"] for row in map(json.loads, lines)}
    for number, record in enumerate(records[first - 1 : last], start=first):
        key = record["file"], record["old"], record["new"]
        if key not in caught:
            start = os.times()
            caught[key] = result(record, copy)
            seconds = round(os.times().children_user - start.children_user)
            row = {"number": number, **dict(zip(("file", "old", "new"), key, strict=True)),
                   "before": record["caught_by"], "caught_by": caught[key], "seconds": seconds}  # fmt: skip
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            print(number, key[0], record["function"], caught[key] or "CANNOT BE PLANTED", f"{seconds} s", flush=True)
    now = [caught.get((record["file"], record["old"], record["new"]), "") for record in records]
    if "" in now:
        return
    known = sorted({found.split("[")[0] for found in now if found} - {"time", "nothing"})
    unchanged = failures(known, copy, 20 * LIMIT_S, MARKS) if known else []
    for record, found in zip(records, now, strict=True):
        record["caught_by"] = None if found in unchanged else found
    print(*(f"{test} fails without a change too: its changes have no result" for test in unchanged), sep="\n")
    save(records)
    print(Counter(re.sub("^tests/.*", "a test", str(each["caught_by"])) for each in records))


def main() -> None:
    """Plant the changes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="1..120", help="the changes of these numbers, N..M")
    parser.add_argument("--results", type=Path, required=True, help="JSON Lines, of this run and of those before it")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        copy = Path(folder) / "copy"
        subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(copy)], check=True)
        run(copy, options.results, *map(int, options.only.split("..")))


if __name__ == "__main__":
    main()
