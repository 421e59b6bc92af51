"""HiQA's study (Table 2 and Figure 2).

Metadata cascaded or not, segments or fixed chunks, each route alone, more and more documents.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from common.errors import UserError
from common.ranges import PositiveFloat, PositiveInt
from common.records import Answer, Question
from harness.evaluation.engine import ask
from harness.evaluation.hiqa.accuracy import answer_tables_of_rows
from harness.evaluation.hiqa.answers import answer_rows
from harness.evaluation.hiqa.budgets import (
    BUDGETS,
    budget_tables,
    contexts_of,
    draw_budgets,
    read_at_budgets,
    readers_table,
)
from harness.evaluation.hiqa.overview import draw_gammas, overview_table
from harness.evaluation.hiqa.ranking import Row, rank_all, segments_by_document
from harness.evaluation.hiqa.rows import check_rows, retrievers_of
from harness.evaluation.hiqa.table_fields import embed_tables, fields_table
from harness.evaluation.hiqa.tables import (
    LOG_RANK,
    degradation_tables,
    differences_table,
    draw_degradation,
    ranking_table,
)
from harness.evaluation.study import Asked, Findings, Settings
from harness.indexing.passage_store import PassageStore
from harness.interfaces import Reader, Retriever
from harness.retrievers.corpora import indexes_of
from harness.retrievers.dense import DenseRetriever
from harness.strategies.hiqa import HiQa


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
        readers: Readers that answer at each of these budgets (Table 7), by name: class_path and init_args.
        table_fields: Whether the tables of the index are also embedded with their data fields and compared (Table 3).
    """

    def __init__(
        self,
        rows: dict[str, Path] | None = None,
        k: PositiveInt = 5,
        gamma: PositiveFloat = 1.0,
        documents: list[PositiveInt] | None = None,
        seed: int = 0,
        budgets: tuple[PositiveInt, ...] = BUDGETS,
        readers: dict[str, Reader] | None = None,
        table_fields: bool = False,
    ) -> None:
        if len(set(budgets)) < len(budgets):
            raise UserError(f"study.budgets is {list(budgets)}: name each number once.")
        if readers and not budgets:
            raise UserError("study.readers answer at the budgets of study.budgets: name at least one.")
        self.budgets, self.readers, self.table_fields = budgets, dict(readers or {}), table_fields
        self.rows, self.k, self.gamma, self.documents, self.seed = rows or {}, k, gamma, documents or [], seed

    def check(self, strategy: HiQa, out: Path, layout: str) -> None:
        """Raise MissingInputError if an index is missing."""
        check_rows(self.rows)

    def ask(self, strategy: HiQa, questions: Sequence[Question], settings: Settings) -> Asked:
        """What the system answers from the passages of every row."""
        if _why_not(strategy, questions):
            return ask(strategy, questions, settings)
        retrievers = retrievers_of(strategy.retriever, self.rows)
        answers, seconds_before = answer_rows(strategy, retrievers, questions, settings.partial / "rows.jsonl")
        return Asked(answers.pop(next(iter(retrievers))), answers, seconds_before, retrievers)

    def measure(self, strategy: HiQa, questions: Sequence[Question], asked: Asked, settings: Settings) -> Findings:
        """Rank all segments for every question with gold segments, by every row; score the answers with a reader."""
        if why := _why_not(strategy, questions):
            return Findings(facts=[f"rankings: not measured, {why}"])
        places = [place for place, question in enumerate(questions) if question.gold_segments]
        known, retrievers = [questions[place] for place in places], asked.found
        rows = self._rank(retrievers, known)
        findings = self._ranked(rows, settings)
        asked.seconds_before += self._add_budgets(strategy, rows, known, settings, findings)
        self._add_collection(strategy.retriever, known, settings, findings)
        answers = dict(zip(retrievers, (asked.answers, *asked.variants.values()), strict=True))
        of_rows = {name: [own[place] for place in places] for name, own in answers.items()}
        findings.tables += answer_tables_of_rows(of_rows, known, settings)
        return findings

    def _rank(self, retrievers: Mapping[str, Retriever], asked: Sequence[Question]) -> dict[str, Row]:
        """The rankings of all rows."""
        rows: dict[str, Row] = {}
        for name, retriever in retrievers.items():
            segments = segments_by_document(retriever)
            sizes = [size for size in self.documents if size <= len(segments)]
            rows[name] = rank_all(retriever, asked, segments, self.k, self.gamma, name, sizes, self.seed, self.budgets)
        return rows

    def _ranked(self, rows: Mapping[str, Row], settings: Settings) -> Findings:
        """What the rankings say: Table 2, Figures 2 and 11."""
        scores, bootstrap = {name: row.scores for name, row in rows.items()}, settings.bootstrap
        count = next(iter(rows.values())).segments
        tables = [ranking_table(scores, self.k, self.gamma, count, bootstrap)]
        tables += [differences_table(scores, self.k, bootstrap)] * (len(rows) > 1)
        findings = Findings(tables=tables, settings={"rows": list(rows), "k": self.k, "gamma": self.gamma})
        findings.plots["log_rank_index.png"] = partial(draw_gammas, count)
        by_size = {name: row.by_size for name, row in rows.items()}
        if sizes := [*min(by_size.values(), key=len)]:
            findings.tables += degradation_tables(by_size, sizes, self.k, bootstrap)
            for name, measure in (("hits", f"hit@{self.k}"), ("log_rank", LOG_RANK)):
                findings.plots[f"documents_{name}.png"] = partial(draw_degradation, by_size, sizes, measure)
        return findings

    def _add_budgets(
        self, strategy: HiQa, rows: Mapping[str, Row], asked: Sequence[Question], settings: Settings, findings: Findings
    ) -> float:
        """The rows in contexts of equal length, and readers at several lengths: Table 7.

        Returns the seconds of reading that an interrupted run had spent.
        """
        if not self.budgets:
            return 0.0
        findings.tables += budget_tables(rows, self.budgets, settings.bootstrap)
        findings.plots["budgets.png"] = partial(draw_budgets, rows, self.budgets)
        own, answers, seconds_before = next(iter(rows.values())), dict[str, list[list[Answer]]](), 0.0
        if self.readers:
            contexts = contexts_of(strategy.retriever, asked, self.budgets, own.segments)
            answers, seconds_before = read_at_budgets(self.readers, asked, contexts, settings.partial)
        findings.tables.append(readers_table(answers, own, self.budgets, asked, settings))
        return seconds_before

    def _add_collection(
        self, retriever: Retriever, asked: Sequence[Question], settings: Settings, findings: Findings
    ) -> None:
        """The collection and its tables: Tables 3 and 6."""
        dense = getattr(retriever, "dense", retriever)
        vectors = dense if isinstance(dense, DenseRetriever) else None
        passages = PassageStore(indexes_of(retriever)[0].folder)
        findings.tables.append(overview_table(passages, asked, vectors.encoder.tokenizer if vectors else None))
        if vectors is not None and self.table_fields:
            found = embed_tables(vectors, asked, self.k, self.gamma)
            findings.tables.append(fields_table(found, settings.bootstrap))


def _why_not(strategy: HiQa, questions: Sequence[Question]) -> str:
    """Why no rankings are measured; empty if they are."""
    if not any(question.gold_segments for question in questions):
        return "no question names gold segments"
    return "" if indexes_of(strategy.retriever) else "the retriever searches no index"
