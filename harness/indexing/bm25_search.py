"""Search of a BM25 index by ranges of passages, by one or several processes.

The scores of one range fit a processor's cache, and passages below the k-th best score of earlier ranges are passed
over: more than twice as fast as all passages at once, in memory that does not grow with the index. A passage's score is
the same sum in the same order. A worker maps the same files and needs no vocabulary.

Shape legend: N passages, R passages of a range, K found ones.
"""

import weakref
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from common.killable import Killable
from harness.indexing.bm25_files import DATA, INDICES, INDPTR
from harness.indexing.workers import results, worker_count

RANGE = 2**18  # passages scored at a time
_WORTH_WORKERS = 2**28  # passages times queries of a batch, some seconds of work, from which on processes share it
_PARTS = 4  # of a batch for each worker, so that none waits long for the last one

Query = list[tuple[int, float]]  # words by number, with their weights
Found = tuple[list[int], list[float]]  # positions and scores


class Postings:
    """The scores of a BM25 index by word.

    Args:
        folder: With bm25s's files.
        passages: N.
    """

    def __init__(self, folder: Path, passages: int) -> None:
        self.folder, self.passages = folder, passages
        # plain views of the mapped files: slicing one costs a tenth of slicing a np.memmap
        self._data, self._indices, self.starts_W = (
            np.asarray(np.load(folder / name, mmap_mode="r", allow_pickle=False)) for name in (DATA, INDICES, INDPTR)
        )

    def scores(self, query: Query, first: int = 0, end: int | None = None) -> np.ndarray:
        """Scores of the passages from `first` to before `end`, float32; all passages when omitted."""
        end = self.passages if end is None else end
        scores_R = np.zeros(end - first, dtype=np.float32)
        whole = end - first == self.passages
        for word, weight in query:
            begin, stop = int(self.starts_W[word]), int(self.starts_W[word + 1])
            if not whole:  # a word's passages are sorted
                within = np.searchsorted(self._indices[begin:stop], np.array((first, end), dtype=np.int32))
                begin, stop = begin + int(within[0]), begin + int(within[1])
            data, indices = self._data[begin:stop], self._indices[begin:stop]
            np.add.at(
                scores_R,
                indices if first == 0 else indices - np.int32(first),
                data if weight == 1 else data * np.float32(weight),
            )
        return scores_R

    def search(self, query: Query, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Positions and scores of the k passages with the greatest scores above 0, (K,) each.

        Best first, ties by position.
        """
        found, scored = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        for first in range(0, self.passages, RANGE) if query else ():
            scores_R = self.scores(query, first, min(first + RANGE, self.passages))
            # one that ties with the k-th best of earlier ranges comes after it
            places = best(scores_R, k, scored[-1] if len(scored) == k else 0)
            found, scored = np.concatenate((found, places + first)), np.concatenate((scored, scores_R[places]))
            kept = np.argsort(-scored, kind="stable")[:k]
            found, scored = found[kept], scored[kept]
        return found, scored


def best(scores_N: np.ndarray, k: int, above: float = 0) -> np.ndarray:
    """Places of the k greatest scores above a limit, best first, ties by place; fewer if fewer are above it."""
    places = np.flatnonzero(scores_N > above)
    if len(places) > k:
        scores = scores_N[places]
        places = places[scores >= np.partition(scores, -k)[-k]]  # several may tie at the k-th
    return places[np.argsort(-scores_N[places], kind="stable")][:k]


class BatchSearch:
    """Searches batches of queries, large ones in several processes that are kept for the next batch.

    Args:
        postings: Of the index.
        workers: Processes; None: one for each processor, at most 8.
    """

    def __init__(self, postings: Postings, workers: int | None = None) -> None:
        self.postings, self.workers = postings, worker_count(workers)
        self._processes: Killable | None = None

    def search(self, queries: Sequence[Query], k: int) -> list[Found]:
        """Positions and scores of the k best passages of each query, as `Postings.search` finds them.

        Raises:
            UserError: If a process ends.
        """
        if self.workers == 1 or len(queries) == 1 or len(queries) * self.postings.passages < _WORTH_WORKERS:
            return [_as_lists(self.postings.search(query, k)) for query in queries]
        if self._processes is None:
            self._processes = Killable("harness.indexing.bm25_search:search_part", self.workers)
            weakref.finalize(self, self._processes.close)
        size = -(-len(queries) // (self.workers * _PARTS))
        where = str(self.postings.folder.resolve()), self.postings.passages
        parts = [(*where, queries[start : start + size], k) for start in range(0, len(queries), size)]
        try:
            found = [*results(self._processes, parts, len(parts))]
        except BaseException:  # nobody waits for the other parts
            self._processes.close()
            self._processes = None
            raise
        return [(positions, scores) for part in found for positions, scores in part]


def _as_lists(found: tuple[np.ndarray, np.ndarray]) -> Found:
    return found[0].tolist(), found[1].tolist()


def search_part(folder: str, passages: int, queries: Sequence[Query], k: int) -> list[Found]:
    """The results of `BatchSearch.search`, in a process of its own."""
    return [_as_lists(_opened(folder, passages).search(query, k)) for query in queries]


@cache
def _opened(folder: str, passages: int) -> Postings:
    return Postings(Path(folder), passages)
