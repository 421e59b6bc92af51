"""HiQA's study (Table 2 and Figure 2).

Metadata cascaded or not, segments or fixed chunks, each route alone, more and more documents.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from common.errors import UserError
from common.ranges import PositiveFloat, PositiveInt
from common.records import Question
from harness.evaluation.hiqa.ranking import rank_all, segments_by_document
from harness.evaluation.hiqa.tables import answer_tables_of_rows, ranking_tables
from harness.evaluation.study import Asked, Findings, Settings
from harness.evaluation.tables import ReportTable
from harness.indexing.index_folder import open_index
from harness.interfaces import Retriever, System
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.corpora import indexes_of
from harness.retrievers.dense import DenseRetriever
from harness.retrievers.keywords import KeywordRetriever
from harness.retrievers.multi_route import MultiRouteRetriever
from harness.runtime.failures import failure_of
from harness.runtime.loading import load
from harness.systems.hiqa import HiQa

BUDGETS = (500, 1000, 1500, 3000)  # words
OWN = "HCA, three routes"
KINDS = ("dense", "bm25", "keywords")  # sub-folders of a row's folder


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
        """Raise a UserError if an index of a further row is missing or corrupt."""
        for folder in self.rows.values():
            for kind in KINDS:
                open_index(Path(folder) / kind, kind, "off")

    def rows_of(self, system: HiQa) -> dict[str, System]:
        """The system with every retriever; it is the first row itself."""
        self.retrievers = retrievers_of(system.retriever, self.rows)
        made = {name: HiQa(each, system.k, system.max_words, system.reader) for name, each in self.retrievers.items()}
        return {**made, next(iter(made)): system}

    def measure(self, system: HiQa, questions: Sequence[Question], asked: Asked, settings: Settings) -> Findings:
        """Tables of the rankings and of the answers."""
        answers, own, _ = asked.found
        asked.variants = {name: each for name, each in answers.items() if name != own}
        findings = Findings(settings={"rows": [*answers], "k": self.k, "gamma": self.gamma})
        lost = {n for row in answers.values() for n, each in enumerate(row) if failure_of(each) and not each.evidence}
        known = [question for n, question in enumerate(questions) if question.gold_segments and n not in lost]
        if known and indexes_of(system.retriever):
            findings.tables, findings.facts = self._rankings(known, settings)
            if len(known) < len(questions):
                told = f"rankings: {len(known):,} of {len(questions):,} questions"
                findings.facts.append(f"{told}; the others name no gold segments, or failed")
        else:
            why = "the retriever searches no index" if known else "no question names gold segments"
            findings.facts = [f"rankings: not measured, {why}"]
        findings.tables += answer_tables_of_rows(answers, questions, settings)
        return findings

    def _rankings(self, questions: Sequence[Question], settings: Settings) -> tuple[list[ReportTable], list[str]]:
        """The tables of the rankings of every row, and what is said of sizes that no collection has."""
        counts = [segments_by_document(each) for each in self.retrievers.values()]
        fewest = min(map(len, counts))
        sizes = {f"{size} documents": size for size in self.documents if size <= fewest}
        larger = [size for size in self.documents if size > fewest]
        budgets = {f"{budget:,} words": budget for budget in self.budgets}
        rows = {
            name: rank_all(each, questions, name, self.k, self.gamma, sizes, self.seed, budgets)
            for name, each in self.retrievers.items()
        }
        of_index = counts[0].total()
        tables = ranking_tables(rows, self.k, self.gamma, [*sizes], [*budgets], of_index, settings.bootstrap)
        return tables, [f"collections of {larger} documents: not measured, there are {fewest:,}"] if larger else []


def retrievers_of(own: Retriever, rows: Mapping[str, Path]) -> dict[str, Retriever]:
    """The retriever of every row by name, loaded, the system's own first.

    Args:
        own: Of the system; one that is no MultiRouteRetriever is the only row.
        rows: Name -> folder with the indexes of KINDS; they are searched with the encoder and the weights of the own
            retriever.

    Raises:
        UserError: If there are further rows and no weights for them.
    """
    if not isinstance(own, MultiRouteRetriever):
        if rows:
            raise UserError("study.rows needs a MultiRouteRetriever, whose weights the further rows share.")
        return {OWN.partition(",")[0]: own}
    found: dict[str, Retriever] = {
        OWN: own,
        "vectors only": own.with_options(alpha=1.0, beta=0.0),
        "BM25 only": own.with_options(alpha=0.0, beta=0.0),
    }
    if own.keywords is not None:
        found["without keywords"] = own.with_options(beta=0.0)
    if own.section_words:
        found["segments alone"] = own.with_options(section_words=0)
    weights = own.alpha, own.beta, own.candidates, own.scaling, own.section_words
    for name, folder in rows.items():
        dense, words, keywords = (Path(folder) / kind for kind in KINDS)
        encoder = own.dense.encoder
        vectors = DenseRetriever(dense, str(encoder.device), encoder.name, precision=encoder.precision)
        found[name] = MultiRouteRetriever(vectors, Bm25Retriever(words), KeywordRetriever(keywords), *weights)
    load(*found.values())
    return found
