"""HiQA's study (Table 2 and Figure 2).

Metadata cascaded or not, segments or fixed chunks, each route alone, more and more documents.
"""

from collections.abc import Sequence
from pathlib import Path

from common.errors import UserError
from common.ranges import PositiveFloat, PositiveInt
from common.records import Question
from harness.evaluation.hiqa.accuracy import answer_tables_of_rows
from harness.evaluation.hiqa.ranking import HiQaRow, rank_all, segments_by_document
from harness.evaluation.hiqa.rows import check_rows, retrievers_of
from harness.evaluation.hiqa.tables import budget_tables, degradation_tables, ranking_tables
from harness.evaluation.study import Asked, Findings, Settings
from harness.interfaces import Retriever, System
from harness.retrievers.corpora import indexes_of
from harness.systems.hiqa import HiQa

BUDGETS = (500, 1000, 1500, 3000)  # words


class Study:
    """Measures the rankings of the system's retriever, of its routes, and of the same routes over other indexes.

    The other indexes are of the same documents.

    Args:
        rows: Further rows: name -> folder with the indexes `dense`, `bm25` and `keywords` of the same documents, made
            into passages in another way, e.g. {no hierarchy: indexes/library-heading}.
        k: Of hit rate and recall.
        gamma: Of the Log-Rank Index.
        documents: Sizes of collections for the degradation; none: it is not measured.
        seed: Of the draw of these collections.
        budgets: Words of the contexts in which the rows are compared; none: they are not.
    """

    def __init__(
        self,
        rows: dict[str, Path] | None = None,
        k: PositiveInt = 5,
        gamma: PositiveFloat = 1.0,
        documents: list[PositiveInt] | None = None,
        seed: int = 0,
        budgets: tuple[PositiveInt, ...] = BUDGETS,
    ) -> None:
        if len(set(budgets)) < len(budgets):
            raise UserError(f"study.budgets is {list(budgets)}: name each number once.")
        self.rows, self.k, self.gamma, self.documents, self.seed = rows or {}, k, gamma, documents or [], seed
        self.budgets = budgets
        self.retrievers: dict[str, Retriever] = {}  # of the rows

    def check(self, system: HiQa, out: Path, layout: str) -> None:
        """Raise MissingInputError if an index is missing."""
        check_rows(self.rows)

    def rows_of(self, system: HiQa) -> dict[str, System]:
        """The system with the retriever of each row; the system alone if its retriever searches no index."""
        self.retrievers = retrievers_of(system.retriever, self.rows)
        own, *others = self.retrievers
        searched = others if indexes_of(system.retriever) else []
        made = {name: HiQa(self.retrievers[name], system.k, system.max_words, system.reader) for name in searched}
        return {own: system, **made}

    def measure(self, system: HiQa, questions: Sequence[Question], asked: Asked, settings: Settings) -> Findings:
        """Tables of the rankings, of the questions with gold segments, and of the answers."""
        findings = Findings(variants={name: each for name, each in asked.rows.items() if name != asked.own})
        ranked = [question for question in questions if question.gold_segments]
        if not ranked or not indexes_of(system.retriever):
            why = "no question names gold segments" if not ranked else "the retriever searches no index"
            findings.facts = [f"rankings: not measured, {why}"]
        else:
            self._add_rankings(findings, ranked, settings)
            if len(ranked) < len(questions):
                findings.facts = [f"rankings: of {len(ranked):,} of {len(questions):,} questions, with gold segments"]
        if len(asked.rows) > 1:
            findings.tables += answer_tables_of_rows(asked.rows, questions, settings)
        return findings

    def _add_rankings(self, findings: Findings, questions: Sequence[Question], settings: Settings) -> None:
        """Rank all segments by the retriever of every row, and add the tables of the rankings."""
        rows: dict[str, HiQaRow] = {}
        for name, retriever in self.retrievers.items():
            segments = segments_by_document(retriever)
            sizes = [size for size in self.documents if size <= len(segments)]
            rows[name] = rank_all(
                retriever, questions, segments, self.k, self.gamma, name, sizes, self.seed, self.budgets
            )
        bootstrap = settings.bootstrap
        own, scores = next(iter(rows.values())), {name: row.scores for name, row in rows.items()}
        findings.settings = {"rows": list(rows), "k": self.k, "gamma": self.gamma}
        findings.tables = ranking_tables(scores, self.k, self.gamma, own.segments, bootstrap)
        by_size = {name: row.by_size for name, row in rows.items()}
        if sizes := [*min(by_size.values(), key=len)]:
            findings.tables += degradation_tables(by_size, sizes, self.k, bootstrap)
        if self.budgets:
            by_budget = {name: row.by_budget for name, row in rows.items()}
            findings.tables += budget_tables(by_budget, self.budgets, bootstrap)
