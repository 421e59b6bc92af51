"""HiQA's study (Table 2 and Figure 2).

Metadata cascaded or not, segments or fixed chunks, each route alone, more and more documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from common.errors import UserError
from common.ranges import PositiveFloat, PositiveInt
from common.records import Answer, Question
from harness.evaluation.hiqa.accuracy import answer_tables_of_rows
from harness.evaluation.hiqa.ranking import HiQaRow, rank_all, segments_by_document
from harness.evaluation.hiqa.rows import answer_rows, check_rows, read_at_budgets, retrievers_of
from harness.evaluation.hiqa.tables import (
    LOG_RANK,
    TITLES,
    budget_tables,
    degradation_tables,
    draw_curves,
    draw_gammas,
    overview_table,
    ranking_tables,
    readers_table,
)
from harness.evaluation.study import Asked, Findings, Settings
from harness.indexing.passage_store import PassageStore
from harness.interfaces import Reader
from harness.retrievers.corpora import indexes_of
from harness.retrievers.dense import DenseRetriever
from harness.systems.hiqa import HiQa

BUDGETS = (500, 1000, 1500, 3000)  # words


@dataclass(frozen=True, slots=True)
class HiQaResults:
    """The data of the tables."""

    rows: dict[str, HiQaRow]
    read: dict[str, list[list[Answer]]]  # by reader and budget
    vectors: DenseRetriever | None  # of the system's retriever


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
    ) -> None:
        if len(set(budgets)) < len(budgets):
            raise UserError(f"study.budgets is {list(budgets)}: name each number once.")
        if readers and not budgets:
            raise UserError("study.readers answer at the budgets of study.budgets: name at least one.")
        self.budgets, self.readers = budgets, dict(readers or {})
        self.rows, self.k, self.gamma, self.documents, self.seed = rows or {}, k, gamma, documents or [], seed

    def check(self, system: HiQa, out: Path, layout: str) -> None:
        """Raise MissingInputError if an index is missing."""
        check_rows(self.rows)

    def scorable(self, system: HiQa, questions: Sequence[Question]) -> list[int]:
        """The places of the questions with gold segments; none if the retriever searches no index."""
        known = [place for place, question in enumerate(questions) if question.gold_segments]
        return known if indexes_of(system.retriever) else []

    def ask(self, system: HiQa, questions: Sequence[Question], settings: Settings) -> Asked:
        """Rank all segments by every row, and answer from the passages of every row, and at every budget."""
        retrievers = retrievers_of(system.retriever, self.rows)
        rows: dict[str, HiQaRow] = {}
        for name, retriever in retrievers.items():
            segments = segments_by_document(retriever)
            sizes = [size for size in self.documents if size <= len(segments)]
            rows[name] = rank_all(
                retriever, questions, segments, self.k, self.gamma, name, sizes, self.seed, self.budgets
            )
        own, *_ = rows
        read, seconds = read_at_budgets(self.readers, questions, rows[own].contexts, settings.partial)
        answers, seconds_before = answer_rows(system, retrievers, questions, settings.partial / "rows.jsonl")
        dense = getattr(system.retriever, "dense", system.retriever)
        vectors = dense if isinstance(dense, DenseRetriever) else None
        found = HiQaResults(rows, read, vectors)
        return Asked(answers.pop(own), answers, seconds + seconds_before, found)

    def measure(self, system: HiQa, questions: Sequence[Question], asked: Asked, settings: Settings) -> Findings:
        """Tables of the rankings and of the answers."""
        if not questions:
            searched = bool(indexes_of(system.retriever))
            why = "no question names gold segments" if searched else "the retriever searches no index"
            return Findings(facts=[f"rankings: not measured, {why}"])
        found: HiQaResults = asked.found
        rows, bootstrap = found.rows, settings.bootstrap
        own, scores = next(iter(rows.values())), {name: row.scores for name, row in rows.items()}
        findings = Findings(settings={"rows": list(rows), "k": self.k, "gamma": self.gamma})
        findings.tables = ranking_tables(scores, self.k, self.gamma, own.segments, bootstrap)
        findings.plots["log_rank_index.png"] = partial(draw_gammas, own.segments)
        by_size = {name: row.by_size for name, row in rows.items()}
        if sizes := [*min(by_size.values(), key=len)]:
            findings.tables += degradation_tables(by_size, sizes, self.k, bootstrap)
            for name, measure in (("hits", f"hit@{self.k}"), ("log_rank", LOG_RANK)):
                titles = {measure: "Degradation as look-alike documents are added"}
                findings.plots[f"documents_{name}.png"] = partial(draw_curves, by_size, sizes, titles, "documents")
        if self.budgets:
            by_budget = {name: row.by_budget for name, row in rows.items()}
            findings.tables += budget_tables(by_budget, self.budgets, bootstrap)
            words = "words of the context"
            findings.plots["budgets.png"] = partial(draw_curves, by_budget, self.budgets, TITLES, words)
            findings.tables.append(readers_table(found.read, own, self.budgets, questions, settings))
        passages = PassageStore(indexes_of(system.retriever)[0].folder)
        tokenizer = found.vectors.encoder.tokenizer if found.vectors else None
        findings.tables.append(overview_table(passages, questions, tokenizer))
        answers = dict(zip(rows, (asked.answers, *asked.variants.values()), strict=True))
        findings.tables += answer_tables_of_rows(answers, questions, settings)
        return findings
