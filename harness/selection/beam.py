"""Beam search over chains of documents.

Each hop retrieves with the question and a chain, and a classifier scores the chain with each candidate (Beam Retrieval,
arXiv 2308.08973, on an open corpus). No retriever, no model; standard library only.

A chain is a question's documents in the order in which they were found. It competes for the beam's places as it is,
extended by a candidate, and as complete: "no further document is needed" is scored like a candidate, so that chains of
different length compete by a learned score. Two chains of the same documents in another order are one; the better order
is kept.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from common.checks import check_at_least, check_choice
from common.errors import UserError
from harness.selection.algorithms import scaled

Ids = tuple[str, ...]


class Found(NamedTuple):
    """Candidates of a chain, best first."""

    documents: Sequence[str]
    scores: Sequence[float] = ()  # the retriever's, for a beam that weighs them


Scoring = Literal["last", "sum", "softmax"]
Retrieve = Callable[[list[tuple[int, Ids]]], Sequence[Found]]  # (question, chain) -> candidates
Score = Callable[[list[tuple[int, Ids, bool]]], Sequence[float]]  # (question, chain, is it complete?) -> log-odds, nats
MOST_HOPS = 4  # as many as the classifier's text format has documents


@dataclass(frozen=True)  # no slots: jsonargparse reads the default with vars()
class BeamOptions:
    """How the beam searches.

    Args:
        k: Document budget: the most documents to choose.
        width: Number of chains that are kept after each hop.
        most_hops: Most documents of a chain; never more than k.
        depth: Candidates of each chain.
        again: The question's own first candidates that every hop considers besides, 0 for none.
        question_weight: How often the question stands in Concat(q, chain).
        scoring: A chain's score: `last`, the classifier's log-odds of the whole chain, as binary cross-entropy trains
            it; `softmax`, the sum over hops of the log-probability of the step among all of its chain's candidates, the
            end and "none of these", as the listwise loss trains it; or `sum`, the sum over hops of log P(chain so far).
        score_weight: Weight of the retriever's scores, nats: of each document in Retriever(q) and in the search that
            its chain was extended by, each scaled to 0 to 1 within its search. With `last` their mean over the chain's
            documents is added to the log-odds, else the step's own to those of the step.
        fill: Fill the budget with documents of other chains and of Retriever(q); if false, only the best chain is
            chosen, so that the classifier says how many documents a question needs.

    Raises:
        UserError: If a value is not allowed.
    """

    k: int = 4
    width: int = 4
    most_hops: int = MOST_HOPS
    depth: int = 12
    again: int = 0
    question_weight: int = 1
    scoring: Scoring = "last"
    score_weight: float = 0.0
    fill: bool = True

    def __post_init__(self) -> None:
        check_at_least(1, k=self.k, width=self.width, most_hops=self.most_hops, depth=self.depth)
        check_at_least(1, question_weight=self.question_weight)
        check_at_least(0, again=self.again, score_weight=self.score_weight)
        check_choice(get_args(Scoring), scoring=self.scoring)
        if self.most_hops > MOST_HOPS:
            raise UserError(f"most_hops is {self.most_hops}; allowed: 1 to {MOST_HOPS}.")

    @property
    def hops(self) -> int:
        """Most documents of a chain."""
        return min(self.most_hops, self.k)

    @property
    def ranking_size(self) -> int:
        """Number of documents needed from Retriever(q)."""
        return max(self.k, self.depth, self.again + self.hops)

    @property
    def most_searches(self) -> int:
        """The most searches of one question."""
        return 1 + self.width * (self.hops - 1)

    @property
    def most_scored(self) -> int:
        """The most chains of one question that are scored, complete ones included."""
        return max(self.depth, self.again) + self.width * (self.hops - 1) * (self.depth + self.again + 1)


@dataclass(frozen=True, slots=True)
class ScoredChain:
    """A chain with its score, nats, and the classifier's log-odds of every step.

    One per document, and that of its end.
    """

    documents: Ids = ()
    score: float = 0.0
    log_odds: tuple[float, ...] = ()
    prior: float = 0.0  # what the retrieval says of its documents, nats, their sum

    @property
    def ended(self) -> bool:
        """Whether it was scored as complete."""
        return len(self.log_odds) > len(self.documents)


@dataclass(slots=True)
class BeamResult:
    """What the search found for one question."""

    ranking: Sequence[str] = ()  # Retriever(q), best first
    priors: dict[str, float] = field(default_factory=dict)  # of its documents, nats
    chains: list[ScoredChain] = field(default_factory=list)  # the last beam, best first
    passed_over: dict[frozenset[str], ScoredChain] = field(default_factory=dict)  # the best order of each other chain
    expansions: dict[Ids, dict[str, float]] = field(default_factory=dict)  # extended chain -> candidate -> log-odds
    searches: int = 0
    scored: int = 0

    def documents(self, k: int, fill: bool = True) -> dict[str, ScoredChain | None]:
        """At most k documents, best first, each with its best chain.

        Those of the beam's chains, of the chains that found no place in it, and of Retriever(q), with None. Without
        `fill` those of the best chain alone.
        """
        if not fill:
            return {document: chain for chain in self.chains[:1] for document in chain.documents[:k]}
        others = sorted(self.passed_over.values(), key=lambda chain: -chain.score)
        found: dict[str, ScoredChain | None] = {}
        for chain in [*self.chains, *others]:
            for document in chain.documents:
                found.setdefault(document, chain)
        for document in self.ranking:
            found.setdefault(document, None)
        return dict(list(found.items())[:k])


def beam_search(questions: int, options: BeamOptions, retrieve: Retrieve, score: Score) -> list[BeamResult]:
    """Search chains for all questions, with one batch of searches and one of scores per hop.

    Args:
        questions: Their number.
        options: Width, depth, hops, scoring.
        retrieve: Candidates of several chains, best first; of the empty chain those of the question. They may hold
            documents of the chain.
        score: Log-odds of several chains, of each question distinct ones.

    Returns:
        One result per question.
    """
    results = [BeamResult(chains=[ScoredChain()]) for _ in range(questions)]
    for hop in range(1, options.hops + 1):
        open_chains = [
            (question, chain)
            for question, result in enumerate(results)
            for chain in result.chains
            if len(chain.documents) == hop - 1 and not chain.ended
        ]
        if not open_chains:
            break
        found = retrieve([(question, chain.documents) for question, chain in open_chains])
        steps: list[list[tuple[int, Ids, bool]]] = []
        priors: list[list[float]] = []
        for (question, chain), candidates in zip(open_chains, found, strict=True):
            result = results[question]
            result.searches += 1
            own = _priors(candidates, options.score_weight)
            if hop == 1:
                result.ranking, result.priors, own = candidates.documents, own, {}
            documents = list(_further(chain, candidates.documents, result, options))
            further = [(question, (*chain.documents, d), False) for d in documents]
            steps.append([*further, *([(question, chain.documents, True)] if hop > 1 else [])])
            priors.append([result.priors.get(d, 0.0) + own.get(d, 0.0) for d in documents] + [0.0] * (hop > 1))
        log_odds = iter(score([step for of_chain in steps for step in of_chain]))
        grown: list[list[ScoredChain]] = [[] for _ in results]
        for (question, chain), of_chain, of_steps in zip(open_chains, steps, priors, strict=True):
            results[question].scored += len(of_chain)
            following = list(_grown(chain, of_chain, [next(log_odds) for _ in of_chain], of_steps, options.scoring))
            results[question].expansions[chain.documents] = {
                each.documents[-1]: each.log_odds[-1] for each in following if not each.ended
            }
            grown[question] += following
        for result, chains in zip(results, grown, strict=True):
            _keep_best(result, chains, options.width, hop - 1)
    return results


def _further(chain: ScoredChain, candidates: Sequence[str], result: BeamResult, options: BeamOptions) -> Iterable[str]:
    """The documents that may follow a chain: the first ones of its search, then of the question's, without its own."""
    own = [d for d in candidates if d not in chain.documents][: options.depth]
    first = [d for d in result.ranking if d not in chain.documents][: options.again]
    return dict.fromkeys([*own, *first])


def _priors(found: Found, weight: float) -> dict[str, float]:
    """What a search says of its documents, nats."""
    return {d: weight * value for d, value in scaled(found.documents, found.scores).items()} if weight else {}


def _grown(
    chain: ScoredChain,
    steps: Sequence[tuple[int, Ids, bool]],
    log_odds: Sequence[float],
    priors: Sequence[float],
    scoring: Scoring,
) -> Iterator[ScoredChain]:
    """The chain after each of its possible steps."""
    weighed = [step + prior for step, prior in zip(log_odds, priors, strict=True)]
    everything = _log_sum_exp([0.0, *weighed])  # "none of these" has log-odds 0
    for (_, documents, _), step, prior, both in zip(steps, log_odds, priors, weighed, strict=True):
        if scoring == "last":
            score = step + (chain.prior + prior) / len(documents)
        elif scoring == "sum":
            score = chain.score - _log_sum_exp([0.0, -both])  # log σ
        else:
            score = chain.score + both - everything
        yield ScoredChain(documents, score, (*chain.log_odds, step), chain.prior + prior)


def _keep_best(result: BeamResult, grown: Iterable[ScoredChain], width: int, extended: int) -> None:
    """Fill the beam's places with the best of its finished chains and the grown ones; ties in the order of retrieval.

    Args:
        result: Its `chains` and `passed_over` are replaced and extended.
        grown: The extended chains after their possible steps.
        width: Number of places.
        extended: Number of documents of the chains that were extended, which have left the beam.
    """
    best: dict[tuple[frozenset[str], bool], ScoredChain] = {}
    for chain in [*(each for each in result.chains if each.ended or len(each.documents) != extended), *grown]:
        key = (frozenset(chain.documents), chain.ended)
        if key not in best or chain.score > best[key].score:
            best[key] = chain
    order = sorted(best.values(), key=lambda chain: -chain.score)
    result.chains = order[:width]
    for chain in order[width:]:
        if not chain.ended:
            result.passed_over[frozenset(chain.documents)] = chain


def _log_sum_exp(values: Sequence[float]) -> float:
    most = max(values)
    return most + math.log(sum(math.exp(value - most) for value in values))
