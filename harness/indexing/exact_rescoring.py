"""Exact scores and order of the candidates that a vector index proposes.

Inner products in double precision, ties by position.

So a query finds the same ids in the same order alone or in a batch, on a CPU, on a GPU or in a vector database.

Shape legend: D dimensions, Q queries, K candidates.
"""

from collections.abc import Callable, Iterable

import numpy as np

_EXTRA_CANDIDATES = 16  # candidates beyond k, so that ties at rank k are ordered by position and not by the index
_TIE_TOLERANCE = 1e-5  # scores this close, relative to the best, may come in any order from float32 sums

Candidates = tuple[np.ndarray, np.ndarray]  # positions (K,), and vectors (K, D)
Hits = list[tuple[int, float]]  # position and inner product


def inner_products(vectors_KD: np.ndarray, query_D: np.ndarray) -> np.ndarray:
    """Inner product of each vector with a query, float64 (K,)."""
    # row sums instead of a BLAS product, whose last bits depend on a row's place in the matrix
    return (vectors_KD.astype(np.float64) * query_D.astype(np.float64)).sum(axis=1)


def search_exactly(
    queries_QD: np.ndarray, k: int, least: int, most: int, candidates: Callable[[np.ndarray, int], Iterable[Candidates]]
) -> list[Hits]:
    """The k nearest vectors of each query among candidates, best first, ties by position.

    Args:
        queries_QD: float32.
        k: Vectors of each query.
        least: Candidates to ask for first; more are asked for while the last of them ties with the k-th.
        most: Candidates that there are at most.
        candidates: Of the queries in some rows, so many for each; fewer where there are no more.
    """
    results: list[Hits] = [[] for _ in queries_QD]
    open_rows, wanted = np.arange(len(queries_QD)), min(least + _EXTRA_CANDIDATES, most)
    while len(open_rows):
        unsettled = []
        for row, (positions, vectors_KD) in zip(open_rows, candidates(open_rows, wanted), strict=True):
            results[row], settled = _best(queries_QD[row], positions, vectors_KD, k)
            if not settled and len(positions) == wanted < most:
                unsettled.append(row)
        open_rows, wanted = np.array(unsettled, dtype=np.int64), min(8 * wanted, most)
    return results


def _best(query_D: np.ndarray, positions: np.ndarray, vectors_KD: np.ndarray, k: int) -> tuple[Hits, bool]:
    """The k best candidates, and whether more candidates cannot change them: if the last candidate ties with the
    k-th, a vector with the same score and a lower position may be missing."""
    scores = inner_products(vectors_KD, query_D)
    order = np.lexsort((positions, -scores))
    settled = len(order) <= k or scores[order[k - 1]] - scores[order[-1]] > _TIE_TOLERANCE * abs(scores[order[0]])
    return [(int(positions[i]), float(scores[i])) for i in order[:k]], bool(settled)
