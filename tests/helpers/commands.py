"""Running the command lines in this process as a shell would: exit code, output and error lines."""

import io
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import infer
import train
from common.errors import exit_code
from tests.helpers.forked import ROOT, forked


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str


def command(folder: Path, program: str, *arguments: str) -> Ended:
    """Run `program` (train.py or infer.py) in `folder`.  What a shell would see as a traceback is raised here."""
    main = {"train.py": train.main, "infer.py": infer.main}[program]
    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        try:
            code = exit_code(program, lambda: main(list(arguments)))
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
    return Ended(code, out.getvalue(), err.getvalue())


def done(folder: Path, program: str, *arguments: str) -> Ended:
    """As `command`, of a command that must succeed."""
    ended = command(folder, program, *arguments)
    assert ended.code == 0, ended.err[-3000:]
    return ended


def apart(folder: Path, *arguments: str, processes: int = 1, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run infer.py in processes of its own, which may be killed."""
    return forked("infer", folder, *arguments, processes=processes, **environment)


def under_torchrun(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run infer.py by two processes of one thread each that torchrun starts."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    given = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    typed = [sys.executable, *launch, str(ROOT / "infer.py"), *arguments]
    return subprocess.run(typed, cwd=folder, env=given, capture_output=True, text=True, timeout=240)


def refused(ended: Ended, code: int, *parts: str) -> str:
    """The one line of a refused command, which ends with `code`; `parts` are in it."""
    lines = [line for line in ended.err.splitlines() if line.startswith(("train.py: ", "infer.py: "))]
    assert ended.code == code, (ended.code, ended.err[-3000:])
    assert len(lines) == 1, ended.err[-3000:]
    assert "Traceback" not in ended.err
    for part in parts:
        assert part in lines[0], lines[0]
    return lines[0]
