"""A writer of questions that kills its process, as an operator or a batch system would."""

import os
import signal
from collections.abc import Sequence

from harness.synthesis.drafts import Draft, Task
from harness.synthesis.t5_writer import T5Writer

KILLED_AT = "KILLED_AT_WRITE"  # environment variable: the number, from 0, of the call at which the process is killed


class KillingWriter(T5Writer):
    """A T5 that counts its calls, over all instances."""

    calls = 0

    def write(self, tasks: Sequence[Task]) -> list[Draft]:
        """Write, or kill the process."""
        if str(KillingWriter.calls) == os.environ.get(KILLED_AT):
            os.kill(os.getpid(), signal.SIGKILL)
        KillingWriter.calls += 1
        return super().write(tasks)
