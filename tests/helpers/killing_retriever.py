"""A retriever that kills its process, as an operator or a batch system would."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from common.records import Ranked
from harness.retrievers.bm25 import Bm25Retriever

KILLED_AT = "KILLED_AT_SEARCH"  # environment variable: the number, from 0, of the search at which the process is killed


class KillingRetriever:
    """BM25 that counts its searches, over all instances."""

    searches = 0

    def __init__(self, index: Path) -> None:
        self.inner = Bm25Retriever(index)

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """Search with BM25, or kill the process."""
        if str(KillingRetriever.searches) == os.environ.get(KILLED_AT):
            os.kill(os.getpid(), signal.SIGKILL)
        KillingRetriever.searches += 1
        return self.inner.search(queries, k)
