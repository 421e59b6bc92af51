"""HiQA's study (Table 2 and Figure 2).

Metadata cascaded or not, segments or fixed chunks, each route alone, more and more documents.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random

from common.errors import UserError
from common.progress import track
from common.ranges import PositiveFloat, PositiveInt
from common.records import Passage, Question
from common.retrieval import without_copies, without_itself
from harness.evaluation.hiqa.tables import WHOLE, Scores, answer_tables_of_rows, ranking_tables, scores
from harness.evaluation.retrieval_scores import by_document, gold_places, holders_of
from harness.evaluation.settings import Settings
from harness.evaluation.study import Findings, RowAnswers
from harness.indexing.index_folder import open_index
from harness.interfaces import Retriever, System
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.corpora import indexes_of, passages_of
from harness.retrievers.dense import DenseRetriever
from harness.retrievers.keywords import KeywordRetriever
from harness.retrievers.multi_route import MultiRouteRetriever
from harness.runtime.failures import failure_of
from harness.systems.hiqa import HiQa, fitting, shown_words

BUDGETS = (500, 1000, 1500, 3000)  # words
OWN = "HCA, three routes"
KINDS = ("dense", "bm25", "keywords")  # sub-folders of a row's folder
RANKED_AT_ONCE = 200_000  # passages of the rankings that are held in memory: those of a few questions, or of one


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
        self.budgets = {f"{budget:,} words": budget for budget in budgets}
        self.retrievers: dict[str, Retriever] = {}  # of the rows

    def check(self, system: HiQa) -> None:
        """Raise a UserError if an index of a further row is missing or corrupt."""
        for folder in self.rows.values():
            for kind in KINDS:
                open_index(Path(folder) / kind, kind, "off")

    def rows_of(self, system: HiQa) -> dict[str, System]:
        """The system with every retriever; it is the first row itself."""
        self.retrievers = retrievers_of(system.retriever, self.rows)
        made = {name: HiQa(each, system.k, system.max_words, system.reader) for name, each in self.retrievers.items()}
        return {**made, next(iter(made)): system}

    def measure(self, system: HiQa, questions: Sequence[Question], asked: RowAnswers, settings: Settings) -> Findings:
        """Tables of the rankings and of the answers."""
        answers = asked.rows
        findings = Findings(settings={"rows": [*answers], "k": self.k, "gamma": self.gamma})
        findings.variants = {name: each for name, each in answers.items() if name != asked.own}
        lost = {n for row in answers.values() for n, each in enumerate(row) if failure_of(each) and not each.evidence}
        known = [question for n, question in enumerate(questions) if question.gold.segments and n not in lost]
        if known and indexes_of(system.retriever):
            self._add_rankings(known, settings, findings)
            if len(known) < len(questions):
                told = f"rankings: {len(known):,} of {len(questions):,} questions"
                findings.facts.append(f"{told}; the others name no gold segments, or failed")
        else:
            why = "the retriever searches no index" if known else "no question names gold segments"
            findings.facts = [f"rankings: not measured, {why}"]
        findings.tables += answer_tables_of_rows(answers, questions, settings)
        return findings

    def _add_rankings(self, questions: Sequence[Question], settings: Settings, findings: Findings) -> None:
        """Add the tables of the rankings of every row, and say which sizes no collection has."""
        counts = [Counter(map(document_of, passages_of(each) or ())) for each in self.retrievers.values()]
        fewest = min(map(len, counts))
        sizes = {f"{size} documents": size for size in self.documents if size <= fewest}
        if larger := [size for size in self.documents if size > fewest]:
            findings.facts = [f"collections of {larger} documents: not measured, there are {fewest:,}"]
        rows = {name: self.ranked(name, questions, sizes) for name in self.retrievers}
        of_all, columns = counts[0].total(), ([*sizes], [*self.budgets])
        findings.tables = ranking_tables(rows, self.k, self.gamma, *columns, of_all, settings.bootstrap)

    def ranked(self, row: str, questions: Sequence[Question], sizes: Mapping[str, int]) -> dict[str, list[Scores]]:
        """The scores of each question's ranking of all segments, by column: `WHOLE`, the sizes, the budgets.

        The ranking of a smaller collection is the whole one without the other documents; a context is filled with the
        ranking as the system fills it (`fitting`).

        Args:
            row: Whose retriever ranks its whole index.
            questions: With gold segments.
            sizes: Numbers of documents by column.
        """
        retriever, scored = self.retrievers[row], partial(scores, k=self.k, gamma=self.gamma)
        passages = [*(passages_of(retriever) or ())]  # parent sections are joined anew at each look
        named = {passage.id: document_of(passage) for passage in passages}
        of_document, segments = by_document(passages), Counter(named.values())
        words_of = {passage.id: shown_words(passage) for passage in passages} if self.budgets else {}
        found: dict[str, list[Scores]] = {column: [] for column in (WHOLE, *sizes, *self.budgets)}
        at_once = max(1, RANKED_AT_ONCE // len(passages))
        batches = [questions[start : start + at_once] for start in range(0, len(questions), at_once)]
        for batch in track(batches, len(questions), f"ranking, {row}", len):
            searched = retriever.search([question.text for question in batch], len(passages))
            for question, hits in zip(batch, searched, strict=True):
                ranking, holders = without_itself(question, hits), holders_of(question, of_document)
                ranked = [hit.passage for hit in ranking]
                found[WHOLE].append(scored(gold_places(question, ranked, holders)[0], len(passages)))
                for column, size in sizes.items():
                    kept = kept_documents(question, sorted(segments), size, self.seed)
                    own = [passage for passage in ranked if named[passage.id] in kept]
                    count = sum(segments[name] for name in kept)
                    found[column].append(scored(gold_places(question, own, holders)[0], count))
                distinct = without_copies(ranking) if self.budgets else []  # as the system fills its context
                words = [words_of[hit.passage.id] for hit in distinct]
                for column, budget in self.budgets.items():
                    context = [distinct[place].passage for place in fitting(words, budget)]
                    found[column].append(scored(gold_places(question, context)[0], len(context)))
        return found


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
    encoder, options = own.dense.encoder, (own.alpha, own.beta, own.candidates, own.scaling, own.section_words)
    for name, folder in rows.items():
        dense, words, keywords = (Path(folder) / kind for kind in KINDS)
        vectors = DenseRetriever(dense, str(encoder.device), encoder.name, precision=encoder.precision)
        further = MultiRouteRetriever(vectors, Bm25Retriever(words), KeywordRetriever(keywords), *options)
        further.load()
        found[name] = further
    return found


def document_of(passage: Passage) -> str:
    """Name of the document that a passage is of; empty for another passage."""
    return str((passage.metadata or {}).get("document", ""))


def kept_documents(question: Question, documents: Sequence[str], size: int, seed: int) -> frozenset[str]:
    """A collection of `size` documents for a question: those of its gold segments, and others drawn at random.

    Collections of one question and seed contain each other.

    Args:
        question: One with gold segments.
        documents: All documents, in a fixed order.
        size: At least the number of gold documents are kept.
        seed: Of the draw.
    """
    gold = {each.document for each in question.gold.segments}
    others = [name for name in documents if name not in gold]
    Random(f"{seed}/{question.id}").shuffle(others)
    return frozenset([*gold, *others[: max(0, size - len(gold))]])
