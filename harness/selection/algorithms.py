"""DR-RAG's selections as pure functions of passage ids and pair scores: QDC, CIS, CFS (Sections 2.2.1-2.2.2, Appendix A.2)
and, beyond the paper, ranked selection and the oracle.  No retriever and no model here; standard library only.

Terms: k documents in all; `first` are the k1 documents of the first stage, best first; `pools[i]` are the second stage's
candidates of d_i = first[i], best first, without the first stage's own documents; Cnt are the documents chosen so far.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

PairTest = Callable[[str, str], bool]  # (d1, d2) -> is C(q, d1, d2) positive?
PairScore = Callable[[str, str], float]  # (d1, d2) -> P(positive | q, d1, d2)
Take = Literal["first", "all"]
Scope = Literal["second", "all"]
Source = Literal["qdc", "ranking", "both"]


@dataclass(frozen=True, slots=True)
class Candidates:
    """What retrieval found for one question, as ids, best first.

    `concatenated[i]` is Retriever(q*_i) with q*_i = Concat(q, ranking[i]), as retrieved: it may hold first-stage documents.
    """

    ranking: tuple[str, ...]  # Retriever(q)
    concatenated: tuple[tuple[str, ...], ...] = ()


def first_stage_size(k: int) -> int:
    """k1 = ceil(k / 2): the paper does not give the split (papers.md A)."""
    return math.ceil(k / 2)


def second_stage(candidates: Candidates, k1: int, depth: int, source: Source = "qdc") -> list[list[str]]:
    """The pools of the first k1 documents.

    Args:
        candidates: What retrieval found.
        k1: First-stage documents.
        depth: Candidates per d_i and source, counted after the first stage's documents are taken out.
        source: `qdc` is Retriever(q*_i); `ranking` is Retriever(q)'s further ranking, the same for each d_i (Table 4's
            "w/o QDC"); `both` is the one and then the other.
    """
    first = candidates.ranking[:k1]
    further = [d for d in candidates.ranking[k1:] if d not in first][:depth]
    if source == "ranking":
        return [list(further) for _ in first]
    found = [[d for d in ranked if d not in first][:depth] for ranked in candidates.concatenated[: len(first)]]
    if source == "qdc":
        return found
    return [list(dict.fromkeys([*pool, *further])) for pool in found]


def qdc(first: Sequence[str], pools: Sequence[Sequence[str]], k: int) -> list[str]:
    """Query Documents Concatenation (Eq. 1): round robin over d_i, each adding its first candidate not in Cnt, until k."""
    chosen = list(first[:k])
    waiting = [iter(pool) for pool in pools]
    while waiting and len(chosen) < k:
        pool = waiting.pop(0)
        added = next((d for d in pool if d not in chosen), None)
        if added is not None:
            chosen.append(added)
            waiting.append(pool)
    return chosen


def cfs(
    first: Sequence[str], pools: Sequence[Sequence[str]], k: int, positive: PairTest, take: Take = "first"
) -> list[str]:
    """Classifier Forward Selection (Eq. 4): for each d_i, walk down its candidates to the first that is not in Cnt and
    positive with d_i; add it; stop at k.

    Args:
        first: First-stage documents.
        pools: Second-stage candidates of each.
        k: Document budget.
        positive: C(q, d_i, d') in this order.
        take: `first` is Eq. 4; `all` adds every positive one, which is Algorithm 1 under the same budget.
    """
    chosen = list(first[:k])
    for d_i, pool in zip(first, pools, strict=True):
        for candidate in pool:
            if len(chosen) >= k:
                return chosen
            if candidate not in chosen and positive(d_i, candidate):
                chosen.append(candidate)
                if take == "first":
                    break
    return chosen


def cis(chosen: Sequence[str], first: Collection[str], positive: PairTest, scope: Scope = "second") -> list[str]:
    """Classifier Inverse Selection: drop from QDC's documents those that no other document makes relevant.

    Args:
        chosen: QDC's documents, the first stage's first.
        first: The first stage's documents among them.
        positive: C(q, later, earlier), so a second-stage document comes before a first-stage one, as in Eq. 3.
        scope: `second` drops a second-stage document that is negative with every first-stage one (Eq. 3); `all` drops any
            document that is negative with every other (the text of Section 2.2.2: each of the C(k, 2) pairs judged once).
    """
    if scope == "second":
        return [d for d in chosen if d in first or any(positive(d, d_i) for d_i in chosen if d_i in first)]
    kept: set[str] = set()
    for late, later in enumerate(chosen):
        for earlier in chosen[:late]:
            if not {later, earlier} <= kept and positive(later, earlier):
                kept |= {later, earlier}
    return [d for d in chosen if d in kept]


def filled(chosen: Sequence[str], ranking: Sequence[str], k: int, without: Collection[str] = ()) -> list[str]:
    """The chosen documents, and in the places they leave empty the best of Retriever(q) (beyond the paper).

    Args:
        chosen: At most k documents.
        ranking: Retriever(q), best first.
        k: Document budget.
        without: Documents a selection refused, which must not come back.
    """
    return [*chosen, *(d for d in ranking if d not in chosen and d not in without)][:k]


def ranked(
    ranking: Sequence[str],
    first: Sequence[str],
    pools: Sequence[Sequence[str]],
    k: int,
    score: PairScore,
    keep_first: int = 1,
    prior_weight: float = 0.0,
    symmetric: bool = False,
) -> list[str]:
    """Ranked selection (beyond the paper): fill the budget by pair score.

    Every pair of two first-stage documents and every (d_i, d') is taken in order of its score, and adds its documents that
    are not in yet, until k: a document counts as much as its best pair, and a first-stage document that pairs with nothing
    gives its place up.  What the pairs leave empty, the first-stage ranking fills.

    Args:
        ranking: Retriever(q), best first; begins with `first`.
        first: The first-stage documents used as d_i.
        pools: Second-stage candidates of each.
        k: Document budget.
        score: P(positive | q, d1, d2).
        keep_first: Documents at the top of the ranking that always stay.
        prior_weight: Added to a pair's log-odds for each of its documents, times the document's reciprocal rank in
            `ranking` (0 where the ranking lacks it), nats.
        symmetric: Average the log-odds of both orders of a pair; twice the cost.
    """
    reciprocal = {d: 1 / rank for rank, d in enumerate(ranking, start=1)}
    strength: dict[tuple[str, str], float] = {}
    for position, (d_i, pool) in enumerate(zip(first, pools, strict=True)):
        for other in [*first[position + 1 :], *pool]:
            log_odds = _logit(score(d_i, other))
            if symmetric:
                log_odds = (log_odds + _logit(score(other, d_i))) / 2
            prior = reciprocal.get(d_i, 0.0) + reciprocal.get(other, 0.0)
            strength[d_i, other] = log_odds + prior_weight * prior
    by_strength = sorted(strength, key=lambda pair: -strength[pair])  # stable: ties in order of retrieval
    order = [*ranking[:keep_first], *(d for pair in by_strength for d in pair), *ranking]
    return list(dict.fromkeys(order))[:k]


def oracle(first: Sequence[str], pools: Sequence[Sequence[str]], k: int, gold: Collection[str]) -> list[str]:
    """The gold documents that a perfect selection would take from the same candidates: the ceiling of its recall."""
    available = dict.fromkeys([*first, *(d for pool in pools for d in pool)])
    return [d for d in available if d in gold][:k]


def _logit(probability: float) -> float:
    """Log-odds, nats, of a probability that fp32 or rounding may have brought to 0 or 1."""
    bounded = min(max(probability, 1e-12), 1 - 1e-12)
    return math.log(bounded / (1 - bounded))
