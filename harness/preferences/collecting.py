"""Collects preferences.

Drafts candidate rewrites of questions, searches with all of them together, and rewards them.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from common.preferences import Reward, RewritePreferences
from common.records import Question, Ranked, clean
from common.retrieval import Retriever, search_fused
from harness.preferences.drafts import Drafter
from harness.readers.read_answers import sum_costs
from harness.runtime.failures import Apart, Failure

Searched = tuple[int, tuple[str, ...]]  # number of a question in its batch, and queries: one list of passages


@dataclass
class Collected:
    """The preferences of a batch of questions."""

    rows: list[RewritePreferences]
    skipped: Counter[str]  # questions (and strategies) without candidates, by reason
    seconds: dict[str, float]  # of drafting, searching and rewarding

    @property
    def saved(self) -> dict[str, Any]:
        """For the journal of an interrupted run, JSON types only."""
        rows = json.loads(json.dumps([*map(asdict, self.rows)]))  # lists for tuples, as a journal gives them back
        return {"rows": rows, "skipped": dict(self.skipped), "seconds": self.seconds}


@dataclass(frozen=True)
class Collector:
    """Rewards candidate rewrites.

    Args:
        drafts: Makes the candidates.
        reward: Rewards them.
        retriever: Searches; None if neither the reward nor the rewriter needs passages.
        fused: Whether the question's list is fused with the rewrite's, as a system that searches with both does; if
            not, the rewrite's list is rewarded. Several queries of a rewrite are fused in any case.
        depth: Passages per query.
        first: Passages of the first search that the rewriter reads; 0 if it reads none.
        feedback_retriever: Finds these passages; `retriever` when None.
    """

    drafts: Drafter
    reward: Reward
    retriever: Retriever | None
    fused: bool
    depth: int
    first: int
    feedback_retriever: Retriever | None = None

    def __call__(self, questions: Sequence[Question]) -> Collected:
        """The preferences of a batch, in order.

        All queries of all questions are one search, equal ones are searched once.
        """
        began = time.perf_counter()
        first = self._first(questions)
        searched = time.perf_counter()
        drafts, skipped = self.drafts(questions, [first.get(clean(each.text), ()) for each in questions])
        drafted = time.perf_counter()
        wanted = [
            [(each.place, queries) for queries in ((clean(questions[each.place].text),), *each.queries)]
            for each in drafts
        ]
        distinct = list(dict.fromkeys(one for group in wanted for one in group))
        found = self._search(questions, distinct, first if self.feedback_retriever is None else {})
        retrieved = time.perf_counter()
        rewards = self.reward([questions[place] for place, _ in distinct], [queries for _, queries in distinct], found)
        value = dict(zip(distinct, rewards, strict=True))
        rows = [
            each.rewarded(value[group[0]], [value[one] for one in group[1:]])
            for each, group in zip(drafts, wanted, strict=True)
        ]
        seconds = {
            "searching": searched - began + retrieved - drafted,
            "rewriting": drafted - searched,
            "rewarding": time.perf_counter() - retrieved,
        }
        return Collected(rows, skipped, seconds)

    def _first(self, questions: Sequence[Question]) -> Mapping[str, Sequence[Ranked]]:
        """The first search's passages, for a rewriter that reads them; empty for another one."""
        if not self.first or self.retriever is None:
            return {}
        texts = list(dict.fromkeys(clean(question.text) for question in questions))
        if self.feedback_retriever is not None:
            return dict(zip(texts, self.feedback_retriever.search(texts, self.first), strict=True))
        return dict(zip(texts, self.retriever.search(texts, max(self.first, self.depth)), strict=True))

    def _search(
        self, questions: Sequence[Question], wanted: Sequence[Searched], first: Mapping[str, Sequence[Ranked]]
    ) -> list[Sequence[Ranked]]:
        """The best passages of each list that is wanted."""
        if self.retriever is None or not self.reward.depth:
            return [()] * len(wanted)
        lists = [self._queries(clean(questions[place].text), queries) for place, queries in wanted]
        return [each[: self.reward.depth] for each in search_fused(self.retriever, lists, self.depth, first)]

    def _queries(self, question: str, queries: Sequence[str]) -> list[str]:
        return list(dict.fromkeys([question, *queries] if self.fused else queries))


def collected_apart(collect: Collector) -> Callable[[Sequence[Question]], dict[str, Any]]:
    """The results of a batch, with the reasons of the questions that `failed` by id; the others are not affected."""
    apart = Apart[Question, dict[str, Any] | None](lambda batch: [collect(batch).saved, *[None] * (len(batch) - 1)])

    def work(batch: Sequence[Question]) -> dict[str, Any]:
        found = apart(batch)
        parts = [each for each in found if isinstance(each, dict)]
        skipped, seconds = Counter[str](), dict[str, float]()
        for part in parts:
            skipped.update(part["skipped"])
            seconds = sum_costs(seconds, part["seconds"])
        failed = {one.id: each.reason for one, each in zip(batch, found, strict=True) if isinstance(each, Failure)}
        rows = [row for part in parts for row in part["rows"]]
        return {"rows": rows, "skipped": dict(skipped), "seconds": seconds, "failed": failed}

    return work
