"""A function for `common.killable` that does what it is asked, also what hurts its process."""

import os
import re
import signal
import time
from pathlib import Path
from typing import Any


def do(what: str, amount: Any = 0, data: bytes = b"") -> dict[str, Any]:
    """Do it, and say what process this is."""
    match what:
        case "work":
            until = time.process_time() + amount
            while time.process_time() < until:
                sum(range(1000))
        case "sleep":
            time.sleep(amount)
        case "hold":  # the interpreter's lock, in C code
            re.match("(a+)+$", "a" * int(amount) + "b")
        case "allocate":
            return {"bytes": len(bytearray(int(amount) * 2**20))}
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "crash once" if not Path(amount).exists():
            Path(amount).touch()
            os.kill(os.getpid(), signal.SIGSEGV)
        case "raise":
            raise ValueError("two\nlines")
        case "print":
            print("noise that is no answer")
            os.write(1, b"and from C")
    return {"process": os.getpid(), "length": len(data), "variables": sorted(os.environ)}
