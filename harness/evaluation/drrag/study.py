"""DR-RAG's study: the system with every selection and budget.

Recall of gold passages (Tables 4 and 5), a reader's answers (Tables 2 to 4), each selection's choices with their
reasons (Table 8).
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from pathlib import Path

from common.errors import UserError
from common.ranges import PositiveInt
from common.records import Question
from harness.evaluation.drrag import tables
from harness.evaluation.drrag.tables import BASELINE, Row
from harness.evaluation.paper_figures import paper_name
from harness.evaluation.plots import plot_recall
from harness.evaluation.settings import Settings
from harness.evaluation.study import Findings, RowAnswers
from harness.evaluation.tables import ReportTable, not_measured
from harness.indexing.index_folder import open_index
from harness.interfaces import Retriever, System
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.corpora import check_same_corpus, index_records
from harness.retrievers.fusion import FusedRetriever
from harness.runtime.provenance import computed_in
from harness.selection.options import SelectionOptions
from harness.systems.drrag import DrRag
from harness.systems.retrieve_read import RetrieveRead
from models.serving_manifest import manifest_sha256

OWN = "own"  # the system's own selection, where it is not a row of the table


class Study:
    """Measures the system with other selections and budgets, and its retrievers alone.

    Args:
        rows: Selections to measure besides SM and the system's own, e.g. [QDC, CFS, ranked]; all when omitted.
        ks: Document budgets.
        bm25: BM25 index of the same corpus: adds a BM25 row, and one that fuses it with the system's retriever.
    """

    needs_gold = True

    def __init__(
        self,
        rows: list[str] | None = None,
        ks: tuple[PositiveInt, ...] = (3, 4, 6),
        bm25: Path | None = None,
    ) -> None:
        if not ks or len(set(ks)) < len(ks):
            raise UserError(f"study.ks is {list(ks)}; it must be different numbers, such as [3,4,6].")
        self.rows, self.ks, self.bm25 = rows, ks, bm25
        self.baselines: dict[str, Retriever] = {}  # of the rows
        self.selections: dict[str, SelectionOptions] = {}

    def check(self, system: DrRag) -> None:
        """Check rows, indexes and files.

        Raises:
            UserError: If a row is unknown; a subclass, if an index or a file is missing or corrupt.
        """
        for k, options in product(self.ks, selections_of(system, self.rows).values()):
            system.tuned(replace(options, k=k, keep_first=0))  # the file needs each k
        if self.bm25 is not None:
            open_index(self.bm25, "bm25", "off")

    def rows_of(self, system: DrRag) -> dict[tuple[str, int], System]:
        """The rows by name and k, the deepest searches first; the system's own selection is one of them."""
        self.baselines = _baselines(system.retriever, self.bm25)
        self.selections = selections_of(system, self.rows)
        made: dict[tuple[str, int], DrRag] = {
            (name, k): system.with_selection(replace(options, k=k))
            for k, (name, options) in product(self.ks, self.selections.items())
        }
        same = (row for row, each in made.items() if each.selection == system.selection)
        made[next(same, (OWN, system.selection.k))] = system
        depth = {row: (each.selection.ranking_size, each.selection.concatenated_size) for row, each in made.items()}
        alone = product(sorted(self.ks, reverse=True), self.baselines.items())
        return {row: made[row] for row in sorted(made, key=lambda row: depth[row], reverse=True)} | {
            (name, k): RetrieveRead(retriever, k, system.reader) for k, (name, retriever) in alone
        }

    def measure(self, system: DrRag, questions: Sequence[Question], asked: RowAnswers, settings: Settings) -> Findings:
        """Tables of every selection: recall on questions whose gold passages are all in the file, answers on all."""
        own, memo = asked.own, asked.memo
        rows = {(name, k): Row(name, k, each) for (name, k), each in asked.rows.items()}
        names = [*self.baselines, *self.selections]
        table = [rows[name, k] for k, name in product(self.ks, names)]
        alike = {name: rows[name, own[1]] for name in dict.fromkeys([*names, own[0]]) if (name, own[1]) in rows}
        findings = Findings()
        findings.variants = {name: row.answers for name, row in alike.items() if name != own[0]}
        alike = {name if name != OWN else system.selection.method: row for name, row in alike.items()}
        findings.cases = [[tables.selection_case(question, alike, n)] for n, question in enumerate(questions)]
        self._add_tables(table, questions, system, settings, findings)
        findings.records = [tables.selection_record(table, n) for n in range(len(questions))]
        scored, dtype = memo.of("scores", system.scorer), computed_in(system.scorer)
        findings.facts = [
            f"classifier: {system.serving or 'none'}, threshold {system.selection.threshold:.4f}, "
            f"{scored.count:,} pairs scored in {scored.seconds:.0f} s"
            + (f", matrix products in {dtype}" if dtype else "")
        ]
        findings.settings |= {
            "classifier": {"sha256": manifest_sha256(system.serving), "computed in": dtype},
            "selection": asdict(system.selection),
            "further indexes": {name: index_records(each) for name, each in self.baselines.items()},
            "pairs scored": scored.count,
        }
        return findings

    def _add_tables(
        self, rows: Sequence[Row], questions: Sequence[Question], system: DrRag, settings: Settings, findings: Findings
    ) -> None:
        """Add tables of recall and of answers, and the plot of recall."""
        paper = settings.paper if settings.paper and paper_name(settings.paper) == "DR-RAG" else None
        known = [n for n, each in enumerate(questions) if each.support and not each.gold.titles]
        if known:
            of_k = tables.recall_tables(rows, questions, known, settings.bootstrap, paper)
            equal = tables.equal_documents_table(rows, questions, known, settings.bootstrap)
            findings.tables = [*of_k.values(), *equal]
            findings.notes = tables.NOTES + (tables.PAPER_NOTE.format(dataset=paper) if paper else "")
            cells = {row.name: [(k, each.rows[row.name][0]) for k, each in of_k.items()] for row in rows}
            curves = {name: [(k, cell.value) for k, cell in own if cell] for name, own in cells.items()}
            title = f"Recall of gold passages: {len(known):,} questions"
            findings.plots = {"recall.png": partial(plot_recall, curves, title)}
            findings.settings = {"questions with gold passages": len(known)}
        else:
            reason = not_measured("no question ships its gold passages")
            findings.tables = [ReportTable("recall", "Recall of gold passages", ("recall %",), {BASELINE: [reason]})]
        if system.reader is not None and any(question.answers for question in questions):
            findings.tables += tables.answer_tables(rows, questions, known, settings, paper)
            findings.paper = "DR-RAG" if paper else ""


def selections_of(system: DrRag, rows: Sequence[str] | None) -> dict[str, SelectionOptions]:
    """The selections of the requested rows and of SM by name, with the system's other options.

    Only the row `CFS, filled` sets `fill_budget`.

    Raises:
        UserError: If a row is unknown, or needs a classifier that the system lacks.
    """
    base = replace(system.given, fill_budget=False)
    selections = {
        BASELINE: replace(base, method="sm"),
        "QDC": replace(base, method="qdc"),
        "walk": replace(base, method="walk"),
        "CIS": replace(base, method="cis", second_stage="qdc"),
        "CIS w/o QDC": replace(base, method="cis", second_stage="ranking"),
        "CFS": replace(base, method="cfs", second_stage="qdc", cfs_rule="first"),
        "CFS w/o QDC": replace(base, method="cfs", second_stage="ranking", cfs_rule="first"),
        "CFS, all": replace(base, method="cfs", second_stage="qdc", cfs_rule="all"),
        "CFS, filled": replace(base, method="cfs", second_stage="qdc", cfs_rule="first", fill_budget=True),
        "ranked": replace(base, method="ranked"),
    }
    if system.serving is None and system.scorer is None:
        selections = {name: options for name, options in selections.items() if not options.needs_classifier}
    if unknown := [name for name in rows or () if name not in selections]:
        raise UserError(f"study.rows contains {unknown[0]!r}; allowed: {', '.join(selections)}.")
    return {name: options for name, options in selections.items() if rows is None or name in rows or name == BASELINE}


def _baselines(retriever: Retriever, bm25: Path | None) -> dict[str, Retriever]:
    """Retrievers of the further rows: the parts of a fused retriever.

    Otherwise BM25, alone and fused with the retriever.
    """
    lexical = Bm25Retriever(bm25) if bm25 else None
    check_same_corpus([retriever, *([lexical] if lexical else [])])
    if isinstance(retriever, FusedRetriever):
        parts = [*retriever.retrievers, *([lexical] if lexical else [])]
        names = ["BM25" if isinstance(part, Bm25Retriever) else type(part).__name__ for part in parts]
        return {
            name if names.count(name) == 1 else f"{name} {i}": part
            for i, (name, part) in enumerate(zip(names, parts, strict=True), 1)
        }
    return {"BM25": lexical, "BM25 + SM, fused": FusedRetriever([retriever, lexical])} if lexical else {}
