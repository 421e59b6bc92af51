"""Processes that answer requests within limits on time and memory.

What a hostile file does to a parser hurts one request only.
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

SOURCE = Path(__file__).resolve().parents[2]  # where this project's packages lie
_EXIT_SECONDS = 5.0  # for a process that has closed its output to end
_PASSED = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL")  # of the environment: no keys


class ProcessEndedError(Exception):
    """A process ended, or was ended, before it answered.

    Args:
        code: Its exit code; negative: the signal that ended it, e.g. -SIGPROF after too much CPU time.
        answered: How many requests it had answered before.
        late: Whether it was ended because its answer did not come in time.
    """

    def __init__(self, code: int, answered: int, late: bool) -> None:
        super().__init__(f"the process ended with code {code}")
        self.code, self.answered, self.late = code, answered, late


class IsolatedProcesses:
    """Processes of one kind; an asynchronous context manager, for one event loop.  They start when they are needed.

    Args:
        module: Run as `python -m MODULE SECONDS MEBIBYTES ARGUMENTS`; it calls `harness.runtime.isolated_worker.serve`.
        workers: Processes at the same time.
        seconds: CPU time that a request may take.
        mebibytes: Of address space that a process may take.
        arguments: Further arguments.
        environment: Further variables that the processes get from the environment, by name.
        most_requests: A process that has answered so many is replaced by a new one; None: never.
    """

    def __init__(
        self,
        module: str,
        workers: int,
        seconds: float,
        mebibytes: int,
        arguments: Sequence[str] = (),
        environment: Sequence[str] = (),
        most_requests: int | None = None,
    ) -> None:
        # -P: no module of the current folder is imported in the place of an installed one
        self._command = (sys.executable, "-P", "-m", module, str(seconds), str(mebibytes), *arguments)
        self._environment = {name: os.environ[name] for name in (*_PASSED, *environment) if name in os.environ}
        paths = [os.environ.get("PYTHONPATH", ""), str(SOURCE)]
        self._environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        self._free = asyncio.Semaphore(workers)
        self._idle: list[asyncio.subprocess.Process] = []
        self.running: dict[asyncio.subprocess.Process, int] = {}  # with the number of requests that each has answered
        self._most_requests = most_requests

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in [*self.running]:
            await self._end(process)

    async def ask(self, about: dict[str, Any], data: bytes = b"", seconds: float | None = None) -> dict[str, Any]:
        """The answer to a request.

        Args:
            about: The request, JSON types only.
            data: Further bytes of it.
            seconds: How long to wait for the answer, which may take longer than its CPU time; None: as long as it
                takes.

        Raises:
            ProcessEndedError: If the process takes too much time or memory, or crashes.
        """
        async with self._free:
            process = self._idle.pop() if self._idle else await self._start()
            try:
                reply = await asyncio.wait_for(self._exchange(process, about, data), seconds)
            except (asyncio.IncompleteReadError, OSError, TimeoutError) as error:
                late = isinstance(error, TimeoutError)
                if not late:
                    with suppress(TimeoutError):  # it is ending by itself; to kill it now could hide its exit code
                        await asyncio.wait_for(process.wait(), _EXIT_SECONDS)
                answered = self.running[process]
                await self._end(process)
                assert process.returncode is not None
                raise ProcessEndedError(process.returncode, answered, late) from error
            except BaseException:  # cancelled in the middle: what the process answers next is of no request
                await self._end(process)
                raise
            self.running[process] += 1
            if self.running[process] == self._most_requests:
                await self._end(process)
            else:
                self._idle.append(process)
            return reply

    @staticmethod
    async def _exchange(process: asyncio.subprocess.Process, about: dict[str, Any], data: bytes) -> dict[str, Any]:
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None
        for part in (json.dumps(about).encode(), data):
            stdin.write(len(part).to_bytes(4, "big") + part)
        await stdin.drain()
        size = int.from_bytes(await stdout.readexactly(4), "big")
        return json.loads(await stdout.readexactly(size))

    async def _start(self) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=self._environment,
        )
        self.running[process] = 0
        return process

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """End a process, whatever it is doing."""
        self.running.pop(process, None)
        if process.returncode is None:
            process.kill()
        await process.wait()
