"""The report folder of one evaluated system.

It holds report.md, report.csv, report.json, report.html, questions.jsonl, run.trec, qrels.trec and plots.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from common.files import write_json, write_text
from common.outputs import OutputFolder, known_files
from harness.evaluation.answer_scores import script_facts
from harness.evaluation.engine import MeasuredSystem
from harness.evaluation.page import page
from harness.evaluation.paper_figures import paper_name
from harness.evaluation.question_files import QuestionFiles
from harness.evaluation.settings import Settings
from harness.evaluation.tables import ReportTable, tables_csv, tables_markdown
from harness.evaluation.trec import QRELS, RUN, write_trec
from harness.interfaces import System
from harness.readers.llm import LlmReader
from harness.retrievers.corpora import index_records
from harness.runtime.provenance import models_of
from harness.runtime.retriever_tree import facts_of

REPORT = "report.json"
FILES = (REPORT, "report.csv", "report.md", "report.html", "questions.jsonl", RUN, QRELS, "*.png")
OF_EARLIER_RELEASES = ("table.csv", "table.md", "answers.csv", "answers.md")
OUTPUT = OutputFolder(
    "`infer.py evaluate`", "a report", known_files(*FILES, *(f"*/{file}" for file in FILES), *OF_EARLIER_RELEASES)
)
NOTES = """\
Brackets: 95% bootstrap intervals over questions; differences are paired. EM, F1, Acc (the answer contains a gold \
answer): in per
cent; answers and gold answers are normalized with the stated normalization.{paper}
"""
PAPER = """ Rows and columns marked "paper" are {name}'s published results, with other retrievers, corpora, readers \
and model sizes:
compare differences between rows rather than absolute values."""


def write_report(
    folder: Path,
    measured: MeasuredSystem,
    system: System,
    files: QuestionFiles,
    settings: Settings,
    absent_gold: int | None,
) -> None:
    """Write all files of the report into a folder.

    Args:
        folder: Exists already.
        measured: The system's results.
        system: For its class and its indexes.
        files: The questions.
        settings: Of the evaluation.
        absent_gold: Number of gold passages that the system's index lacks; None if unknown.
    """
    count = len(measured.questions)
    title = f"{type(system).__name__}: {count:,} questions of {files.name}"
    facts = [
        measured.verdict,
        *measured.facts,
        f"system: {type(system).__name__}; normalization: {settings.normalization}"
        + (", HotpotQA's yes/no rule" * settings.yes_no_rule),
        *script_facts(measured.questions, settings.normalization),
        *measured.findings.facts,
        *measured.judged.facts,
        *write_trec(folder, measured.questions, measured.answers),
        f"bootstrap: {settings.bootstrap.resamples:,} resamples, seed {settings.bootstrap.seed}; "
        f"total time {measured.seconds:.0f} s",
    ]
    for file, draw in measured.findings.plots.items():
        draw(folder / file)
    notes = notes_of(settings, measured.findings.notes, measured.findings.paper)
    write_text(folder / "questions.jsonl", "".join(line + "\n" for line in question_records(measured)))
    write_json(
        folder / REPORT,
        {
            "questions": files.record(count, measured.read)
            | {"gold passages not in the index": absent_gold, "failed": measured.failed.reasons},
            "system": type(system).__name__,
            "indexes": index_records(system),
            "models": model_facts(system),
            "normalization": settings.normalization,
            "bootstrap": asdict(settings.bootstrap) | {"confidence": 0.95},
            "verdict": measured.verdict,
            "study": measured.findings.settings,
            "judge": measured.judged.record or None,
            "means": {
                row: {name: _mean(values) for name, values in each.items()} for row, each in measured.measures.items()
            },
            "seconds": measured.seconds,
        },
    )
    plots = {
        file.removesuffix(".png").replace("_", " "): (folder / file).read_bytes() for file in measured.findings.plots
    }
    cases = [measured.cases_of(number) for number in range(count)]
    of_page = plots, measured.questions, measured.systems, measured.measures, cases
    write_pages(folder, title, facts, measured.tables, notes, *of_page)


def index_facts(system: System) -> list[str]:
    """A line on each of a system's indexes, and the facts on its retrievers."""
    indexes = [
        f"index: {each['kind']}, {each['passages']:,} passages, corpus {str(each['corpus'])[:12]}"
        for each in index_records(system)
    ]
    return list(dict.fromkeys([*indexes, *facts_of(system)]))  # two stages may search one index


def model_facts(system: System) -> list[str]:
    """The facts on a system's rewriter and reader: their models and prompts, if they have any."""
    facts: list[str] = []
    alone = hasattr(system, "context_reader")  # one passage per call, as in RE-RAG
    for part in models_of(system).values():
        facts += part.facts(alone) if isinstance(part, LlmReader) else facts_of(part)
    return facts


def write_pages(
    folder: Path, title: str, facts: Sequence[str], tables: Sequence[ReportTable], notes: str, *of_page: Any
) -> None:
    """Write report.csv, report.md and report.html; `of_page` are further arguments of `page`."""
    write_text(folder / "report.csv", tables_csv(tables))
    write_text(folder / "report.md", tables_markdown(title, facts, tables, notes))
    write_text(folder / "report.html", page(title, facts, tables, notes, *of_page))


def notes_of(settings: Settings, further: str = "", name: str = "") -> str:
    """The notes below the tables, in paragraphs; `name` is that of the paper where the data set does not tell."""
    paper = PAPER.format(name=name or paper_name(settings.paper)) if settings.paper else ""
    return NOTES.format(paper=paper) + (f"\n{further}" if further else "")


def question_records(measured: MeasuredSystem) -> Iterator[str]:
    """JSON lines, one per question.

    Gold answers, answer, its scores, evidence and costs, and the study's own fields.
    """
    measures = measured.measures[measured.word]
    for number, question in enumerate(measured.questions):
        answer = measured.answers[number]
        record: dict[str, object] = {
            "id": question.id,
            "question": question.text,
            "kind": question.kind,
            "answers": list(question.answers),
            **({"withheld": list(question.source.withheld)} if question.source.withheld else {}),
            "answer": answer.text,
            "logprob": answer.logprob,
            "gold": [
                {"id": passage.id, **passage.labels, "title": passage.title} for passage in question.gold_passages
            ],
            **({"gold_segments": [asdict(each) for each in question.gold.segments]} if question.gold.segments else {}),
            **{name.replace(" ", "_"): _number(values[number]) for name, values in measures.items()},
            "evidence": [
                {"id": hit.passage.id, **hit.passage.labels, "title": hit.passage.title, "score": hit.score}
                for hit in answer.evidence
            ],
            "costs": answer.costs,
            "notes": answer.notes,
        }
        further = measured.findings.records[number] if measured.findings.records else {}
        judged = measured.judged.records[number] if measured.judged.records else {}
        yield json.dumps({**record, **further, **judged}, ensure_ascii=False)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _mean(values: np.ndarray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
