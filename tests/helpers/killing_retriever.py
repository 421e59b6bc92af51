"""A retriever that kills its process, as an operator or a batch system would."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from common.records import Ranked
from harness.retrievers.bm25 import Bm25Retriever

DIES_AT = "MORTAL_DIES_AT"  # environment variable: the number, from 0, of the search that does not end


class Mortal:
    """BM25 that counts its searches, over all instances."""

    searches = 0

    def __init__(self, index: Path) -> None:
        self.inner = Bm25Retriever(index)

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """As the BM25 retriever, while the process lives."""
        if str(Mortal.searches) == os.environ.get(DIES_AT):
            os.kill(os.getpid(), signal.SIGKILL)
        Mortal.searches += 1
        return self.inner.search(queries, k)
