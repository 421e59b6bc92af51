"""A process for `harness.runtime.isolated_process` that does what it is asked, also what hurts it."""

import os
import signal
import sys
import time
from typing import Any

from harness.runtime.isolated_worker import serve


def answer(asked: dict[str, Any], data: bytes) -> dict[str, Any]:
    match asked["do"]:
        case "work":
            until = time.process_time() + asked["seconds"]
            while time.process_time() < until:
                sum(range(1000))
        case "sleep":
            time.sleep(asked["seconds"])
        case "allocate":
            return {"bytes": len(bytearray(asked["mebibytes"] * 2**20))}
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "print":
            print("noise that is no answer")
            os.write(1, b"and from C")
    return {"process": os.getpid(), "length": len(data), "variables": sorted(os.environ)}


if __name__ == "__main__":
    serve(answer, float(sys.argv[1]), int(sys.argv[2]))
