"""`infer.py evaluate`: recall of gold passages for every selection and, with a reader, the scores of its answers."""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from common.checks import check_at_least
from common.errors import UserError
from common.files import sha256, whole_folder, write_json, write_text
from common.outputs import OutputFolder, known_files
from common.progress import say, track
from harness.evaluation.paper_figures import DrRagPaper
from harness.interfaces import Reader, Retriever
from harness.strategies.drrag import DrRag

if TYPE_CHECKING:
    from harness.evaluation.drrag.recall import Evaluation, Metrics
    from harness.evaluation.tables import Table
    from harness.runtime.resumable import ResumableBatches

REPORT = "report.json"
OUTPUT = OutputFolder(
    "`infer.py evaluate`",
    "a report",
    known_files(REPORT, "table.csv", "table.md", "answers.csv", "answers.md", "questions.jsonl", "recall.png"),
)
ANSWER_NOTES = """\
Brackets: 95% bootstrap intervals over questions; differences are paired. EM, F1, Acc (the answer contains a gold answer) in
per cent, the same reader for all rows; a selection without documents counts as wrong. The oracles use the gold passages. Rows
marked "paper" have other readers, retrievers and corpora: compare differences between rows rather than absolute values.
"""


def evaluate(
    strategy: DrRag,
    questions: str,
    out: Path,
    layout: str = "hotpotqa",
    bm25: Path | None = None,
    ks: tuple[int, ...] = (3, 4, 6),
    rows: list[str] | None = None,
    paper: DrRagPaper | None = None,
    limit: int | None = None,
    normalization: Literal["squad", "triviaqa", "re_rag"] = "squad",
    resamples: int = 10_000,
    seed: int = 0,
    scores: Path | None = None,
) -> None:
    """Measure every selection's recall of gold passages; write table.csv, table.md, recall.png and questions.jsonl.

    Retrieves once and scores each pair once for all rows and k. If the strategy has a reader, it answers from every row's
    documents, and answers.csv and answers.md have EM, F1 and accuracy. An interrupted evaluation resumes: run it again.

    Args:
        strategy: Its retriever, classifier and options are used; its selection method and k are not.
        questions: Official data-set file, or Hugging Face datasets id.
        out: Folder for the report; an earlier report there is replaced.
        layout: Layout of the questions file: which data set's official format it has.
        bm25: BM25 index of the same corpus: adds a BM25 row, and one that fuses it with the strategy's retriever.
        ks: Document budgets.
        rows: Selections to evaluate besides SM, e.g. [QDC, CFS, ranked]; all when omitted.
        paper: Print the paper's published results for this data set beside ours.
        limit: Use only this many questions, from the beginning.
        normalization: With a reader: how answers are normalized before they are compared.
        resamples: Number of bootstrap resamples.
        seed: Of the bootstrap.
        scores: Folder that keeps pair scores for later evaluations; if omitted, they are deleted with the finished report.
    """
    started = time.perf_counter()
    check_evaluate(questions, out, layout, bm25, ks, rows, limit, resamples, scores)
    from datamodules.formats.reading import read_questions
    from harness.evaluation.drrag import recall
    from harness.retrievers.corpora import gold_not_in_index
    from harness.runtime.provenance import computed_in
    from harness.selection.score_cache import ScoreCache, scores_file

    with OUTPUT.locked(out):
        selections = _selected_rows(recall.table_selections(strategy.selection, strategy.scorer is not None), rows)
        loaded = list(track(read_questions(layout, questions, limit=limit), None, "reading questions"))
        usable = recall.with_gold(loaded)
        if len(usable) < len(loaded):
            say(f"{len(loaded) - len(usable)} of {len(loaded)} questions skipped (gold passages missing in the file).")
        if strategy.reader is not None:
            from harness.evaluation.drrag.answers import check_answers

            check_answers(usable)
        absent = gold_not_in_index(strategy.retriever, usable)
        if absent:
            gold = {id_ for question in usable for id_ in question.support}
            say(f"{absent} of {len(gold)} gold passages are not in the index and count as missed.")
        baselines = _baselines(strategy.retriever, bm25)

        cache, classifier = None, None
        partial = scores or out.with_name(out.name + ".partial")
        if strategy.scorer is not None:
            file = None
            if strategy.serving is not None:
                classifier = sha256(Path(strategy.serving) / "serving.json")
                file = scores_file(partial, Path(strategy.serving), strategy.scorer)
            cache = ScoreCache(strategy.scorer, file)
        evaluation = recall.run(usable, strategy.retriever, baselines, selections, ks, cache, strategy.lookahead)
        measured = recall.measure(evaluation, resamples, seed)
        tables: list[Table] = []
        texts: list[list[str]] | None = None
        if strategy.reader is not None:
            from harness.evaluation.answer_scores import YES_NO_LAYOUTS, Bootstrap
            from harness.evaluation.drrag.answers import read_selections, selection_tables

            reading = time.perf_counter()
            saved = _saved_answers(partial / "reading.jsonl", strategy.reader, evaluation)
            texts = read_selections(evaluation, strategy.reader, saved)
            evaluation.seconds["reading"] = time.perf_counter() - reading + saved.seconds
            tables = selection_tables(
                evaluation, texts, normalization, layout in YES_NO_LAYOUTS, paper, Bootstrap(resamples, seed)
            )

        seconds = {**evaluation.seconds, "all": time.perf_counter() - started}
        report = {
            "questions": {
                "source": questions,
                "layout": layout,
                "sha256": sha256(Path(questions)) if Path(questions).is_file() else None,
                "asked": len(loaded),
                "measured": len(usable),
                "without all gold passages": len(loaded) - len(usable),
                "gold passages not in the index": absent,
            },
            "indexes": _index_records({"strategy": strategy.retriever, **baselines}),
            "classifier": {
                "serving": str(strategy.serving) if strategy.serving else None,
                "sha256": classifier,
                "computed in": computed_in(strategy.scorer),
            },
            "selection": asdict(strategy.selection),
            "reader": {"class": type(strategy.reader).__name__, "normalization": normalization}
            if strategy.reader
            else None,
            "bootstrap": {"resamples": resamples, "seed": seed, "confidence": 0.95},
            "pairs scored": cache.scored if cache else 0,
            "seconds": seconds,
        }
        _write(out, evaluation, measured, texts, tables, paper, report)
        from harness.runtime.resumable import remove_saved

        remove_saved(partial / "reading.jsonl", *(partial.glob("scores-*.jsonl") if scores is None else ()))
        for shown in ["table.md"] + ["answers.md"] * bool(tables):
            print((out / shown).read_text(encoding="utf-8"))
        say(f"{out}: {', '.join(sorted(path.name for path in out.iterdir()))}; {seconds['all']:.0f} s.")


def check_evaluate(
    questions: str,
    out: Path,
    layout: str,
    bm25: Path | None,
    ks: Sequence[int],
    rows: list[str] | None,
    limit: int | None,
    resamples: int,
    scores: Path | None,
) -> None:
    """Check numbers, files and folders; called before anything is loaded.  Raises UserError or a subclass."""
    from harness.commands.questions import check_questions
    from harness.evaluation.drrag.recall import table_selections
    from harness.indexing.index_folder import open_index
    from harness.selection.options import SelectionOptions

    if not ks or min(ks) < 1 or len(set(ks)) < len(ks):
        raise UserError(f"ks is {list(ks)}; it must be different numbers of at least 1, such as [3,4,6].")
    check_at_least(1, resamples=resamples)
    _selected_rows(table_selections(SelectionOptions("sm"), with_classifier=True), rows)
    check_questions(layout, [questions], limit)
    if bm25 is not None:
        open_index(bm25, "bm25", "off")
    if scores is not None and (scores.is_file() or scores.resolve().is_relative_to(out.resolve())):
        raise UserError(f"--scores {scores} must be a folder outside --out {out}, which is replaced at the end.")
    OUTPUT.check_writable(out)


def _selected_rows(selections: dict, rows: Sequence[str] | None) -> dict:
    """The requested rows and SM."""
    from harness.evaluation.drrag.recall import BASELINE

    unknown = [name for name in rows or () if name not in selections]
    if unknown:
        raise UserError(
            f"rows contains {unknown[0]!r}; allowed: {', '.join(selections)}"
            + ("." if "CFS" in selections else " (the others need the strategy's serving folder).")
        )
    return {name: options for name, options in selections.items() if rows is None or name in rows or name == BASELINE}


def _baselines(retriever: Retriever, bm25: Path | None) -> dict[str, Retriever]:
    """Retrievers of the further rows: the parts of a fused retriever; otherwise BM25, alone and fused with the retriever."""
    from harness.retrievers.bm25 import Bm25Retriever
    from harness.retrievers.corpora import check_same_corpus
    from harness.retrievers.fusion import FusedRetriever

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


def _saved_answers(file: Path, reader: Reader, evaluation: "Evaluation") -> "ResumableBatches":
    """Resumable batches for the reader's answers; nothing is saved if the reader's configuration is unknown."""
    from harness.evaluation.serialization import digest
    from harness.runtime.provenance import configuration, hardware
    from harness.runtime.resumable import ResumableBatches

    configured = configuration(reader)
    if configured is None:
        return ResumableBatches()
    selected = [[outcome.name, outcome.k, outcome.documents] for outcome in evaluation.outcomes]
    choices = hashlib.sha256(json.dumps(selected).encode()).hexdigest()
    depends_on = {"questions": digest(evaluation.questions), "choices": choices, "hardware": hardware()}
    return ResumableBatches(file, {"reader": configured, **depends_on})


def _index_records(retrievers: dict[str, Retriever]) -> dict[str, list[dict]]:
    from harness.retrievers.corpora import indexes_of

    return {
        name: [
            {"folder": str(index.folder), "passages": index.passages, **index.recipe} for index in indexes_of(retriever)
        ]
        for name, retriever in retrievers.items()
    }


def _write(
    out: Path,
    evaluation: "Evaluation",
    measured: "Sequence[Metrics]",
    texts: list[list[str]] | None,
    tables: "Sequence[Table]",
    paper: DrRagPaper | None,
    report: dict,
) -> None:
    """Write the report folder atomically."""
    from harness.evaluation.drrag.recall import differing, recall_by_kind
    from harness.evaluation.drrag.report import plot_recall, question_records, table_csv, table_markdown

    count, source = report["questions"]["measured"], Path(report["questions"]["source"]).name
    title = f"Recall of gold passages: {count:,} questions of {source}"
    facts = [
        f"questions: {source} ({report['questions']['layout']}), {count:,} evaluated, "
        f"{report['questions']['without all gold passages']:,} skipped (gold passages missing in the file), "
        f"{report['questions']['gold passages not in the index'] or 0:,} gold passages not in the index",
        *(
            f"index: {index['kind']}, {index['passages']:,} passages, corpus {index['corpus'][:12]}"
            for index in report["indexes"]["strategy"]
        ),
        f"classifier: {report['classifier']['serving'] or 'none'}, threshold {report['selection']['threshold']:.4f}, "
        f"{report['pairs scored']:,} pairs scored in {report['seconds']['scoring']:.0f} s"
        + (f", matrix products in {dtype}" if (dtype := report["classifier"]["computed in"]) else ""),
        f"bootstrap: {report['bootstrap']['resamples']:,} resamples, seed {report['bootstrap']['seed']}; "
        f"total time {report['seconds']['all']:.0f} s",
    ]
    rows = [
        {"row": outcome.name, "k": outcome.k, **asdict(metrics), "recall_by_kind": recall_by_kind(evaluation, outcome)}
        for outcome, metrics in zip(evaluation.outcomes, measured, strict=True)
    ]
    with whole_folder(out) as folder:
        if tables:
            from harness.evaluation.tables import tables_csv, tables_markdown

            write_text(folder / "answers.csv", tables_csv(tables))
            with_answers = sum(bool(question.answers) for question in evaluation.questions)
            heading = f"Answers of {report['reader']['class']}: {with_answers:,} questions of {source} with answers"
            write_text(folder / "answers.md", tables_markdown(heading, facts, tables, ANSWER_NOTES))
        write_text(folder / "table.csv", table_csv(evaluation, measured, paper))
        write_text(folder / "table.md", table_markdown(evaluation, measured, paper, title, facts))
        write_text(folder / "questions.jsonl", "".join(line + "\n" for line in question_records(evaluation, texts)))
        differences = {str(k): differing(evaluation, k) for k in dict.fromkeys(o.k for o in evaluation.outcomes)}
        write_json(folder / REPORT, {**report, "questions where CFS differs from QDC": differences, "rows": rows})
        plot_recall(evaluation, measured, folder / "recall.png", title)
