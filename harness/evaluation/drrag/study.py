"""DR-RAG's study.

Recall of gold passages for every selection and budget (Tables 4 and 5), a reader's answers from them (Tables 2 to 4),
and each selection's choices with their reasons (Table 8).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import cast

from common.errors import UserError
from common.files import sha256
from common.ranges import PositiveInt
from common.records import Answer, Question
from harness.evaluation.drrag import recall
from harness.evaluation.drrag.answers import selected_answers, selected_documents, selection_tables
from harness.evaluation.drrag.recall import OWN, Evaluation, RowOutcome
from harness.evaluation.drrag.tables import NOTES, PAPER_NOTE, cases_of, plot_recall, recall_tables, selection_record
from harness.evaluation.paper_figures import DR_RAG, DrRagPaper
from harness.evaluation.reading import ReadChoices, read_choices
from harness.evaluation.study import Asked, Findings, Settings, partial_folder
from harness.evaluation.tables import ReportTable, not_measured
from harness.indexing.index_folder import open_index
from harness.interfaces import Reader, Retriever
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.corpora import check_same_corpus, index_records
from harness.retrievers.fusion import FusedRetriever
from harness.runtime.provenance import computed_in
from harness.selection.options import SelectionOptions
from harness.selection.score_cache import ScoreCache, scores_file
from harness.systems.drrag import DrRag, tuned_options
from models.serving_manifest import MANIFEST


@dataclass(frozen=True, slots=True)
class DrRagResults:
    """The data of the tables."""

    evaluation: Evaluation
    read: list[list[Answer]] | None  # by row, one per question; None without a reader
    reading_seconds: float  # per question
    pairs: int  # scored
    further_indexes: dict[str, list[dict[str, object]]]
    rows: dict[str, list[Answer]]  # of the system's k


class Study:
    """Retrieves once and scores each pair once for all selections and budgets.

    Args:
        rows: Selections to measure besides SM and the system's own, e.g. [QDC, CFS, ranked]; all when omitted.
        ks: Document budgets.
        bm25: BM25 index of the same corpus: adds a BM25 row, and one that fuses it with the system's retriever.
        scores: Folder that keeps pair scores for later evaluations; if omitted, they are deleted with the finished
            report.
    """

    needs_gold = True

    def __init__(
        self,
        rows: list[str] | None = None,
        ks: tuple[PositiveInt, ...] = (3, 4, 6),
        bm25: Path | None = None,
        scores: Path | None = None,
    ) -> None:
        if not ks or len(set(ks)) < len(ks):
            raise UserError(f"study.ks is {list(ks)}; it must be different numbers, such as [3,4,6].")
        _selected_rows(recall.table_selections(SelectionOptions("sm"), with_classifier=True), rows)
        self.rows, self.ks, self.bm25, self.scores = rows, ks, bm25, scores

    def check(self, system: DrRag, out: Path, layout: str) -> None:
        """Check indexes, files and folders.

        Raises:
            UserError: If one is in the way of another, or a subclass if one is missing or corrupt.
        """
        selected = _selected_rows(recall.table_selections(SelectionOptions("sm"), with_classifier=True), self.rows)
        for k, options in product(self.ks, selected.values()):  # the file has each k that a row needs
            tuned_options(replace(options, k=k, keep_first=0), system.selection_file, system.serving)
        if self.bm25 is not None:
            open_index(self.bm25, "bm25", "off")
        replaced, scores = (out.resolve(), partial_folder(out).resolve()), self.scores
        if scores is not None and (scores.is_file() or any(scores.resolve().is_relative_to(each) for each in replaced)):
            raise UserError(
                f"--study.scores {scores} must be a folder outside --out {out} and {partial_folder(out)}, which are "
                "replaced or removed at the end."
            )

    def ask(self, system: DrRag, questions: Sequence[Question], settings: Settings) -> Asked:
        """The choices of every selection, and the reader's answers from them; every pair is scored once."""
        selections = _selected_rows(recall.table_selections(system.given, system.scorer is not None), self.rows)
        baselines = _baselines(system.retriever, self.bm25)
        cache = self._score_cache(system, settings.partial)
        evaluation = recall.run(
            questions, system.retriever, baselines, selections, self.ks, cache, system.lookahead,
            system.selection, system.complete, system.second_retriever,
        )  # fmt: skip
        assert evaluation.own is not None  # the system's selection is given
        outcomes = [*evaluation.outcomes, *([] if evaluation.own in evaluation.outcomes else [evaluation.own])]
        reading = self._read(system.reader, evaluation, outcomes, settings.partial)
        read = None if reading is None else reading.answers
        seconds = reading.seconds_each if reading else 0.0
        read_of = dict(zip(map(id, outcomes), read, strict=True)) if read else {}
        of_own_k = [each for each in outcomes if each.k == evaluation.own.k and each.stages]
        answers = {id(each): selected_answers(evaluation, each, read_of.get(id(each)), seconds) for each in of_own_k}
        names = {id(each): each.name if each.name != OWN else system.selection.method for each in of_own_k}
        found = DrRagResults(
            evaluation, read, seconds, cache.memo.count if cache else 0, index_records(baselines),
            {names[place]: each for place, each in answers.items()},
        )  # fmt: skip
        variants = {each.name: answers[id(each)] for each in of_own_k if each is not evaluation.own}
        seconds_before = reading.seconds_before if reading else 0.0
        return Asked(answers[id(evaluation.own)], variants, seconds_before, found)

    def measure(self, system: DrRag, questions: Sequence[Question], asked: Asked, settings: Settings) -> Findings:
        """Tables of every selection: recall on questions whose gold passages are all in the file, answers on all."""
        found: DrRagResults = asked.found
        evaluation, read, pairs = found.evaluation, found.read, found.pairs
        findings = Findings(budget=system.selection.k, cases=cases_of(questions, found.rows))
        self._add_tables(evaluation, read, found.reading_seconds, settings, findings)
        texts = None if read is None else [[answer.text for answer in row] for row in read]
        findings.records = [selection_record(evaluation, n, texts) for n in range(len(questions))]
        serving = system.serving
        dtype = computed_in(system.scorer)
        findings.facts = [
            f"classifier: {serving or 'none'}, threshold {system.selection.threshold:.4f}, "
            f"{pairs:,} pairs scored in {evaluation.seconds['scoring']:.0f} s"
            + (f", matrix products in {dtype}" if dtype else ""),
            *_depth_fact(system, evaluation),
        ]
        findings.settings = {
            "classifier": {
                "serving": str(serving) if serving else None,
                "sha256": sha256(Path(serving) / MANIFEST) if serving else None,
                "computed in": dtype,
            },
            "selection": asdict(system.selection),
            "further indexes": found.further_indexes,
            "pairs scored": pairs,
            "seconds": evaluation.seconds,
            **findings.settings,
        }
        return findings

    def _score_cache(self, system: DrRag, folder: Path) -> ScoreCache | None:
        if system.scorer is None:
            return None
        file = None
        if system.serving is not None:
            file = scores_file(self.scores or folder, Path(system.serving), system.scorer)
        return ScoreCache(system.scorer, file)

    @staticmethod
    def _read(
        reader: Reader | None, evaluation: Evaluation, outcomes: Sequence[RowOutcome], folder: Path
    ) -> ReadChoices | None:
        """The reader's answers from every outcome's documents; None without a reader or without gold answers."""
        if reader is None or not any(question.answers for question in evaluation.questions):
            return None
        chosen = selected_documents(evaluation, outcomes)
        read = read_choices(reader, evaluation.questions, chosen, folder / "reading.jsonl")
        evaluation.seconds["reading"] = read.seconds
        return read

    def _add_tables(
        self,
        evaluation: Evaluation,
        given: Sequence[Sequence[Answer]] | None,
        reading_seconds: float,
        settings: Settings,
        findings: Findings,
    ) -> None:
        """Tables of recall and of answers, and the plot of recall."""
        paper = cast(DrRagPaper, settings.paper) if settings.paper in DR_RAG else None
        count = int(evaluation.known.sum())
        if count:
            measured = recall.measure(evaluation, settings.bootstrap.resamples, settings.bootstrap.seed)
            findings.tables = recall_tables(evaluation, measured, paper)
            findings.notes = NOTES + (PAPER_NOTE.format(dataset=paper) if paper else "")
            title = f"Recall of gold passages: {count:,} questions"
            findings.plots = {"recall.png": partial(plot_recall, evaluation, measured, title=title)}
            findings.settings = {
                "questions with gold passages": count,
                "questions where CFS differs from QDC": {str(k): recall.differing(evaluation, k) for k in self.ks},
                "rows": [
                    {
                        "row": outcome.name,
                        "k": outcome.k,
                        **asdict(metrics),
                        "seconds_per_question": outcome.seconds,
                    }
                    for outcome, metrics in zip(evaluation.outcomes, measured, strict=True)
                ],
            }
        else:
            reason = not_measured("no question ships its gold passages")
            findings.tables = [
                ReportTable("recall", "Recall of gold passages", ("recall %",), {recall.BASELINE: [reason]})
            ]
        if given is not None:
            findings.tables += selection_tables(evaluation, given, reading_seconds, settings, paper)


def _selected_rows(selections: dict[str, SelectionOptions], rows: Sequence[str] | None) -> dict[str, SelectionOptions]:
    """The requested rows and SM."""
    unknown = [name for name in rows or () if name not in selections]
    if unknown:
        raise UserError(
            f"study.rows contains {unknown[0]!r}; allowed: {', '.join(selections)}"
            + ("." if "CFS" in selections else " (the others need the system's serving folder).")
        )
    baseline = recall.BASELINE
    return {name: options for name, options in selections.items() if rows is None or name in rows or name == baseline}


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
    if lexical is None:
        return {}
    return {"BM25": lexical, "BM25 + SM, fused": FusedRetriever([retriever, lexical])}


def _depth_fact(system: DrRag, evaluation: Evaluation) -> list[str]:
    """Per stage, that the rows' shared search is deeper than the candidates of a fusing or reranking retriever."""
    options = [outcome.options for outcome in (*evaluation.outcomes, evaluation.own) if outcome and outcome.options]
    searched = [
        (system.retriever, max(each.ranking_size for each in options)),
        (system.second_retriever or system.retriever, max(each.concatenated_size for each in options)),
    ]
    facts: dict[int, str] = {}  # one of a retriever that searches both stages: the deeper one
    for retriever, depth in sorted(searched, key=lambda each: each[1]):
        candidates = getattr(retriever, "candidates", None)
        if candidates is not None and depth > candidates:
            facts[id(retriever)] = (
                f"the rows share a search of {depth} passages, more than the retriever's {candidates} candidates: its "
                f"ranking may differ from that of an answer alone; set candidates to {depth} or more"
            )
    return list(facts.values())
