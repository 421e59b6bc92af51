"""How a command begins: signals stop it, wherever they find it."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import os, sys, time
from common.errors import exit_code
from common.beginning import begin

begin("program")

def main():
    if sys.argv[1] == "imports":
        import swallows
    if sys.argv[1] == "forks" and (child := os.fork()):
        time.sleep(0.2)  # it runs
        os.kill(child, int(sys.argv[2]))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        return
    print("at work", flush=True)
    if sys.argv[1] != "ends":
        time.sleep(30)

class Slow:
    def __del__(self):
        time.sleep(0.5)

slow = Slow()  # deleted when Python ends
raise SystemExit(exit_code("program", main, lambda: "All is kept."))
"""
SWALLOWS = """
import time
try:
    print("at work", flush=True)
    time.sleep(30)
except BaseException:
    pass
"""
CODES = {"SIGINT": 130, "SIGTERM": 75, "SIGUSR1": 75}


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """The program, when it has written its first line."""
    (folder / "swallows.py").write_text(SWALLOWS)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments], env={"PYTHONPATH": f"{Path(__file__).parents[2]}:{folder}"},
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    process.first_line = process.stdout.readline()  # type: ignore[attr-defined,union-attr]
    return process


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("what", ["works", "imports"])
def test_a_signal_ends_a_command_with_one_line(what: str, name: str, tmp_path: Path) -> None:
    process = started(tmp_path, what)
    process.send_signal(getattr(signal, name))
    _, err = process.communicate(timeout=20)
    assert process.returncode == CODES[name]
    told, by = ("interrupted", "") if name == "SIGINT" else ("stopped", f" by {name}")
    assert err == (f"program: {told}{by}. All is kept.\n" if what == "works" else f"program: {told}.\n")


def test_a_command_that_has_ended_keeps_its_exit_code_and_a_forked_process_takes_signals_as_before(tmp_path) -> None:
    ended = started(tmp_path, "ends")
    time.sleep(0.25)
    ended.terminate()
    assert ended.wait(20) == 0
    forks = started(tmp_path, "forks", str(int(signal.SIGTERM)))
    out, err = forks.communicate(timeout=20)
    assert (forks.returncode, err) == (0, "")
    assert f"{forks.first_line}{out}".split()[-1] == str(-signal.SIGTERM)
