"""Killable processes: what one call does to its process, no other call feels."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from common.killable import CallError, Killable

DO = "tests.helpers.misbehaving:do"
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS holds on Linux")
Call = tuple[Any, ...]


def results(calls: Sequence[Call], processes: int = 1, **options: Any) -> list[Any]:
    """What becomes of each call; errors as values."""
    limits = {"seconds": 20.0, "mebibytes": 400, **options}
    with closing(Killable(DO, processes, **limits)) as killable:
        found = []
        for call in calls:
            try:
                found.append(killable.submit(*call).result())
            except CallError as error:
                found.append(error)
        assert len(killable.running) <= processes
        running = [*killable.running]
    assert all(process.returncode is not None for process in running)
    return found


def test_calls_are_served_by_the_same_process_without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception is one line and leaves the process."""
    monkeypatch.setenv("SOME_API_KEY", "secret")
    first, second, lost, last = results([("tell", 0, b"x" * 3_000_000), ("print",), ("raise",), ("tell",)])
    assert [each["length"] for each in (first, second, last)] == [3_000_000, 0, 0]
    assert first["process"] == second["process"] == last["process"]
    assert lost.args == ("raised", "ValueError: two lines")
    assert ("SOME_API_KEY" in last["variables"], "PATH" in last["variables"]) == (False, True)
    with closing(Killable("tests.helpers.misbehaving:no", 1)) as killable, pytest.raises(CallError, match="AttributeE"):
        killable.submit().result()


ENDING = [
    (("crash",), "crashed", "SIGSEGV"),
    pytest.param(("allocate", 500), "large", "exit code 4", marks=ON_LINUX),
    (("work", 60), "slow", "SIGPROF"),
    (("sleep", 60), "slow", "SIGPROF"),
]


@pytest.mark.parametrize(("call", "kind", "why"), ENDING)
def test_a_process_that_ends_takes_its_own_call_only(call: Call, kind: str, why: str) -> None:
    began = time.monotonic()
    before, lost, after = results([("tell",), call, ("tell",)], seconds=1.0)
    assert time.monotonic() - began < 20
    assert lost.args == (kind, why)
    assert before["process"] != after["process"]


def test_cpu_time_is_counted_for_each_call() -> None:
    """Many calls do not use up what one may take, and waiting is not counted."""
    assert all(isinstance(each, dict) for each in results([("work", 0.6), ("work", 0.6), ("sleep", 1.2)], seconds=1.0))


def test_what_may_be_the_fault_of_earlier_calls_is_tried_by_a_new_process(tmp_path: Path) -> None:
    before, after = results([("tell",), ("crash once", str(tmp_path / "once"))])
    assert before["process"] != after["process"]
    (lost,) = results([("crash once", str(tmp_path / "other"))])
    assert lost.args == ("crashed", "SIGSEGV")


def test_as_many_calls_run_at_a_time_as_there_are_processes() -> None:
    with closing(Killable(DO, 2)) as killable:
        found = [each.result() for each in [killable.submit("sleep", 0.1) for _ in range(6)]]
        assert len(killable.running) == 2
    assert len({each["process"] for each in found}) == 2


def test_closing_cancels_what_runs_and_what_waits() -> None:
    killable = Killable(DO, 1)
    calls = killable.submit("sleep", 60), killable.submit("tell")
    while not killable.running:
        time.sleep(0.01)
    time.sleep(0.3)
    killable.close()
    for each in calls:
        with pytest.raises(CancelledError):
            each.result(10)


@pytest.mark.parametrize("what", ["sleep", "hold"])
@pytest.mark.parametrize("at", ["while it starts", "during a call"])
def test_a_process_ends_with_the_one_that_asks(what: str, at: str) -> None:
    code = f"""
import time
from common.killable import Killable
killable = Killable({DO!r}, 1)
if {at == "during a call"}:
    killable.submit("tell").result()
asked = killable.submit({what!r}, 60)
while not killable.running:
    time.sleep(0.001)
print(next(iter(killable.running)).pid, flush=True)
asked.result()
"""
    asking = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    process = int(asking.stdout.readline())  # type: ignore[union-attr]
    time.sleep(0.5 if at == "during a call" else 0)  # it has got the call
    asking.kill()
    asking.wait()
    until = time.monotonic() + 5
    while time.monotonic() < until and _runs(process):
        time.sleep(0.05)
    running = _runs(process)
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    assert not running


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
