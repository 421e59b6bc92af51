"""A language model that kills its process, as an operator or a batch system would."""

import os
import signal
from collections.abc import Sequence

from common.chat import Chat, Reply
from tests.helpers.people_corpus import PeopleLlm

KILLED_AT = "KILLED_AT_WRITE"  # environment variable: the number, from 0, of the call at which the process is killed
WRITING = 2  # messages of a chat that asks for a question, for the first time


class KillingLlm(PeopleLlm):
    """Counts the calls that ask for questions."""

    calls = 0

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        """Reply, or kill the process."""
        if len(chats[0].messages) == WRITING:
            if str(self.calls) == os.environ.get(KILLED_AT):
                os.kill(os.getpid(), signal.SIGKILL)
            self.calls += 1
        return super().reply(chats)
