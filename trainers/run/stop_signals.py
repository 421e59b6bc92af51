"""Signals that stop a run: noted while it trains, so that it ends after a whole step and can be resumed exactly."""

import os
import signal
import threading
from types import FrameType

from common.beginning import EXIT_CODES
from common.errors import INTERRUPTED, UserError


class RunStoppedError(UserError):
    """A run was stopped by a signal.

    Args:
        message: What was saved and how to continue.
        exit_code: INTERRUPTED or PREEMPTED.
    """

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class StopSignals:
    """Notes the signals that ask a run to stop; a second Ctrl-C interrupts at once.

    Python runs signal handlers in the main thread only; in another one nothing is installed.
    """

    def __init__(self) -> None:
        self.exit_code = 0  # of the run, once a signal has been noted
        self._before: dict[int, object] = {}

    def install(self) -> None:
        """Note signals from now on; may be called again after another library has installed its own handlers."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in EXIT_CODES:
            before = signal.signal(number, self._note)
            if before != self._note:
                self._before.setdefault(number, before)

    def restore(self) -> None:
        """Give the signals back to the handlers before `install`."""
        before, self._before = self._before, {}
        for number, handler in before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal returned

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            if self.exit_code == INTERRUPTED:
                raise KeyboardInterrupt
            os.write(2, b"\nCtrl-C: stopping after this step; press it again to stop at once.\n")
        self.exit_code = max(self.exit_code, EXIT_CODES[number])
