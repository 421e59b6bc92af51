"""Score only the pairs that decisions ask for, and all questions' pairs together.

A selection is written as if it could ask the classifier one pair at a time, which would be one forward pass per pair.  Here
it runs in rounds instead: a pair not scored yet is noted and a provisional answer given; when every selection has run, the
noted pairs of all questions are scored at once and the selections run again, until none asks for anything new.  The last
run saw true scores only, so the result is that of asking one by one.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.selection.algorithms import Candidates
from harness.selection.options import SelectionOptions

Pair = tuple[str, str]
ScoreBatch = Callable[[list[tuple[int, Pair]]], list[float]]  # (job, pair) -> P(positive | q, d1, d2), in order


@dataclass(slots=True)
class Decision:
    """What a selection chose, and the pair scores it was given on the way."""

    documents: list[str] = field(default_factory=list)
    scores: dict[Pair, float] = field(default_factory=dict)


def decide(
    jobs: Sequence[tuple[SelectionOptions, Candidates]], score_batch: ScoreBatch, lookahead: int = 4
) -> list[Decision]:
    """Run selections in lockstep, asking for scores as few times as possible.

    Args:
        jobs: A selection and what retrieval found, one per decision.
        score_batch: Scores pairs of several jobs at once; pairs are distinct within a job and never asked for twice.
        lookahead: While CFS walks down a list, how many of its next candidates are scored in a round: 1 scores the fewest
            pairs, a greater number needs fewer rounds.

    Returns:
        One decision per job.
    """
    decisions = [Decision() for _ in jobs]
    open_jobs = list(range(len(jobs)))
    while open_jobs:
        asked: list[tuple[int, Pair]] = []
        for job in open_jobs:
            options, candidates = jobs[job]
            unknown = _Unknown(decisions[job].scores, lookahead)
            decisions[job].documents = options.choose(candidates, unknown)
            asked += [(job, pair) for pair in unknown.pairs]
        if asked:
            for (job, pair), probability in zip(asked, score_batch(asked), strict=True):
                decisions[job].scores[pair] = probability
        open_jobs = list(dict.fromkeys(job for job, _ in asked))
    return decisions


class _Unknown:
    """Answers with known scores, and notes the pairs that have none.

    An unknown pair is answered "negative", so that a walk down a list goes on, but from the `lookahead`-th unknown pair of
    the same d1 on "positive", so that it stops there.
    """

    def __init__(self, known: dict[Pair, float], lookahead: int) -> None:
        self.known, self.lookahead = known, lookahead
        self.pairs: dict[Pair, None] = {}
        self.per_document: Counter[str] = Counter()

    def __call__(self, d1: str, d2: str) -> float:
        if (d1, d2) in self.known:
            return self.known[d1, d2]
        if (d1, d2) not in self.pairs:
            self.pairs[d1, d2] = None
            self.per_document[d1] += 1
        return float(self.per_document[d1] >= self.lookahead)
