"""Multi-query retrieval (DMQR-RAG, Eq. 1-3): a question and its rewrites search together, and their passages are fused.

q' = {q, RS_1(q), ..., RS_n(q)}     D = union of Retriever(q'_i)     D' = Reranker(q, D), or RRF of the lists
"""

import time
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from common.errors import UserError
from common.ranges import NonNegativeInt, PositiveInt, Precision
from common.records import Answer, Passage, Question, Ranked, as_texts, clean
from common.retrieval import Search, plain_search, reciprocal_rank_fusion, search_for, search_once, without_copies
from common.rewrites import Rewrites, restricted
from harness.interfaces import FeedbackRewriter, Retriever, Rewriter
from harness.retrievers.corpora import check_same_corpus
from harness.retrievers.rerank import judge_note, rerank, shortened
from harness.retrievers.rerank_prior import RerankPrior
from harness.rewriters.dialogue import stand_alone
from harness.rewriters.strategy_checks import check_each_once, check_strategies
from harness.runtime.loading import load
from harness.runtime.long_questions import as_read
from harness.runtime.memo import READ_AT_ONCE, Memo, Needed, digest_of
from harness.runtime.retriever_tree import failures_of
from harness.runtime.stages import followed_by, stage_ended
from models.token_count import tokens_read

if TYPE_CHECKING:
    from models.cross_encoder import RelevanceEstimator

MultiQueryFusion = Literal["rerank", "rrf"]
ORIGINAL = "question"  # what made the query that is the question itself
SEARCH = "retrieval"  # the stage
EVERY = 10**9  # passages: all


@dataclass(frozen=True, slots=True)
class QueryHits:
    """One query of a question, and its results."""

    query: str
    made_by: tuple[str, ...]  # strategies, or ORIGINAL
    hits: tuple[Ranked, ...]  # best first, with the retriever's scores
    failure: str = ""  # why the search failed, in one line; empty if it did not


@dataclass(frozen=True, slots=True)
class MultiQueryHits:
    """The results of all queries of one question."""

    searches: tuple[QueryHits, ...]
    rewrites: Rewrites | None  # None without a rewriter
    ranked: tuple[Ranked, ...]  # the fused list, best first
    scored: int  # passages that the scorer was given
    question: str = ""  # as it was searched and reranked; it stands alone
    needed: tuple[Needed, ...] = ()  # of the parts, by the question alone; with a memo

    @property
    def union(self) -> list[Passage]:
        """Every passage once, in the order of first appearance, query by query."""
        return union([search.hits for search in self.searches])

    def ranks(self, passage_id: str) -> dict[int, int]:
        """Place of each query that found the passage -> rank of the passage in its list, from 1."""
        return {
            place: rank
            for place, search in enumerate(self.searches)
            for rank, hit in enumerate(search.hits, 1)
            if hit.passage.id == passage_id
        }

    def alone(self, place: int) -> list[Passage]:
        """The passages that only the query at this place found, best first."""
        others = {each.id for each in union([*(s.hits for s in self.searches[:place] + self.searches[place + 1 :])])}
        return [hit.passage for hit in self.searches[place].hits if hit.passage.id not in others]


@dataclass(frozen=True, slots=True)
class MultiQueryBatch:
    """The results of a batch of questions, with the seconds of each stage and the tokens that the scorer read."""

    results: list[MultiQueryHits]
    seconds: dict[str, float]  # rewriting, retrieval, reranking; of the whole batch
    tokens: int


def union(lists: Sequence[Sequence[Ranked]]) -> list[Passage]:
    """Every passage of ranked lists once, by id, in the order of first appearance, list by list."""
    passages: dict[str, Passage] = {}
    for hits in lists:
        for hit in hits:
            passages.setdefault(hit.passage.id, hit.passage)
    return list(passages.values())


class MultiQueryRetriever:
    """Searches with each question and its rewrites, around any retriever, in one batched search.

    A rewriter that reads what the question finds (`FeedbackRewriter`) is given it: the questions then search first, and
    their rewrites in a second batched search. Its passages may come from another retriever (`feedback_retriever`), so
    that its queries bring to a dense search what words find, as RM3 does. Scores are relevance logits with `rerank`,
    sums of reciprocal ranks with `rrf`.

    Args:
        retriever: Searches with all queries of all questions together.
        rewriter: Makes the rewrites, such as harness.rewriters.llm.LlmRewriter; None searches with the question alone.
        strategies: Of the rewriter.
        per_query: Passages retrieved per query; as a retriever, at least k.
        fusion: `rerank`: by a scorer of (question, passage).  `rrf`: reciprocal rank fusion, as RAG-Fusion.
        serving: For `rerank`: folder with an estimator that RE-RAG's training exported, e.g.
            checkpoints/rerag-nq/serving, or folder or hub id of a cross-encoder, e.g. BAAI/bge-reranker-base.
        judged_by: For `rerank`: what passages are judged by, the `question` (Eq. 3), or the rewrite by one of the
            strategies: a scorer that was trained on clean questions is misled by noise in them.
        original: Whether the question itself searches, too; if not, and with a rewriter, only its rewrites do.
        rank_constant: Of `rrf`.
        scorer: A loaded scorer, instead of `serving`.
        device: Of the scorer: auto, cpu or cuda.
        precision: Of the scorer: auto (bf16 where the device has it in hardware), fp32 or bf16.
        max_queries: Only this many of a question's distinct queries search, the first ones; all when None.
        feedback_retriever: Finds the passages that a rewriter of words (`FeedbackRewriter`) reads, such as BM25 beside
            a dense `retriever`; `retriever` itself when None.
        prior: For `rerank`: file that `infer.py tune` fitted: the order by reciprocal rank fusion
            counts beside the logits.

    Raises:
        UserError: If `fusion` is another word, `rerank` has no scorer, `rrf` has one, `judged_by` names no query, or
            `feedback_retriever` is given to a rewriter that reads no passage.
        MissingInputError: If the serving folder is missing.
        ArtifactError: If it is corrupt, of another kind or text format, or has no estimator, or the two search
            different corpora.
    """

    def __init__(
        self,
        retriever: Retriever,
        rewriter: Rewriter | None = None,
        strategies: tuple[str, ...] = ("gqr", "kwr", "par", "cce"),
        per_query: PositiveInt = 10,
        fusion: MultiQueryFusion = "rerank",
        serving: Path | None = None,
        original: bool = True,
        rank_constant: NonNegativeInt = 60,
        scorer: "RelevanceEstimator | None" = None,
        device: str = "auto",
        precision: Precision = "auto",
        judged_by: str = ORIGINAL,
        max_queries: PositiveInt | None = None,
        feedback_retriever: Retriever | None = None,
        prior: Path | None = None,
    ) -> None:
        given = (serving is not None) + (scorer is not None)
        if fusion == "rerank" and given != 1:
            raise UserError(
                "fusion rerank needs one scorer: name a folder with an estimator by serving "
                "(checkpoints/<name>/serving) or a cross-encoder such as BAAI/bge-reranker-base, or set fusion to rrf."
            )
        if fusion not in ("rerank", "rrf"):  # such as the fifth value of a call
            raise UserError(f"fusion is {fusion!r}; allowed: rerank, rrf.")
        if fusion == "rrf" and (given or prior is not None):
            raise UserError("fusion rrf uses no scorer: omit serving and prior, or set fusion to rerank.")
        allowed = [ORIGINAL, *(strategies if fusion == "rerank" and rewriter is not None else ())]
        if judged_by not in allowed:
            raise UserError(f"judged_by is {judged_by!r}; allowed with these options: {', '.join(allowed)}.")
        if rewriter is not None:
            check_each_once(strategies)
        if feedback_retriever is not None and not hasattr(rewriter, "feedback_passages"):
            raise UserError(
                "feedback_retriever finds the passages that a rewriter reads, but this rewriter reads none: omit "
                "feedback_retriever, or give a rewriter such as harness.rewriters.extractive.ExtractiveRewriter."
            )
        self.retriever, self.rewriter, self.strategies = retriever, rewriter, tuple(strategies)
        self.per_query, self.fusion, self.original = per_query, fusion, original or rewriter is None
        self.rank_constant, self.judged_by = rank_constant, judged_by
        self.max_queries, self.feedback_retriever = max_queries, feedback_retriever
        self.prior = RerankPrior.of(prior, serving)
        self.serving, self.device, self.precision, self._scorer = serving, device, precision, scorer
        self.searching: tuple[str, ...] | None = None  # the strategies whose rewrites search; all when None
        self.memo: Memo | None = None  # of an evaluation

    def with_settings(self, **settings: Any) -> Self:
        """The same search with other attributes; its parts are the same objects."""
        _ = self.scorer
        other = copy(self)
        vars(other).update(settings)
        if other.fusion == "rrf":
            vars(other).update(serving=None, scorer=None, prior=None, judged_by=ORIGINAL)
        return other

    def load(self) -> None:
        """Load the rewriter, which must know the strategies, the scorer and the retrievers, which search one corpus."""
        if self.rewriter is not None:
            check_strategies(self.rewriter, self.strategies)
        _ = self.scorer
        load(self.rewriter, self.retriever, self.feedback_retriever)
        if self.feedback_retriever is not None:
            check_same_corpus([self.retriever, self.feedback_retriever])

    @cached_property
    def scorer(self) -> "RelevanceEstimator | None":
        """Scores the passages for `rerank`; None for `rrf`."""
        if self.serving is None:
            return self._scorer
        from models.cross_encoder import load_scorer

        return load_scorer(self.serving, self.device, self.precision)

    def cut_note(self, question: str, history: Sequence[str] = ()) -> str:
        """The part of a question that the scorer reads if it is too long; else empty."""
        return judge_note(self.__dict__.get("scorer"), question)  # not loaded for a note

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """The k best passages of each query after fusion, best first; equal queries are rewritten once.

        Raises:
            UserError: If the rewriter does not know a strategy.
        """
        queries = as_texts(queries)
        texts = [clean(query) for query in queries]
        distinct = [Question(str(place), text) for place, text in enumerate(dict.fromkeys(texts), 1) if text]
        with followed_by(lambda *_: None):  # these are no questions of a system
            found = self.find(distinct, k, max(k, self.per_query)).results
        ranked = dict(zip((each.text for each in distinct), (each.ranked for each in found), strict=True))
        return [list(ranked.get(text, ())) for text in texts]

    def find(self, questions: Sequence[Question], k: int, per_query: int | None = None) -> MultiQueryBatch:
        """The k best passages of each question, with the results of each of its queries.

        One batched search for all of them.

        Args:
            questions: Their texts, with earlier turns for the rewriter; `harness.rewriters.dialogue` says what of such
                a question is searched.
            k: Passages of the fused list.
            per_query: Passages per query; the option's when None.
        """
        self.load()
        per_query = per_query or self.per_query
        began = time.perf_counter()
        questions, _ = as_read(self, questions)
        first = self.first_search(questions, per_query)
        searched = time.perf_counter()
        rewrites = self.rewrites(questions, first)
        alone = [stand_alone(*pair, self) for pair in zip(questions, rewrites, strict=True)]
        questions = [question for question, _ in alone]
        made = [self._queries(*pair) for pair in alone]
        rewritten = time.perf_counter()
        written = [[{"query": query, "made_by": [*by]} for query, by in own.items()] for own in made]
        shown = zip(questions, written, strict=True)
        stage_ended("queries", [Answer(each.id, "", (), notes={"queries": own}) for each, own in shown])
        found = self._search(questions, made, per_query, first if self.feedback_retriever is None else {})
        retrieved = time.perf_counter()
        before = tokens_read(self.scorer)
        judges = [" ".join(own.queries.get(self.judged_by, ()) if own else ()) or clean(q.text) for q, own in alone]
        ranked = self._fuse(judges, found)
        results = [
            MultiQueryHits(
                searches, made_of, tuple(without_copies(hits)[:k]), len(hits) * (self.scorer is not None),
                clean(question.text), self._needed(made_of, len(searches), len(hits), per_query),
            )
            for searches, (question, made_of), hits in zip(found, alone, ranked, strict=True)
        ]  # fmt: skip
        seconds = {
            "rewriting": rewritten - searched,
            "retrieval": searched - began + retrieved - rewritten,
            "reranking": time.perf_counter() - retrieved,
        }
        return MultiQueryBatch(results, seconds, tokens_read(self.scorer) - before)

    def rewrites(
        self, questions: Sequence[Question], first: Mapping[str, Sequence[Ranked]] | None = None
    ) -> Sequence[Rewrites | None]:
        """The rewrites of each question; None for each without a rewriter.

        Args:
            questions: The questions.
            first: What their texts find, for a rewriter that reads it; searched here when None.
        """
        if self.rewriter is None or not questions:
            return [None] * len(questions)
        if not isinstance(self.rewriter, FeedbackRewriter):
            return self._written(questions)
        first = self.first_search(questions, self.per_query) if first is None else first
        made = self._written(questions, [first[clean(each.text)] for each in questions])
        if self.feedback_retriever is None:
            return made
        return [replace(each, costs={**each.costs, "retriever_calls": 1.0}) for each in made]  # by `feedback_retriever`

    def _written(self, questions: Sequence[Question], *feedback: Sequence[Sequence[Ranked]]) -> Sequence[Rewrites]:
        """What the rewriter writes; with a memo once, by the first row that has all of these strategies."""
        rewriter = self.rewriter
        assert rewriter is not None
        if self.memo is None:
            return rewriter.rewrite(questions, self.strategies, *feedback)
        strategies = self.memo.widest(rewriter, self.strategies)
        count = rewriter.feedback_passages if isinstance(rewriter, FeedbackRewriter) else 0
        found = [hits[:count] for hits in feedback[0]] if feedback else [()] * len(questions)
        texts = [[hit.passage.text for hit in hits] for hits in found]
        keys = [digest_of(question, strategies, own) for question, own in zip(questions, texts, strict=True)]

        def work(places: Sequence[int]) -> list[list[Any]]:
            read = [[each[place] for place in places] for each in feedback]
            made = rewriter.rewrite([questions[place] for place in places], strategies, *read)
            return [[each.queries, each.fallbacks, each.reason, each.costs] for each in made]

        values = self.memo.of("rewrites", rewriter)
        known = values(keys, work, "rewriting", READ_AT_ONCE, lasts=lambda each: not each[3].get("failed_calls"))
        return [
            restricted(Rewrites({name: tuple(texts) for name, texts in queries.items()}, *more), self.strategies)
            for queries, *more in known
        ]

    def _needed(self, written: Rewrites | None, searches: int, scored: int, per_query: int) -> tuple[Needed, ...]:
        """What one question needs of the parts by itself."""
        if self.memo is None:
            return ()
        needed = [self.memo.searched(SEARCH, self.retriever, searches, per_query)]
        if written is not None:
            needed.append(Needed("rewriting", self.memo.of("rewrites", self.rewriter), written.share))
        if isinstance(self.rewriter, FeedbackRewriter) and self.feedback_retriever is not None:
            found = self.memo.searched("feedback", self.feedback_retriever, 1, self.rewriter.feedback_passages)
            needed.append(replace(found, stage="rewriting"))
        if self.scorer is not None:
            needed.append(Needed("reranking", self.memo.of("relevance", self.scorer), scored))
        return tuple(needed)

    def first_search(self, questions: Sequence[Question], per_query: int) -> dict[str, list[Ranked]]:
        """The passages that the questions' texts find, for a rewriter that reads them; empty for any other."""
        if not isinstance(self.rewriter, FeedbackRewriter) or not questions:
            return {}
        distinct = {clean(question.text): question for question in questions}
        searched, stage, k = self.retriever, SEARCH, max(per_query, self.rewriter.feedback_passages)
        if self.feedback_retriever is not None:
            searched, stage, k = self.feedback_retriever, "feedback", self.rewriter.feedback_passages
        found = search_for(searched, [*distinct.values()], k, [*distinct], self._searcher(stage))
        return dict(zip(distinct, found, strict=True))

    def _searcher(self, stage: str) -> Search:
        return self.memo.searches(stage) if self.memo else plain_search

    def _queries(self, question: Question, rewrites: Rewrites | None) -> dict[str, tuple[str, ...]]:
        """The distinct queries of a question, in order, with what made each; equal ones search once."""
        made: dict[str, list[str]] = {clean(question.text): [ORIGINAL]} if self.original else {}
        for strategy, queries in (rewrites.queries if rewrites else {}).items():
            for query in queries if self.searching is None or strategy in self.searching else ():
                makers = made.setdefault(query, [])
                if strategy not in makers:
                    makers.append(strategy)
        made = made or {clean(question.text): [ORIGINAL]}  # an adaptive rewriter may select nothing
        return {query: tuple(made[query]) for query in [*made][: self.max_queries]}

    def _search(
        self,
        questions: Sequence[Question],
        made: Sequence[Mapping[str, tuple[str, ...]]],
        k: int,
        first: Mapping[str, Sequence[Ranked]],
    ) -> list[tuple[QueryHits, ...]]:
        """One batched search with the distinct queries of all questions that have not been searched first.

        Where questions are not to find themselves, one query finds another list for each question.
        """
        hits_of: Sequence[Mapping[str, Sequence[Ranked]]]
        if any(question.source.exclude_self for question in questions):
            asked = [(question, query) for question, own in zip(questions, made, strict=True) for query in own]
            queries = [query for _, query in asked]
            each = iter(search_for(self.retriever, [one for one, _ in asked], k, queries, self._searcher(SEARCH)))
            hits_of = [{query: next(each) for query in own} for own in made]
        else:
            own_queries = [[*own] for own in made]
            hits_of = [search_once(self.retriever, own_queries, k, first, self._searcher(SEARCH))] * len(made)
        failed = failures_of(self.retriever)
        return [
            tuple(QueryHits(query, by, tuple(hits[query]), failed.get(query, "")) for query, by in queries.items())
            for queries, hits in zip(made, hits_of, strict=True)
        ]

    def _fuse(self, judges: Sequence[str], found: Sequence[Sequence[QueryHits]]) -> list[list[Ranked]]:
        """Each question's passages, best first; every (question, passage) is scored once."""
        lists = [[search.hits for search in searches] for searches in found]
        if self.scorer is None:
            return [reciprocal_rank_fusion(each, [1.0] * len(each), self.rank_constant) for each in lists]
        texts = [shortened(self.scorer, judge) for judge in judges]
        candidates = [self.candidates(each) for each in lists]
        return rerank(self.scorer, texts, candidates, self.prior, self.memo.relevance if self.memo else None)

    def candidates(self, lists: Sequence[Sequence[Ranked]]) -> list[Ranked]:
        """The union of a question's lists with the score that a prior adds: the sum of reciprocal ranks."""
        fused = reciprocal_rank_fusion(lists, [1.0] * len(lists), self.rank_constant)
        score_of = {hit.passage.id: hit.score for hit in fused}
        return [Ranked(passage, score_of[passage.id]) for passage in union(lists)]
