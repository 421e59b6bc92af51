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


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("what", ["works", "imports"])
def test_a_signal_ends_a_command_with_one_line(what: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "swallows.py").write_text(SWALLOWS)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, what], env={"PYTHONPATH": f"{Path(__file__).parents[2]}:{tmp_path}"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "at work\n"
    process.send_signal(getattr(signal, name))
    _, err = process.communicate(timeout=20)
    assert process.returncode == CODES[name]
    told = {"works": f"stopped by {name}. All is kept", "imports": "stopped"}[what] if name != "SIGINT" else (
        {"works": "interrupted. All is kept", "imports": "interrupted"}[what]
    )  # fmt: skip
    assert err == f"program: {told}.\n"


def test_a_command_that_has_ended_keeps_its_exit_code() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "ends"], env={"PYTHONPATH": str(Path(__file__).parents[2])}, text=True,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.25)
    process.terminate()
    assert process.wait(20) == 0


def test_a_forked_process_takes_signals_as_before() -> None:
    number = signal.SIGTERM
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "forks", str(int(number))], env={"PYTHONPATH": str(Path(__file__).parents[2])},
        text=True, capture_output=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout.split()[-1], done.stderr) == (0, str(-number), "")
