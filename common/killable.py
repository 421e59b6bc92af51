"""Calls of a function in processes that are killed when one takes too much time or memory.  Standard library only.

A file that breaks its parser ends only its own call. A process serves one call after the other, and ends with its
parent, however that ends. It runs this file: arguments come pickled, results go as lines of JSON.
"""

import ctypes
import json
import os
import pickle
import pkgutil
import resource
import signal
import sys
import threading
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

_PASSED = {  # no keys
    "PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "LD_LIBRARY_PATH", "LANG", "LC_ALL",
    "OMP_NUM_THREADS",
}  # fmt: skip
_WAIT = 4  # times the CPU time that a call may take: how long its result is waited for
_PDEATHSIG = 1  # prctl: the signal that a process gets when the one that has started it ends
_OUT_OF_MEMORY = 4  # exit code: after a MemoryError nothing in a process is to be relied on


class CallError(Exception):
    """Why a call has no result: a kind (slow, large, crashed; raised, by the function) and a line."""


class Killable:
    """Calls one function in processes, from any number of threads; `contextlib.closing` kills them at the end.

    Args:
        function: Where it is, `package.module:name`; its results are JSON types.
        processes: At the same time; each starts when it is needed.
        seconds: Of CPU time that a call may take; 0: any.
        mebibytes: Of address space that a process may take; 0: any.
    """

    def __init__(self, function: str, processes: int, seconds: float = 0, mebibytes: int = 0) -> None:
        # -P: no module of the current folder is imported in the place of an installed one
        self._command = [sys.executable, "-P", __file__, function, str(seconds), str(mebibytes), str(os.getpid())]
        self._environment = {name: os.environ[name] for name in _PASSED & os.environ.keys()}
        self._environment["MALLOC_ARENA_MAX"] = "1"  # else each thread takes 64 MiB of address space
        self._wait_seconds, self._closed = _WAIT * seconds or threading.TIMEOUT_MAX, False
        self._threads, self._own = ThreadPoolExecutor(processes), threading.local()  # each thread has a process
        self.running: set[Popen[bytes]] = set()

    def submit(self, *arguments: Any) -> Future[Any]:
        """The result of a call, or CallError.  Arguments can be pickled.

        If a process that has served other calls dies, the call is repeated once in a new process.
        """
        return self._threads.submit(self._call, arguments)

    def close(self) -> None:
        """Kill the processes, whatever they are doing; calls that have no result yet are cancelled."""
        self._closed = True
        for process in [*self.running]:
            process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self.running:
            process.communicate()

    def _call(self, arguments: tuple[Any, ...]) -> Any:
        used = getattr(self._own, "process", None)
        process: Any = used or Popen(
            self._command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=self._environment, start_new_session=True
        )  # Ctrl-C reaches the process that asks, which ends this one
        self.running.add(process)
        timer = threading.Timer(self._wait_seconds, process.send_signal, [signal.SIGPROF])
        timer.start()
        with suppress(BrokenPipeError):  # it has ended
            pickle.dump(arguments, process.stdin)
            process.kill() if self._closed else process.stdin.flush()
        if (line := process.stdout.readline()).endswith(b"\n"):
            timer.cancel()
            self._own.process, (succeeded, reply) = process, json.loads(line)
            if succeeded:
                return reply
            raise CallError("raised", reply)
        process.communicate()
        timer.cancel()
        self.running.discard(process)
        self._own.process, code = None, process.returncode
        if self._closed:
            raise CancelledError
        if used and code != -signal.SIGPROF:
            return self._call(arguments)
        ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        raise CallError({-signal.SIGPROF: "slow", _OUT_OF_MEMORY: "large"}.get(code, "crashed"), ended)


def _serve(function: str, seconds: float, mebibytes: int, asking: int) -> None:
    """Serve calls until standard input ends."""
    sys.path.insert(0, __file__.removesuffix("/common/killable.py"))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if mebibytes:
        resource.setrlimit(resource.RLIMIT_AS, (mebibytes * 2**20,) * 2)
    if sys.platform == "linux":  # at once; elsewhere, and before this line, when `_receive` gets to run
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != asking:  # it has ended before this line
            os._exit(1)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no reply
    calls: SimpleQueue[tuple[Any, ...]] = SimpleQueue()
    threading.Thread(target=_receive, args=(calls,), daemon=True).start()
    while True:
        arguments = calls.get()
        signal.setitimer(signal.ITIMER_PROF, seconds)  # SIGPROF ends this process, also within C code
        try:
            reply = True, pkgutil.resolve_name(function)(*arguments)
        except MemoryError:
            os._exit(_OUT_OF_MEMORY)
        except Exception as error:
            reply = False, " ".join(f"{type(error).__name__}: {error}".split())
        signal.setitimer(signal.ITIMER_PROF, 0)
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()


def _receive(calls: SimpleQueue[tuple[Any, ...]]) -> None:
    """Take calls; the end of standard input ends this process, also during a call."""
    try:
        while True:
            calls.put(pickle.load(sys.stdin.buffer))
    except MemoryError:
        os._exit(_OUT_OF_MEMORY)
    except BaseException:
        os._exit(1)


if __name__ == "__main__":
    _serve(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
