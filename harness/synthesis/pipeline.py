"""Synthesis of questions: tasks, drafts, checks, and rows with retrieved passages, in resumable batches."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from common.answer_metrics import squad
from common.progress import Progress
from common.records import Ranked
from harness.interfaces import Retriever
from harness.readers.read_answers import sum_costs
from harness.runtime.failures import Apart, Failure
from harness.runtime.resumable import ResumableBatches
from harness.synthesis.checks import RoundTrip, fault
from harness.synthesis.drafts import Draft, DraftTask
from harness.synthesis.layouts import ROWS, OutLayout, context_of
from harness.synthesis.llm_writer import LlmWriter
from harness.synthesis.tasks import Plan

TASKS_AT_ONCE = 32  # drafted, checked and saved together
_SEARCHED = (
    3  # passages searched for each that a row needs: some are of other splits, or have a title that is there already
)
_EXAMPLES = 3  # of dropped drafts in the report, per reason


@dataclass
class SynthesisOutcome:
    """The questions of one split, and the outcomes of the drafts."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    drafts: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # dropped drafts, by reason
    costs: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)  # why calls gave no reply, by draft
    reused_seconds: float = 0.0  # computing time of results of an interrupted run


@dataclass(frozen=True)
class Synthesizer:
    """Drafts questions, checks them and writes rows.

    Args:
        writer: Drafts the questions.
        check: Answers them again.
        bm25: Finds the other passages of a row.
        plan: The tasks.
        shares: The share of each split in the passages.
        layout: Layout of the rows.
        contexts: Passages of a row.
        retriever: Must find a passage of the question within its first `found_within`.
        found_within: None does not ask for this.
    """

    writer: LlmWriter
    check: RoundTrip
    bm25: Retriever
    plan: Plan
    shares: Mapping[str, float]
    layout: OutLayout
    contexts: int
    retriever: Retriever
    found_within: int | None

    def run(
        self, split: str, most: int | None, seen: set[str], partial: Path, depends_on: Mapping[str, object] | None
    ) -> SynthesisOutcome:
        """The questions of one split.

        Args:
            split: Its name.
            most: Stop after this many questions; None works on all tasks.
            seen: Normalized texts of the questions so far; those of this split are added.
            partial: Folder for the results of finished batches.
            depends_on: What determines the results; None saves nothing.
        """
        outcome = SynthesisOutcome()
        tasks = self.plan.tasks[split]
        if most == 0:
            return outcome
        file = None if depends_on is None else partial / f"{split}.jsonl"
        saved = ResumableBatches(file, {**(depends_on or {}), "split": split})
        batches = [tasks[start : start + TASKS_AT_ONCE] for start in range(0, len(tasks), TASKS_AT_ONCE)]
        computed: list[int] = []  # sizes of the batches that were not reused

        apart = Apart[DraftTask, dict[str, Any] | None](
            lambda batch: [self._work(split, batch), *[None] * (len(batch) - 1)]
        )

        def work(batch: Sequence[DraftTask]) -> dict[str, Any]:
            computed.append(len(batch))
            found: list[dict[str, Any] | None] = [
                {"drafts": [_row_of(task, Draft("", "", "failed", each.reason))], "costs": {}}
                if isinstance(each, Failure)
                else each
                for task, each in zip(batch, apart(batch), strict=True)
            ]
            parts = [each for each in found if each is not None]
            costs: dict[str, float] = {}
            for part in parts:
                costs = sum_costs(costs, part["costs"])
            return {"drafts": [draft for part in parts for draft in part["drafts"]], "costs": costs}

        by_drafts = most is None or most >= len(tasks)  # the limit cannot be reached
        shown = Progress(f"{split}, {'drafts' if by_drafts else 'questions'}", len(tasks) if by_drafts else most)
        with shown, closing(saved.run(batches, work, None)) as results:
            for result in results:
                before = len(outcome.rows)
                self._collect(outcome, result, most, seen)
                count = len(result["drafts"]) if by_drafts else len(outcome.rows) - before
                (shown.advance if computed else shown.skip)(count)
                if most is not None and len(outcome.rows) >= most:
                    break
        outcome.reused_seconds = saved.seconds
        return outcome

    def _collect(self, outcome: SynthesisOutcome, result: dict[str, Any], most: int | None, seen: set[str]) -> None:
        outcome.costs = sum_costs(outcome.costs, result["costs"])
        for draft in result["drafts"]:
            if most is not None and len(outcome.rows) >= most:
                return
            outcome.drafts += 1
            if draft.get("why"):
                outcome.failed[f"draft {outcome.drafts:,} ({'; '.join(draft['titles'])})"] = draft["why"]
            reason, text = draft["dropped"], squad(draft["question"])
            if not reason and text in seen:
                reason = "duplicate"
            if reason:
                outcome.dropped[reason] += 1
                kept = outcome.examples.setdefault(reason, [])
                if len(kept) < _EXAMPLES:
                    kept.append({name: draft[name] for name in ("question", "answer", "titles")})
                continue
            seen.add(text)
            outcome.rows.append(draft["row"])

    def _work(self, split: str, tasks: Sequence[DraftTask]) -> dict[str, Any]:
        """Drafts with their outcomes, JSON types only."""
        drafts = self.writer.write(tasks)
        reasons = [fault(task, draft) for task, draft in zip(tasks, drafts, strict=True)]
        texts: set[str] = set()
        for row, draft in enumerate(drafts):
            text = squad(draft.question)
            if not reasons[row] and text in texts:
                reasons[row] = "duplicate"
            texts.add(text)
        self.check.costs.clear()
        open_rows = [row for row, reason in enumerate(reasons) if not reason]
        found = self.check.faults([tasks[row] for row in open_rows], [drafts[row] for row in open_rows])
        for row, reason in zip(open_rows, found, strict=True):
            reasons[row] = reason
        rows: dict[int, dict[str, Any]] = {}
        open_rows = [row for row in open_rows if not reasons[row]]
        if self.found_within is not None and open_rows:
            ranked = self.retriever.search([drafts[row].question for row in open_rows], self.found_within)
            for row, hits in zip(open_rows, ranked, strict=True):
                if not {hit.passage.id for hit in hits} & {passage.id for passage in tasks[row].passages}:
                    reasons[row] = "not_found"
            open_rows = [row for row in open_rows if not reasons[row]]
        for row, hits in zip(open_rows, self._search(split, [drafts[row].question for row in open_rows]), strict=True):
            rows[row] = self._row(tasks[row], drafts[row], hits)
        costs = dict(self.writer.costs)
        for each in self.check.costs:
            costs = sum_costs(costs, each)
        return {
            "drafts": [
                _row_of(task, replace(draft, failure=reason, why=draft.why or why), rows.get(row))
                for row, (task, draft, reason) in enumerate(zip(tasks, drafts, reasons, strict=True))
                for why in [self.check.errors.get(draft.question, "") if reason == "failed" else ""]
            ],
            "costs": costs,
        }

    def _search(self, split: str, questions: Sequence[str]) -> list[list[Ranked]]:
        """The passages of the split that BM25 finds for each question."""
        if not questions:
            return []
        depth = round(_SEARCHED * self.contexts / self.shares[split])
        found = self.bm25.search(questions, depth)
        return [[hit for hit in hits if self.plan.split_of.get(hit.passage.id) == split] for hits in found]

    def _row(self, task: DraftTask, draft: Draft, hits: Sequence[Ranked]) -> dict[str, Any]:
        id_ = "synthetic_" + hashlib.sha256(squad(draft.question).encode()).hexdigest()[:12]
        context = context_of(task, hits, self.contexts, unique_titles=self.layout == "hotpotqa")
        return ROWS[self.layout](id_, task, draft, context)


def _row_of(task: DraftTask, draft: Draft, row: dict[str, Any] | None = None) -> dict[str, Any]:
    """The outcome of a draft, JSON types only."""
    titles = [passage.title for passage in task.passages]
    kept = {"question": draft.question, "answer": draft.answer, "dropped": draft.failure, "titles": titles, "row": row}
    return kept | ({"why": draft.why} if draft.why else {})
