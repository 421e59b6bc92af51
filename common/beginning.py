"""The first steps of a command, before it imports anything that takes seconds.  Standard library only.

The signals that stop it are Ctrl-C, SIGTERM, and SIGUSR1, which SLURM sends on request.
"""

import atexit
import os
import signal
import threading
from types import FrameType

from common.errors import INTERRUPTED, PREEMPTED, StoppedError

EXIT_CODES = {
    getattr(signal, name): code
    for name, code in {"SIGINT": INTERRUPTED, "SIGTERM": PREEMPTED, "SIGUSR1": PREEMPTED}.items()
    if hasattr(signal, name)  # Windows: no SIGUSR1
}


def begin(program: str) -> None:
    """Let the signals interrupt this process as Ctrl-C does, and end it at once while it imports modules.

    Libraries may swallow an exception that is raised while they are imported. An ignored signal stays ignored, and
    forked processes handle all signals as before.  A command that has ended keeps its exit code.

    Args:
        program: As it is named in error lines, e.g. "infer.py".
    """
    if threading.current_thread() is not threading.main_thread():
        return

    def stop(number: int, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                os.write(2, f"{program}: {'interrupted' if number == signal.SIGINT else 'stopped'}.\n".encode())
                os._exit(EXIT_CODES[number])
            frame = frame.f_back
        raise KeyboardInterrupt if number == signal.SIGINT else StoppedError(number)

    before = {each: signal.signal(each, stop) for each in EXIT_CODES if signal.getsignal(each) != signal.SIG_IGN}
    atexit.register(lambda: [signal.signal(each, signal.SIG_IGN) for each in before])  # else they kill from here on
    os.register_at_fork(after_in_child=lambda: [signal.signal(*each) for each in before.items()])
