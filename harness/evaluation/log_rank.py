"""HiQA's Log-Rank Index (Eq. 3): how near the front of the ranking of all segments the relevant ones stand."""

import math
from collections.abc import Sequence


def log_rank(rank: int, segments: int, gamma: float = 1.0) -> float:
    """The score of one relevant segment: 1 at the first rank, 0 at the last, falling with the logarithm of the rank.

        S(r) = 1 - log(1 + gamma (r - 1)) / log(1 + gamma (N - 1));   1 if N = 1

    Args:
        rank: From 1 to `segments`.
        segments: N, the number of segments that were ranked.
        gamma: Above 0; the greater, the faster the score falls at the first ranks.
    """
    if rank > segments:
        raise ValueError(f"rank {rank} of {segments} segments")
    if segments == 1:
        return 1.0
    return 1 - math.log1p(gamma * (rank - 1)) / math.log1p(gamma * (segments - 1))


def log_rank_index(ranks: Sequence[int | None], segments: int, gamma: float = 1.0) -> float:
    """The mean of `log_rank` over the relevant segments of a question; NaN without any.

    Args:
        ranks: Of the relevant segments; None for one that was not ranked, which counts as the last.
        segments: As in `log_rank`.
        gamma: As in `log_rank`.
    """
    scores = [log_rank(segments if rank is None else rank, segments, gamma) for rank in ranks]
    return math.fsum(scores) / len(scores) if scores else math.nan
