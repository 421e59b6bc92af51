"""Damaged files: bits are flipped and files cut short, and what then comes of them is compared with what should.

    python -m tests.reliability.flips
    python -m tests.reliability.flips --only "index"

Of each kind of file that the project writes (`tests.reliability.artefacts`) 20 bits are flipped and 8 ends cut off, one
at a time, at places that a hash chooses; then a user's command reads it. Each time the damage is *refused* (one error
line, exit code not 0), the file is *made anew*, it has *no effect* (what comes of it is the same), or it is *silently
wrong*. A traceback is no refusal. `flips.json` keeps the counts by commit.
"""

import argparse
import contextlib
import gc
import io
import json
import os
import pickle
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from tests.exactness.training import digest
from tests.helpers.commands import Ended, command
from tests.reliability.artefacts import ARTEFACTS, Artefact
from tests.reliability.workplace import endpoint, write_files

ROOT, RECORDS = Path(__file__).parents[2], Path(__file__).with_name("flips.json")
FLIPS, CUTS, LIMIT_S = 20, 8, 120
OUTCOMES = ("refused", "made anew", "no effect", "silently wrong", "traceback")
BASES = ("index bm25", "index dense", "documents that were read", "serving folder: adapter of a causal rewriter")
PROSE = (".md", ".png", ".html", ".log", ".lock")  # for people, or empty
MENDED = re.compile("again|corrupt|damaged|dropped|incomplete|Starting over")  # what is said of such a file
LOADED = ("trainers.run.cli", "peft", "datasets", "torchmetrics", "faiss", "bm25s", "openai", "onnxruntime", "docx")


@dataclass(frozen=True)
class Seen:
    """What a command has done: exit code, what it has said, and what counts of it."""

    code: int
    said: str
    value: Any = None


# Running


def run(line: str, result: str = "") -> Seen:
    """Run a command line in a fork of this process, which has the libraries loaded.

    Args:
        line: As in `Artefact`.
        result: As there.
    """
    with tempfile.TemporaryDirectory() as told:
        child = os.fork()
        if not child:
            try:
                signal.alarm(LIMIT_S)
                seen = ended(line, result)
            except BaseException as error:
                seen = Seen(-1, f"Traceback: {type(error).__name__}: {error}")
            Path(told, "seen").write_bytes(pickle.dumps(seen))
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return pickle.loads(Path(told, "seen").read_bytes()) if status == 0 else Seen(status, "")


def ended(line: str, result: str) -> Seen:
    """In the fork: run it."""
    for number in (1, 2):  # what libraries print
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    program, _, rest = line.partition(" ")
    while "=" in program:
        name, _, value = program.partition("=")
        os.environ[name] = value
        program, _, rest = rest.partition(" ")
    if program == "python":
        with contextlib.redirect_stdout(io.StringIO()) as out:
            try:
                exec(rest, {})
            except Exception as error:  # another library's way to refuse
                return Seen(1, f"infer.py: {type(error).__name__}")
        return Seen(0, "", out.getvalue())
    sys.argv = ["train.py"]  # Lightning warns of others
    words = shlex.split(rest) if program == "train.py" else [program, *shlex.split(rest)]
    found = command(Path(), program if program == "train.py" else "infer.py", *words)
    return Seen(found.code, found.err + found.out, value_of(found, Path(result)) if found.code == 0 else None)


def value_of(found: Ended, result: Path) -> Any:
    """What counts of a command that has ended."""
    if result == Path():
        answers = [json.loads(line) for line in found.out.splitlines() if line.startswith("{")]
        return [{key: value for key, value in answer.items() if key != "costs"} for answer in answers]
    if result.suffix == ".ckpt":
        return digest(torch.load(result, weights_only=True)["state_dict"])
    files = [file for file in sorted(result.rglob("*")) if file.is_file()] if result.is_dir() else [result]
    lines = [line for file in files for line in file.read_bytes().splitlines()]
    return [line for line in lines if not re.search(rb"second|\btime\b", line)]


# Damages


def damaged(whole: bytes, row: str, number: int) -> bytes:
    """The content with one bit flipped, or cut short from the damage number `FLIPS` on."""
    place = int(sha256(f"{row} {number}".encode()).hexdigest(), 16)
    if number >= FLIPS:
        return whole[: place % len(whole)]
    content = bytearray(whole)
    content[place % len(whole)] ^= 1 << place // len(whole) % 8
    return bytes(content)


def files_by_row(artefact: Artefact) -> dict[str, list[Path]]:
    """The files that are damaged by the row of the table: folder, without numbers, and ending."""
    root = Path(artefact.files)
    by_row: dict[str, list[Path]] = {}
    for file in sorted(root.rglob("*") if root.is_dir() else Path().glob(artefact.files)):
        if file.is_file() and file.stat().st_size and file.suffix not in PROSE:
            within = file.parent.relative_to(root) if root.is_dir() else Path()
            row = re.sub(r"[0-9a-f]{12,}|\b\d+\b", "*", str(within / f"*{file.suffix}"))
            by_row.setdefault(row, []).append(file)
    return by_row


def outcome(seen: Seen, whole: Seen, changed: bool) -> str:
    """What has come of a damage.

    Args:
        seen: Of the command on the damaged file.
        whole: Of the same command on the file as it was.
        changed: Whether the command has written the damaged file anew.
    """
    if seen.code:
        lines = [line for line in seen.said.splitlines() if line.startswith(("infer.py: ", "train.py: "))]
        return "refused" if len(lines) == 1 and "Traceback" not in seen.said else "traceback"
    if seen.value != whole.value:
        return "silently wrong"
    said, usual = ({re.sub(r"\d", "", line) for line in each.said.splitlines()} for each in (seen, whole))
    return "made anew" if changed or any(map(MENDED.search, said - usual)) else "no effect"


def holds(file: Path, content: bytes) -> bool:
    """Whether a file is there and has this content."""
    return file.is_file() and file.read_bytes() == content


def state(artefact: Artefact) -> list[Path]:
    """What the command may change."""
    return [Path(*Path(path).parts[:2]) for path in (artefact.files.removesuffix("*.*"), artefact.result) if path]


def copy(paths: list[Path], source: Path, target: Path) -> None:
    """Make paths of a folder as they are in another one."""
    for path in paths:
        shutil.rmtree(target / path, ignore_errors=True)
        (target / path).unlink(missing_ok=True)
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        if (source / path).exists():
            subprocess.run(["cp", "-a", source / path, target / path], check=True)


def ready(artefact: Artefact) -> None:
    """Write its files."""
    for line in artefact.made:
        seen = run(line)
        assert seen.code in (0, -signal.SIGKILL), f"{line}: {seen.said}"


def tried(artefact: Artefact, numbers: range, kept: Path) -> dict[str, Counter[str]]:
    """Damage each file of an artefact, and count the outcomes by row."""
    copy(state(artefact), Path(), kept)
    whole = run(artefact.use, artefact.result)
    assert whole.code == 0, f"{artefact.use}: {whole.said}"
    copy(state(artefact), kept, Path())
    before = {file: file.read_bytes() for files in files_by_row(artefact).values() for file in files}
    assert run(artefact.use, artefact.result).value == whole.value, f"{artefact.use}: not the same twice"
    rewritten = {file for file, content in before.items() if not holds(file, content)}  # without a damage too
    copy(state(artefact), kept, Path())
    counts: dict[str, Counter[str]] = {}
    for name, files in files_by_row(artefact).items():
        row = counts[f"{artefact.name}: {name}"] = Counter()
        for number in numbers:
            file = files[number % len(files)]
            content = damaged(file.read_bytes(), f"{artefact.name} {name}", number)
            file.write_bytes(content)
            seen = run(artefact.use, artefact.result)
            found = outcome(seen, whole, file not in rewritten and not holds(file, content))
            copy(state(artefact), kept, Path())
            row[found] += 1
            if found in ("silently wrong", "traceback"):
                print(f"{file}, damage {number}: {found} {seen.said[-300:]}", flush=True)
    return counts


def table(counts: dict[str, dict[str, int]]) -> str:
    """A Markdown table."""
    lines = [["file", *OUTCOMES], ["---"] * (1 + len(OUTCOMES))]
    lines += [[row, *(str(found.get(each, 0)) for each in OUTCOMES)] for row, found in counts.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Damage the files, print the table, and keep the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="artefacts whose names begin so; counts of others stay")
    options = parser.parse_args()
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True)[:12]
    for name in LOADED:
        import_module(name)
    gc.collect()
    gc.freeze()  # a collection in a fork would copy the memory of all that is loaded
    with tempfile.TemporaryDirectory(prefix="flips-") as folder, endpoint() as address:
        Path(folder, "work").mkdir()
        with contextlib.chdir(Path(folder, "work")):
            write_files(address)
            for artefact in ARTEFACTS:
                if artefact.name.startswith(options.only) or artefact.name in BASES:
                    ready(artefact)
                if artefact.name.startswith(options.only):
                    counts = tried(artefact, range(FLIPS + CUTS), Path(folder, "kept"))
                    records = json.loads(RECORDS.read_text()) if RECORDS.is_file() else {}
                    records[commit] = records.get(commit, {}) | counts
                    RECORDS.write_text(json.dumps(records, indent=1) + "\n")
                    print(table(counts), flush=True)


if __name__ == "__main__":
    main()
