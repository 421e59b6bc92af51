"""DR-RAG's selections as pure functions of passage ids and pair scores.

QDC, CIS, CFS (Sections 2.2.1-2.2.2, Appendix A.2) and two that the paper does not have: the walk, which needs no
classifier, and ranked selection. No retriever, no model; standard library only.

Terms: k is the document budget; `first` are the k1 documents of the first stage, best first; `pools[i]` are the second
stage's candidates of d_i = first[i], best first, without first-stage documents; Cnt are the documents chosen so far.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

PairTest = Callable[[str, str], bool]  # (d1, d2) -> is C(q, d1, d2) positive?
PairScore = Callable[[str, str], float]  # (d1, d2) -> P(positive | q, d1, d2)
Prior = Callable[[int, str], float]  # (i, d') -> what is added to the log-odds of (d_i, d'), nats
CfsRule = Literal["first", "all"]
CisScope = Literal["second", "all"]
CandidatePool = Literal["qdc", "ranking", "both"]


@dataclass(frozen=True, slots=True)
class Rankings:
    """Both stages' ranked lists for one question, as passage ids, best first.

    `concatenated[i]` is Retriever(q*_i) with q*_i = Concat(q, ranking[i]), unfiltered: it may hold first-stage
    documents.
    """

    ranking: tuple[str, ...]  # Retriever(q)
    concatenated: tuple[tuple[str, ...], ...] = ()
    scores: tuple[float, ...] = ()  # of `ranking`, the retriever's; for a selection that weighs them
    concatenated_scores: tuple[tuple[float, ...], ...] = ()


def first_stage_size(k: int) -> int:
    """k1 = ceil(k / 2): our choice, the paper does not give the split."""
    return math.ceil(k / 2)


def second_stage(rankings: Rankings, k1: int, depth: int, source: CandidatePool = "qdc") -> list[list[str]]:
    """The candidate pools of the first k1 documents.

    Args:
        rankings: Both stages' ranked lists.
        k1: Number of first-stage documents.
        depth: Candidates per d_i and source, counted without the first stage's documents.
        source: `qdc` is Retriever(q*_i); `ranking` is Retriever(q) below rank k1, the same for each d_i (Table 4's
            "w/o QDC"); `both` is `qdc` followed by `ranking`.
    """
    first = rankings.ranking[:k1]
    further = [d for d in rankings.ranking[k1:] if d not in first][:depth]
    if source == "ranking":
        return [list(further) for _ in first]
    pools = [[d for d in ranked if d not in first][:depth] for ranked in rankings.concatenated[: len(first)]]
    if source == "qdc":
        return pools
    return [list(dict.fromkeys([*pool, *further])) for pool in pools]


def qdc(first: Sequence[str], pools: Sequence[Sequence[str]], k: int) -> list[str]:
    """Query Documents Concatenation (Eq. 1).

    Round robin over d_i, each adding its first candidate not in Cnt, until k.
    """
    chosen = list(first[:k])
    queue = [iter(pool) for pool in pools]
    while queue and len(chosen) < k:
        pool = queue.pop(0)
        added = next((d for d in pool if d not in chosen), None)
        if added is not None:
            chosen.append(added)
            queue.append(pool)
    return chosen


def walk(rankings: Rankings, first_size: int, k: int, ranking_size: int, concatenated_size: int) -> list[str]:
    """One step of a walk (not in the paper): a first-stage document passes its score on to what is found with it.

        s(d) + max over i with d_i != d of  s(d_i) * s_i(d)

    with the scores s in Retriever(q) and s_i in Retriever(q*_i), each scaled to 0 to 1 (min-max) within its search, and
    0 for a document that a search did not find. d_i itself is mostly the first of Retriever(q*_i): so a search that
    finds nothing near it passes on little. Ties are in order of retrieval.

    Args:
        rankings: Both stages' ranked lists, with scores.
        first_size: Number of first-stage documents.
        k: Document budget.
        ranking_size: Documents of Retriever(q) that count; the retrieval may have been deeper.
        concatenated_size: Documents of each Retriever(q*_i) that count.
    """
    of_q = scaled(rankings.ranking[:ranking_size], rankings.scores)
    passed: dict[str, float] = {}
    for d_i, found, scores in zip(
        rankings.ranking[:first_size], rankings.concatenated, rankings.concatenated_scores, strict=False
    ):
        for d, value in scaled(found[:concatenated_size], scores).items():
            if d != d_i:
                passed[d] = max(passed.get(d, 0.0), of_q[d_i] * value)
    return sorted({**of_q, **passed}, key=lambda d: -of_q.get(d, 0.0) - passed.get(d, 0.0))[:k]


def cfs(
    first: Sequence[str], pools: Sequence[Sequence[str]], k: int, positive: PairTest, cfs_rule: CfsRule = "first"
) -> list[str]:
    """Classifier Forward Selection (Eq. 4): for each d_i, add its best-ranked candidate that is not in Cnt and positive
    with d_i; stop at k.

    Args:
        first: First-stage documents.
        pools: Second-stage candidates of each.
        k: Document budget.
        positive: C(q, d_i, d') in this order.
        cfs_rule: `first` is Eq. 4; `all` adds every positive candidate: Algorithm 1 under the same budget.
    """
    chosen = list(first[:k])
    for d_i, pool in zip(first, pools, strict=True):
        for candidate in pool:
            if len(chosen) >= k:
                return chosen
            if candidate not in chosen and positive(d_i, candidate):
                chosen.append(candidate)
                if cfs_rule == "first":
                    break
    return chosen


def cis(chosen: Sequence[str], first: Collection[str], positive: PairTest, cis_scope: CisScope = "second") -> list[str]:
    """Classifier Inverse Selection: drop from QDC's documents those that are in no positive pair.

    Args:
        chosen: QDC's documents, first-stage documents first.
        first: The first stage's documents among them.
        positive: C(q, later, earlier): the second-stage document is d1 and the first-stage one d2, as in Eq. 3.
        cis_scope: `second` drops a second-stage document that is negative with every first-stage one (Eq. 3); `all`
            drops any document that is negative with every other (text of Section 2.2.2: each of the C(k, 2) pairs is
            scored once).
    """
    if cis_scope == "second":
        return [d for d in chosen if d in first or any(positive(d, d_i) for d_i in chosen if d_i in first)]
    in_positive_pair: set[str] = set()
    for late, later in enumerate(chosen):
        for earlier in chosen[:late]:
            if not {later, earlier} <= in_positive_pair and positive(later, earlier):
                in_positive_pair |= {later, earlier}
    return [d for d in chosen if d in in_positive_pair]


def filled(chosen: Sequence[str], ranking: Sequence[str], k: int, without: Collection[str] = ()) -> list[str]:
    """The chosen documents, filled up to k with the best of Retriever(q) (not in the paper).

    Args:
        chosen: At most k documents.
        ranking: Retriever(q), best first.
        k: Document budget.
        without: Documents that the selection rejected; they are not added again.
    """
    return [*chosen, *(d for d in ranking if d not in chosen and d not in without)][:k]


def ranked(
    ranking: Sequence[str],
    first: Sequence[str],
    pools: Sequence[Sequence[str]],
    k: int,
    score: PairScore,
    keep_first: int = 1,
    prior: Prior | None = None,
    symmetric: bool = False,
) -> list[str]:
    """Ranked selection (not in the paper): fill the budget in the order of pair scores.

    Every pair of two first-stage documents and every (d_i, d') is taken in order of its score and adds its documents
    that are not chosen yet, until k. So a document ranks by its best pair, and a first-stage document without a
    high-scoring pair may be dropped. Remaining places are filled from the first-stage ranking.

    Args:
        ranking: Retriever(q), best first; begins with `first`.
        first: The first-stage documents used as d_i.
        pools: Second-stage candidates of each.
        k: Document budget.
        score: P(positive | q, d1, d2).
        keep_first: Number of top-ranked documents that are always chosen.
        prior: The retrieval's score of a pair, see `retrieval_prior`.
        symmetric: Average the log-odds of both orders of a pair; twice the number of scored pairs.
    """
    pair_score: dict[tuple[str, str], float] = {}
    for position, (d_i, pool) in enumerate(zip(first, pools, strict=True)):
        for other in [*first[position + 1 :], *pool]:
            log_odds = mean_log_odds(score, d_i, other) if symmetric else log_odds_of(score(d_i, other))
            pair_score[d_i, other] = log_odds + (prior(position, other) if prior else 0.0)
    best_pairs = sorted(pair_score, key=lambda pair: -pair_score[pair])  # stable: ties in order of retrieval
    order = [*ranking[:keep_first], *(d for pair in best_pairs for d in pair), *ranking]
    return list(dict.fromkeys(order))[:k]


def retrieval_prior(
    rankings: Rankings, rank_weight: float, score_weight: float, ranking_size: int, concatenated_size: int
) -> Prior:
    """The retrieval's score of the pair (d_i, d'), in nats.

    Rank weight times the reciprocal ranks of both in Retriever(q), plus score weight times the sum of the scores of
    both in Retriever(q) and of d' in Retriever(q*_i), each scaled to 0 to 1 (min-max) within its search. A document
    that a search did not find counts 0.

    Args:
        rankings: Both stages' ranked lists, with scores if these are weighed.
        rank_weight: Nats.
        score_weight: Nats.
        ranking_size: Documents of Retriever(q) that count; the retrieval may have been deeper.
        concatenated_size: Documents of each Retriever(q*_i) that count.
    """
    of_document = {d: rank_weight / rank for rank, d in enumerate(rankings.ranking, start=1)}
    of_candidate: list[dict[str, float]] = []
    if score_weight:
        for d, value in scaled(rankings.ranking[:ranking_size], rankings.scores).items():
            of_document[d] += score_weight * value
        for found, scores in zip(rankings.concatenated, rankings.concatenated_scores, strict=True):
            own = scaled(found[:concatenated_size], scores)
            of_candidate.append({d: score_weight * value for d, value in own.items()})

    def prior(position: int, other: str) -> float:
        second = of_candidate[position].get(other, 0.0) if position < len(of_candidate) else 0.0
        return of_document[rankings.ranking[position]] + of_document.get(other, 0.0) + second

    return prior


def scaled(ids: Sequence[str], scores: Sequence[float]) -> dict[str, float]:
    """The scores of documents by their ids, scaled to 0 to 1 (min-max); all 0 if they are equal.

    Args:
        ids: Of one search, the first ones.
        scores: Of as many documents or more.
    """
    own = scores[: len(ids)]
    least, greatest = min(own, default=0.0), max(own, default=0.0)
    return {d: (value - least) / ((greatest - least) or 1.0) for d, value in zip(ids, own, strict=True)}


def mean_log_odds(score: PairScore, d1: str, d2: str) -> float:
    """Mean over both orders of a pair, nats."""
    return (log_odds_of(score(d1, d2)) + log_odds_of(score(d2, d1))) / 2


def log_odds_of(probability: float) -> float:
    """Log-odds, nats; probabilities rounded to 0 or 1 are clipped."""
    bounded = min(max(probability, 1e-12), 1 - 1e-12)
    return math.log(bounded / (1 - bounded))
