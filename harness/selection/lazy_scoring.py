"""Lazy batched pair scoring: scores only the pairs that selections need, batched over all questions.

Selections request one pair score at a time; one forward pass per pair would be slow. So they run in rounds: a pair
without a score gets a provisional one and is recorded; after each round the recorded pairs of all questions are scored
in one batch and the selections run again, until no new pair is requested. The last round uses real scores only, so the
result is that of scoring one by one.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.selection.algorithms import Rankings
from harness.selection.options import SelectionOptions

Pair = tuple[str, str]
ScoreBatch = Callable[[list[tuple[int, Pair]]], list[float]]  # (job, pair) -> P(positive | q, d1, d2), in order


@dataclass(slots=True)
class Decision:
    """The documents that a selection chose, and the pair scores it used."""

    documents: list[str] = field(default_factory=list)
    scores: dict[Pair, float] = field(default_factory=dict)


def decide(
    jobs: Sequence[tuple[SelectionOptions, Rankings]], score_batch: ScoreBatch, lookahead: int = 4
) -> list[Decision]:
    """Run selections in parallel with as few scoring batches as possible.

    Args:
        jobs: A selection and its question's rankings, one per decision.
        score_batch: Scores pairs of several jobs at once; pairs are distinct within a job and requested only once.
        lookahead: Number of a pool's next candidates that CFS scores per round: 1 scores the fewest pairs, a greater
            number needs fewer rounds.

    Returns:
        One decision per job.
    """
    decisions = [Decision() for _ in jobs]
    open_jobs = list(range(len(jobs)))
    while open_jobs:
        requested: list[tuple[int, Pair]] = []
        for job in open_jobs:
            options, rankings = jobs[job]
            lookup = _ScoreLookup(decisions[job].scores, lookahead)
            decisions[job].documents = options.choose(rankings, lookup)
            requested += [(job, pair) for pair in lookup.missing]
        if requested:
            for (job, pair), probability in zip(requested, score_batch(requested), strict=True):
                decisions[job].scores[pair] = probability
        open_jobs = list(dict.fromkeys(job for job, _ in requested))
    return decisions


class _ScoreLookup:
    """Returns known scores and records the missing pairs.

    A missing pair gets a provisional 0 (negative), so that the selection goes on to the next candidate; from the
    `lookahead`-th missing pair of the same d1 on it gets 1 (positive), so that the selection stops there. The other
    order of a missing pair gets what the first one got.
    """

    def __init__(self, known: dict[Pair, float], lookahead: int) -> None:
        self.known, self.lookahead = known, lookahead
        self.missing: dict[Pair, None] = {}
        self.missing_of_d1: Counter[str] = Counter()

    def __call__(self, d1: str, d2: str) -> float:
        if (d1, d2) in self.known:
            return self.known[d1, d2]
        if (d2, d1) in self.missing:
            self.missing[d1, d2] = None
            return float(self.missing_of_d1[d2] >= self.lookahead)
        if (d1, d2) not in self.missing:
            self.missing[d1, d2] = None
            self.missing_of_d1[d1] += 1
        return float(self.missing_of_d1[d1] >= self.lookahead)
