"""Isolated processes: what one request does to its process, no other request feels."""

import asyncio
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

import pytest

from harness.runtime.isolated_process import IsolatedProcesses, ProcessEndedError
from harness.runtime.isolated_worker import OUT_OF_MEMORY

Asked = tuple[dict[str, Any], bytes, float | None]


def ask(
    requests: Sequence[Asked], workers: int = 1, seconds: float = 20.0, mebibytes: int = 400, **options: Any
) -> list[dict[str, Any] | ProcessEndedError]:
    async def work() -> list[dict[str, Any] | ProcessEndedError]:
        async with IsolatedProcesses(
            "tests.helpers.misbehaving_worker", workers, seconds, mebibytes, **options
        ) as processes:

            async def one(request: Asked) -> dict[str, Any] | ProcessEndedError:
                try:
                    return await processes.ask(*request)
                except ProcessEndedError as error:
                    return error

            found = await asyncio.gather(*map(one, requests))
            assert len(processes.running) <= workers
            running = [*processes.running]
        assert all(process.returncode is not None for process in running)
        return found

    return asyncio.run(work())


def do(what: str, data: bytes = b"", within: float | None = None, **more: Any) -> Asked:
    return {"do": what, **more}, data, within


def test_requests_are_answered_by_the_same_process() -> None:
    found = ask([do("tell", b"x" * 3_000_000), do("print"), do("tell")])
    assert [each["length"] for each in found] == [3_000_000, 0, 0]  # type: ignore[index]
    assert len({each["process"] for each in found}) == 1  # type: ignore[index]


def test_a_process_is_replaced_after_so_many_requests() -> None:
    found = ask([do("tell")] * 5, most_requests=2)
    processes = [each["process"] for each in found]  # type: ignore[index]
    assert [processes.index(each) for each in processes] == [0, 0, 2, 2, 4]


@pytest.mark.parametrize(
    ("request_", "code", "late"),
    [
        (do("crash"), -signal.SIGSEGV, False),
        pytest.param(
            do("allocate", mebibytes=500),
            OUT_OF_MEMORY,
            False,
            marks=pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS holds on Linux"),
        ),
        (do("work", seconds=60), -signal.SIGPROF, False),
        (do("sleep", within=0.5, seconds=60), -signal.SIGKILL, True),
    ],
)
def test_a_process_that_ends_takes_its_own_request_only(request_: Asked, code: int, late: bool) -> None:
    began = time.monotonic()
    found = ask([do("tell"), request_, do("tell")], seconds=1.0)
    assert time.monotonic() - began < 20
    lost = found[1]
    assert isinstance(lost, ProcessEndedError)
    assert (lost.code, lost.answered, lost.late) == (code, 1, late)
    before, after = found[0], found[2]
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    assert before["process"] != after["process"]


def test_cpu_time_is_counted_for_each_request() -> None:
    """Many requests do not use up what one may take, and waiting is not counted."""
    found = ask([do("work", seconds=0.6), do("work", seconds=0.6), do("sleep", seconds=1.2)], seconds=1.0)
    assert all(isinstance(each, dict) for each in found)


def test_a_cancelled_request_leaves_no_process_that_would_answer_the_next_one() -> None:
    async def work() -> dict[str, Any]:
        async with IsolatedProcesses("tests.helpers.misbehaving_worker", 1, 20.0, 400) as processes:
            waiting = asyncio.ensure_future(processes.ask({"do": "sleep", "seconds": 30}, b"lost"))
            await asyncio.sleep(1.0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert not processes.running
            return await processes.ask({"do": "tell"}, b"next one")

    assert asyncio.run(work())["length"] == len(b"next one")


def test_processes_get_no_variables_but_the_named_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("HF_HOME", "models")
    (plain,) = ask([do("tell")])
    (named,) = ask([do("tell")], environment=["HF_HOME"])
    assert isinstance(plain, dict)
    assert isinstance(named, dict)
    assert not {"SOME_API_KEY", "HF_HOME"} & {*plain["variables"]}
    assert "HF_HOME" in named["variables"]
