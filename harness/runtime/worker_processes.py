"""Worker processes of this project: requests and replies as JSON lines, replies in the order of the requests.

A worker is `python -m MODULE ARGUMENTS`, which calls `serve`. Unlike multiprocessing it needs no guard in the caller's
script, copies no threads, and ends with the process that started it. Standard library only.
"""

import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from common.errors import ArtifactError, UserError
from harness.runtime.isolated_process import SOURCE

MOST_WORKERS = 8


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def worker_count(workers: int | None) -> int:
    """Number of workers of an option; None: one for each processor of this rank, at most 8."""
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return max(1, min(processors() // ranks, MOST_WORKERS)) if workers is None else workers


class WorkerProcesses:
    """Processes of one kind; a context manager.

    Args:
        module: Its main program calls `serve`.
        arguments: Of every process.
        workers: Their number, at least 1.
    """

    def __init__(self, module: str, arguments: Sequence[str], workers: int) -> None:
        paths = [os.environ.get("PYTHONPATH", ""), str(SOURCE)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}
        # -P: no module of the current folder is imported in the place of an installed one
        command = [sys.executable, "-P", "-m", module, *arguments]
        self._processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
            for _ in range(workers)
        ]

    def __len__(self) -> int:
        return len(self._processes)

    def replies(self, requests: Iterable[Any]) -> Iterator[Any]:
        """The reply to each request, in order; one request at a time is with each process.

        Args:
            requests: JSON types.

        Raises:
            ArtifactError: If a worker cannot write a file.
            UserError: If a worker ended, for example for want of memory.
        """
        busy: deque[subprocess.Popen[bytes]] = deque()
        waiting = iter(requests)
        free = list(reversed(self._processes))
        for request in waiting:
            busy.append(self._send(free.pop(), request))
            if not free:
                break
        while busy:
            process = busy.popleft()
            reply = self._receive(process)
            for request in waiting:
                busy.append(self._send(process, request))
                break
            yield reply

    def _send(self, process: "subprocess.Popen[bytes]", request: Any) -> "subprocess.Popen[bytes]":
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        except OSError as error:
            raise self._ended(process) from error
        return process

    def _receive(self, process: "subprocess.Popen[bytes]") -> Any:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.endswith(b"\n"):
            raise self._ended(process)
        reply = json.loads(line)
        if "error" in reply:
            raise ArtifactError(reply["error"])
        return reply["reply"]

    @staticmethod
    def _ended(process: "subprocess.Popen[bytes]") -> UserError:
        process.kill()
        return UserError(
            f"A worker process ended with code {process.wait()}, for example for want of memory. Try fewer: workers 1."
        )

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):  # what is left of a request finds no reader
                        pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def serve(answer: Callable[[Any], Any]) -> None:
    """Answer requests until standard input ends; what `answer` prints goes to standard error.

    Args:
        answer: The reply to a request, JSON types.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the one that asks ends this one
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    for line in sys.stdin.buffer:
        try:
            reply = {"reply": answer(json.loads(line))}
        except OSError as error:
            reply = {
                "error": (
                    f"{error.filename or 'a file'}: {error.strerror or error}. Free space, or choose another folder."
                )
            }
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()
