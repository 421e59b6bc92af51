"""What a server offers of a system, or of a trained part alone: ask, search, rerank and rewrite, in batches."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import UserError
from common.ranges import Precision
from common.records import Answer, Passage, Question, Ranked
from common.retrieval import search_for
from common.rewrites import Rewrites
from harness.interfaces import System
from harness.retrievers.rerank import relevance, shortened
from harness.runtime.loading import load
from harness.runtime.long_questions import as_read, with_cuts
from harness.runtime.retriever_tree import inner
from harness.runtime.stages import followed_by
from harness.selection.algorithms import log_odds_of
from harness.serving.worker import ServingLimits, Work, tokens_of

if TYPE_CHECKING:
    from models.cross_encoder import RelevanceEstimator

Follower = Callable[[str, Answer], None]
EMPTY = -30.0  # log-odds of an empty text, nats: those of a classifier are above -28
_ALL_PAIRS, _FIRST = 50, 20  # passages of a request: all pairs of so many; with so many each later one is paired


@dataclass(frozen=True)
class Reranker:
    """Scores passages for queries.

    Args:
        scores: The log-odds of each request's passages, nats, in order.
        size: About how many tokens it reads for a request.
    """

    scores: Callable[[Sequence[tuple[str, Sequence[Passage]]]], list[list[float]]]
    size: Callable[[str, Sequence[Passage]], int]


def by_relevance(estimator: "RelevanceEstimator") -> Reranker:
    """RE-RAG's estimator or a cross-encoder; a query is cut to half of its input."""

    def scores(requests: Sequence[tuple[str, Sequence[Passage]]]) -> list[list[float]]:
        queries = [shortened(estimator, query) for query, _ in requests]
        return relevance(estimator, queries, [passages for _, passages in requests])

    return Reranker(scores, lambda query, own: sum(tokens_of(query, each.title, each.text) for each in own))


def pairs_of(count: int) -> list[tuple[int, int]]:
    """The places of the pairs that a classifier reads for so many passages: all of the first 50.

    Each later one is paired with the first 20, and with the others of its window of 30: with 49 others, as the first.
    A passage alone is paired with itself.
    """
    pairs = [*combinations(range(min(count, _ALL_PAIRS)), 2)] if count > 1 else [(0, 0)] * count
    for begin in range(_ALL_PAIRS, count, _ALL_PAIRS - _FIRST):
        window = range(begin, min(count, begin + _ALL_PAIRS - _FIRST))
        pairs += [*product(range(_FIRST), window), *combinations(window, 2)]
    return pairs


def by_pairs(classifier: Any) -> Reranker:
    """DR-RAG's classifier, a `PairScorer`: a passage counts as much as the best pair that it is in, in this order."""

    def scores(requests: Sequence[tuple[str, Sequence[Passage]]]) -> list[list[float]]:
        pairs = [(row, *pair) for row, (_, each) in enumerate(requests) for pair in pairs_of(len(each))]
        triples = [(requests[row][0], requests[row][1][one], requests[row][1][two]) for row, one, two in pairs]
        best = [[float("-inf")] * len(passages) for _, passages in requests]
        for (row, *places), probability in zip(pairs, classifier.probabilities(triples), strict=True):
            for place in places:
                best[row][place] = max(best[row][place], log_odds_of(probability))
        return best

    def size(query: str, own: Sequence[Passage]) -> int:
        return sum(tokens_of(query, own[one].text, own[two].text) for one, two in pairs_of(len(own)))

    return Reranker(scores, size)


@dataclass(frozen=True)
class Served:
    """What there is to serve."""

    name: str
    works: Mapping[str, Work]  # by the part that does it: ask, search, rerank, rewrite; those that there are
    reranker: Reranker | None = None
    needs_passages: bool = False  # whether the system answers only questions that ship passages
    reads: bool = False  # whether answers have a text
    strategies: tuple[str, ...] = ()  # of the rewriter


def served_system(system: System, limits: ServingLimits) -> Served:
    """What a system offers; it is loaded."""
    load(system)
    own: Any = system
    retriever, reranker = getattr(own, "retriever", None), reranker_of(own)
    search = own.search if getattr(own, "rewriter", None) is not None else None  # with several queries
    works = {"ask": Work("ask", lambda asked: answers_of(system, asked), limits.batch_questions)}
    if retriever is not None:
        works["search"] = Work("search", lambda asked: found_by(retriever, asked), limits.batch_questions)
    if reranker is not None:
        works["rerank"] = Work("rerank", reranker.scores, limits.batch_tokens)
    if search is not None:
        works["rewrite"] = Work(
            "rewrite", lambda asked: search.rewrites(_apart([each for each, _ in asked])), limits.batch_questions
        )
    return Served(
        type(system).__name__, works, reranker,
        needs_passages=hasattr(own, "retriever") and retriever is None,
        reads=getattr(own, "reader", None) is not None
        or getattr(getattr(own, "model", None), "generator", None) is not None,
        strategies=tuple(getattr(search, "strategies", ())),
    )  # fmt: skip


def served_part(serving: Path, limits: ServingLimits, device: str = "auto", precision: Precision = "auto") -> Served:
    """What a trained part offers alone.

    Args:
        serving: A folder that training exported, or folder or hub id of a cross-encoder.
        limits: See `ServingLimits`.
        device: auto, cpu or cuda.
        precision: auto (bf16 where the device has it in hardware), fp32 or bf16.

    Raises:
        UserError: If the part needs a system around it.
        MissingInputError: If there is no such folder.
        ArtifactError: If it is corrupt.
    """
    from common.files import read_json
    from models.serving_manifest import CURE, MANIFEST

    manifest = serving / MANIFEST
    kind = read_json(manifest, CURE).get("kind") if manifest.is_file() else "re_rag"
    if kind == "dmqr_rewriter":
        from harness.rewriters.trained import TrainedRewriter

        rewriter = TrainedRewriter(serving, device, precision)
        rewriter.load()

        def rewritten(asked: Sequence[tuple[Question, tuple[str, ...]]]) -> list[Rewrites]:
            return by_option(asked, lambda questions, names: rewriter.rewrite(_apart(questions), names))

        work = Work("rewrite", rewritten, limits.batch_questions)
        return Served(str(serving), {"rewrite": work}, strategies=rewriter.strategies)
    if kind == "triple_classifier":
        from models.drrag.triple_classifier import TripleClassifier

        reranker = by_pairs(TripleClassifier.load(serving, device, precision=precision))
    elif kind == "re_rag":
        from models.cross_encoder import load_scorer

        reranker = by_relevance(load_scorer(serving, device, precision))
    else:
        raise UserError(
            f"{serving} holds a {kind!r}, which works inside of a system: serve that, infer.py serve --config FILE."
        )
    return Served(str(serving), {"rerank": Work("rerank", reranker.scores, limits.batch_tokens)}, reranker)


def answers_of(system: System, asked: Sequence[tuple[Question, Follower | None]]) -> list[Answer]:
    """The answers of a system to questions of several requests, each with the id that its request gave it.

    Args:
        system: Answers.
        asked: Questions, and who follows their stages.

    Raises:
        UserError: If none can be answered.
    """
    questions = _apart([question for question, _ in asked])
    followers = {each.id: follower for each, (_, follower) in zip(questions, asked, strict=True) if follower}
    questions, cuts = as_read(system, questions)

    def told(stage: str, answers: Iterable[Answer]) -> None:
        for answer in answers:
            if follower := followers.get(answer.question_id):
                follower(stage, answer)

    with followed_by(told):
        answers = system.answer(questions)
    return [
        with_cuts(replace(answer, question_id=question.id), cut)
        for answer, (question, _), cut in zip(answers, asked, cuts, strict=True)
    ]


def found_by(retriever: Any, asked: Sequence[tuple[str, int]]) -> list[list[Ranked]]:
    """The passages of each query; queries for as many passages are searched together."""
    return by_option(asked, lambda texts, k: search_for(retriever, _apart([Question("", text) for text in texts]), k))


def by_option(asked: Sequence[tuple[Any, Any]], work: Callable[[list[Any], Any], Sequence[Any]]) -> list[Any]:
    """The results of requests in order; those with the same option are worked on together."""
    made: dict[int, Any] = {}
    for option in dict.fromkeys(option for _, option in asked):
        rows = [row for row, (_, each) in enumerate(asked) if each == option]
        made |= zip(rows, work([asked[row][0] for row in rows], option), strict=True)
    return [made[row] for row in range(len(asked))]


def reranker_of(system: Any) -> Reranker | None:
    """The estimator or classifier of a loaded system."""
    for owner in (system, getattr(system, "model", None), getattr(system, "search", None), *inner(system)):
        for name in ("estimator", "scorer"):
            model: Any = getattr(owner, name, None)
            if hasattr(model, "scores"):
                return by_relevance(model)
            if hasattr(model, "probabilities"):
                return by_pairs(model)
    return None


def _apart(questions: Sequence[Question]) -> list[Question]:
    """The questions with ids of their own: those of several requests may be the same."""
    return [replace(each, id=f"request {place}") for place, each in enumerate(questions)]
