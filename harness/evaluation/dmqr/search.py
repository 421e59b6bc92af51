"""The search results of every method in DMQR-RAG's study.

Each rewriter is asked once per question, each query searches once, and each (question, passage) is scored once for all
methods.

Shape legend: N questions.
"""

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from common.progress import track_batches
from common.records import Answer, Passage, Question, Ranked, clean
from common.rewrites import Rewrites
from harness.evaluation.dmqr.methods import Method
from harness.evaluation.serialization import digest
from harness.interfaces import Retriever
from harness.readers.read_answers import sum_costs
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.dense import DenseRetriever
from harness.retrievers.multi_query import MultiQueryHits, MultiQueryRetriever, judges
from harness.retrievers.multi_query_records import counts, explanation
from harness.retrievers.rerank import ranked, relevance, shortened
from harness.retrievers.rm3 import Rm3Retriever
from harness.runtime.provenance import computed_in, configuration, hardware
from harness.runtime.resumable import ResumableBatches
from harness.systems.dmqr import Dmqr
from models.token_count import tokens_read

QUESTIONS_AT_ONCE = 64  # rewritten, searched and scored together, as `evaluate` asks a system


@dataclass(slots=True)
class DmqrResults:
    """The results of one method. All lists have one entry per question."""

    method: Method
    hits: list[MultiQueryHits] = field(default_factory=list)  # `ranked`: by the method's fusion
    judges: list[str] = field(default_factory=list)  # the texts by which the passages are judged


@dataclass(slots=True)
class Spent:
    """Costs of the shared work, to charge each method for its part."""

    search_seconds: dict[str, float] = field(default_factory=dict)  # per query, by retriever
    pairs: int = 0  # (question, passage) scored
    pair_seconds: float = 0.0  # per pair
    pair_tokens: float = 0.0  # per pair
    seconds_before: float = 0.0  # computing time of results reused from an interrupted run


def rewrite_all(search: MultiQueryRetriever, questions: Sequence[Question], file: Path, spent: Spent) -> list[Rewrites]:
    """The rewrites of every question by a rewriter, in resumable batches; the costs hold its seconds.

    Args:
        search: With the rewriter and its strategies.
        questions: All of them.
        file: For the results; nothing is saved if the rewriter's configuration is unknown.
        spent: Gets the seconds of results that are used again.
    """
    saved = _saved(file, {"rewriter": search.rewriter, "retriever": search.feedback_retriever or search.retriever},
                   strategies=search.strategies, questions=digest(questions),
                   recipe=getattr(search.rewriter, "recipe", None))  # fmt: skip

    def work(batch: Sequence[Question]) -> list[list[Any]]:
        started = time.perf_counter()
        first = search.first_search(batch, search.per_query)
        if search.feedback_retriever is None:  # it is the question's own search, and charged as such
            started = time.perf_counter()
        found = search.rewrites(batch, first)
        seconds = {"seconds/rewriting": (time.perf_counter() - started) / len(batch)}
        return [[e.queries, e.fallbacks, e.reason, {**e.costs, **seconds}] for e in found if e is not None]

    results = saved.run(_batches(questions), work, "rewriting, batches")
    rewrites = [
        Rewrites({system: tuple(texts) for system, texts in queries.items()}, *others)
        for batch in results
        for queries, *others in batch
    ]
    spent.seconds_before += saved.seconds
    return rewrites


class _Known:
    """A rewriter whose rewrites are made already, restricted to some strategies."""

    name = "known"

    def __init__(self, rewrites: Mapping[int, Rewrites]) -> None:
        self._rewrites = rewrites  # by `id` of the question

    def rewrite(self, questions: Sequence[Question], strategies: Sequence[str]) -> list[Rewrites]:
        return [restricted(self._rewrites[id(question)], strategies) for question in questions]


def restricted(rewrites: Rewrites, strategies: Sequence[str]) -> Rewrites:
    """The rewrites by some of the strategies.

    A rewriter that makes one call per strategy is charged for these calls only; one that makes all rewrites in one call
    in full.
    """
    if all(name in strategies for name in rewrites.queries):
        return rewrites
    calls = rewrites.costs.get("model_calls", 0.0)
    queries = {name: rewrites.queries[name] for name in strategies if name in rewrites.queries}
    fallbacks = {name: rewrites.fallbacks[name] for name in strategies if name in rewrites.fallbacks}
    share = len(queries) / len(rewrites.queries) if calls >= len(rewrites.queries) else 1.0
    shares = {name: 1.0 if name == "retriever_calls" else share for name in rewrites.costs if name != "fallbacks"}
    costs = {name: rewrites.costs[name] * own for name, own in shares.items()}
    return Rewrites(
        queries, fallbacks, rewrites.reason, costs | ({"fallbacks": float(len(fallbacks))} if fallbacks else {})
    )


class _SearchedOnce:
    """A retriever that searches with each query once per depth; it keeps one copy of each passage.

    Of an index a shorter list is the beginning of a longer one: a query that has searched it deeper does not search
    again.
    """

    def __init__(self, retriever: Retriever, passages: dict[str, Passage]) -> None:
        self.retriever = retriever
        self.queries, self.seconds = 0, 0.0  # that have searched, and their time
        self._passages = passages
        self._found: dict[tuple[str, int], list[Ranked]] = {}
        self._is_index = _searches_an_index(retriever)

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        if self._is_index:
            deeper = sorted({depth for _, depth in self._found if depth > k})
            for query in dict.fromkeys(queries):
                known = next((self._found[query, depth] for depth in deeper if (query, depth) in self._found), None)
                if known is not None:
                    self._found.setdefault((query, k), known[:k])
        new = [query for query in dict.fromkeys(queries) if (query, k) not in self._found]
        if new:
            started = time.perf_counter()
            found = self.retriever.search(new, k)
            self.seconds += time.perf_counter() - started
            self.queries += len(new)
            for query, hits in zip(new, found, strict=True):
                kept = [Ranked(self._passages.setdefault(h.passage.id, h.passage), h.score) for h in hits]
                self._found[query, k] = kept
        return [self._found[query, k] for query in queries]

    def forget(self) -> None:
        """Free the results of all queries so far."""
        self._found.clear()


def _searches_an_index(retriever: object) -> bool:
    """Whether a retriever ranks an index by one score, directly or with RM3."""
    first = retriever.retriever if isinstance(retriever, Rm3Retriever) else retriever
    return isinstance(first, Bm25Retriever | DenseRetriever)


def find_all(
    system: Dmqr,
    methods: Iterable[Method],
    retrievers: Mapping[str, Retriever],
    questions: Sequence[Question],
    rewrites: Mapping[str, Sequence[Rewrites]],
    most: int,
    file: Path,
    spent: Spent,
) -> dict[str, DmqrResults]:
    """The results of every method, ranked by its fusion.

    Args:
        system: The measured system; its scorer reranks.
        methods: All rows.
        retrievers: By name.
        questions: All of them.
        rewrites: By name of the rewriter; one entry per question.
        most: Passages kept of each ranked list.
        file: For the scores; nothing is saved if the system's configuration is unknown.
        spent: Gets the costs.
    """
    found = {method.name: DmqrResults(method) for method in methods}
    passages: dict[str, Passage] = {}
    once = {name: _SearchedOnce(retriever, passages) for name, retriever in retrievers.items()}
    known = {name: _Known(dict(zip(map(id, questions), each, strict=True))) for name, each in rewrites.items()}
    searches = {
        method.name: MultiQueryRetriever(
            once[method.retriever], None if method.rewriter is None else known[method.rewriter], method.strategies,
            method.per_query, "rrf", None, method.original, system.search.rank_constant,
        )
        for method in methods
    }  # fmt: skip
    # the deepest searches first, then those with the most queries: they serve the others, too
    order = sorted(found, key=lambda name: (-found[name].method.per_query, -len(found[name].method.strategies)))
    for batch in track_batches(iter(_batches(questions)), len(questions), "searching"):
        for name in order:
            found[name].hits += searches[name].find(batch, _EVERY).results
        for retriever in once.values():
            retriever.forget()
    spent.search_seconds = {name: each.seconds / max(1, each.queries) for name, each in once.items()}
    for each in found.values():
        each.judges = [clean(question.text) for question in questions]
        if each.method.judge is not None:
            rewriter, name = each.method.judge
            each.judges = judges(questions, rewrites[rewriter], name)
            each.hits = [
                replace(hits, rewrites=restricted(made, [*each.method.strategies, name]))
                for hits, made in zip(each.hits, rewrites[rewriter], strict=True)
            ]
    scores = _score(system, found.values(), questions, file, spent)
    for each in found.values():
        each.hits = [
            _ranked(each.method, hits, own.get(judge, {}), most, system.search)
            for hits, judge, own in zip(each.hits, each.judges, scores, strict=True)
        ]
    return found


_EVERY = 10**9  # passages: all


def _ranked(
    method: Method, hits: MultiQueryHits, scores: Mapping[str, float], most: int, search: MultiQueryRetriever
) -> MultiQueryHits:
    """The hits of one question ranked by the method's fusion, with the measured system's prior; ties keep order."""
    if method.fusion == "rrf":
        return replace(hits, ranked=hits.ranked[:most])
    found = search.candidates([each.hits for each in hits.searches])
    best = ranked(found, [scores[hit.passage.id] for hit in found], search.prior)
    return replace(hits, ranked=tuple(best[:most]), scored=len(found))


def _score(
    system: Dmqr, found: Iterable[DmqrResults], questions: Sequence[Question], file: Path, spent: Spent
) -> list[dict[str, dict[str, float]]]:
    """The relevance of every passage that a reranking method found, for each question.

    Text that it is judged by -> id -> score.
    """
    scorer = system.search.scorer
    wanted: list[dict[str, dict[str, Passage]]] = [{} for _ in questions]
    for each in found:
        if each.method.fusion == "rerank":
            for own, hits, judge in zip(wanted, each.hits, each.judges, strict=True):
                own.setdefault(judge, {}).update((passage.id, passage) for passage in hits.union)
    if scorer is None or not any(wanted):
        return [{} for _ in questions]
    keys = [sorted((judge, *sorted(passages)) for judge, passages in own.items()) for own in wanted]
    saved = _saved(
        file,
        {"system": system},
        questions=digest(questions),
        pairs=hashlib.sha256(repr(keys).encode()).hexdigest(),
        computed_in=computed_in(scorer),
    )

    def work(batch: Sequence[dict[str, dict[str, Passage]]]) -> dict[str, Any]:
        started, tokens = time.perf_counter(), tokens_read(scorer)
        judged = [(judge, passages) for own in batch for judge, passages in own.items()]
        texts = [shortened(scorer, judge) for judge, _ in judged]
        logits = iter(relevance(scorer, texts, [[*passages.values()] for _, passages in judged]))
        seconds = time.perf_counter() - started
        scores = [
            {judge: dict(zip(passages, next(logits), strict=True)) for judge, passages in own.items()} for own in batch
        ]
        return {"seconds": seconds, "tokens": tokens_read(scorer) - tokens, "scores": scores}

    results = saved.run(_batches(wanted), work, "scoring passages, batches")
    scores: list[dict[str, dict[str, float]]] = []
    seconds = tokens = 0.0
    for result in results:
        scores += result["scores"]
        seconds += result["seconds"]
        tokens += result["tokens"]
    spent.pairs = sum(len(passages) for own in wanted for passages in own.values())
    spent.pair_seconds, spent.pair_tokens = seconds / spent.pairs, tokens / spent.pairs
    spent.seconds_before += saved.seconds
    return scores


def _saved(file: Path, parts: Mapping[str, object], **depends_on: object) -> ResumableBatches:
    """Resumable batches that depend on the configurations of parts; nothing is saved if one of them is unknown."""
    known = {name: configuration(part) for name, part in parts.items()}
    if any(each is None for each in known.values()):
        return ResumableBatches()
    return ResumableBatches(file, {**known, **depends_on, "hardware": hardware()})


def _batches(items: Sequence[Any]) -> list[Sequence[Any]]:
    return [items[start : start + QUESTIONS_AT_ONCE] for start in range(0, len(items), QUESTIONS_AT_ONCE)]


def method_answers(
    questions: Sequence[Question],
    found: DmqrResults,
    k: int,
    spent: Spent,
    read: Sequence[Answer] | None,
    reading_seconds: float,
) -> list[Answer]:
    """One answer per question.

    A method is charged for what it alone would need: its searches, its pairs at the mean time of a pair, the calls of
    the rewriter for its strategies, and reading.

    Args:
        questions: All of them.
        found: Of the method.
        k: Passages of the evidence.
        spent: Mean costs.
        read: What the reader answered, one per question; None without a reader.
        reading_seconds: Per question.
    """
    method, answers = found.method, []
    for number, (question, hits) in enumerate(zip(questions, found.hits, strict=True)):
        own = replace(hits, ranked=hits.ranked[:k])
        seconds = {
            "retrieval": spent.search_seconds[method.retriever] * len(hits.searches),
            "reranking": spent.pair_seconds * hits.scored,
        }
        costs = {
            **counts(own, spent.pair_tokens * hits.scored),
            **{f"seconds/{stage}": value for stage, value in seconds.items()},
        }
        answer = Answer(question.id, "", own.ranked, costs=costs, notes={} if method.part else explanation(own))
        if read is not None:
            text = read[number]
            costs = {**sum_costs(costs, text.costs), "seconds/reading": reading_seconds}
            answer = replace(text, evidence=own.ranked, costs=costs, notes={**answer.notes, **text.notes})
        answers.append(answer)
    return answers
