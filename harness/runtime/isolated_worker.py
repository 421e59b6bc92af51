"""The process side of `harness.runtime.isolated_process`.

Answers requests from standard input within limits on time and memory.

    in:   4 bytes length and a JSON object, 4 bytes length and bytes
    out:  4 bytes length and a JSON object

A hostile file may make a parser take minutes or gigabytes: SIGPROF ends this process when one request takes too much
CPU time, and memory is limited. Standard library only.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

OUT_OF_MEMORY = 4  # exit code: after a MemoryError nothing in this process is to be relied on


def serve(answer: Callable[[dict[str, Any], bytes], dict[str, Any]], seconds: float, mebibytes: int) -> None:
    """Answer requests until standard input ends.

    Args:
        answer: The answer to a request.
        seconds: CPU time that one request may take.
        mebibytes: Address space that the process may take.
    """
    import resource  # not on every system; the asking process imports this module too

    with suppress(ValueError, OSError):  # not on every system
        resource.setrlimit(resource.RLIMIT_AS, (mebibytes * 2**20,) * 2)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # What a library prints goes to standard error: standard output holds the answers.
    given, taken = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while head := given.read(4):
        about = json.loads(given.read(int.from_bytes(head, "big")))
        data = given.read(int.from_bytes(given.read(4), "big"))
        signal.setitimer(signal.ITIMER_PROF, seconds)  # SIGPROF ends the process, also within C code
        try:
            found = answer(about, data)
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        signal.setitimer(signal.ITIMER_PROF, 0)
        reply = json.dumps(found).encode()
        taken.write(len(reply).to_bytes(4, "big") + reply)
        taken.flush()
