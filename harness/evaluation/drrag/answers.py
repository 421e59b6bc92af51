"""EM, F1, accuracy, steps and time of one reader on every selection's documents: DR-RAG's Tables 2 to 4.

Shape legend: N questions, R rows.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from common.records import Answer, Ranked
from harness.evaluation import paper_figures
from harness.evaluation.answer_scores import MEASURES, answer_values, percent_cells
from harness.evaluation.drrag.recall import BASELINE, Evaluation, RowOutcome
from harness.evaluation.study import Settings
from harness.evaluation.tables import Cell, Cells, ReportTable
from harness.readers.read_answers import sum_costs
from harness.selection.lazy_scoring import Decision
from harness.systems.drrag import selected_answer

COLUMNS = ("EM %", f"EM - {BASELINE}, points", *MEASURES[1:], "steps", "time")


def selected_documents(evaluation: Evaluation, outcomes: Sequence[RowOutcome]) -> list[list[list[Ranked]]]:
    """Each outcome's documents for every question, for a reader: in the order of selection, their scores are 0."""
    return [
        [[Ranked(evaluation.passages[id_], 0.0) for id_ in documents] for documents in outcome.documents]
        for outcome in outcomes
    ]


def selected_answers(
    evaluation: Evaluation, outcome: RowOutcome, read: Sequence[Answer] | None, reading_seconds: float
) -> list[Answer]:
    """An outcome as the answers of a system: evidence, text, costs and notes of every question.

    Args:
        evaluation: The questions, passages and retrieval results.
        outcome: Of a selection or of a retriever alone.
        read: What the reader answered; None without a reader.
        reading_seconds: Of the reader, per question.
    """
    shared = {"tokens": outcome.tokens, **{f"seconds/{stage}": value for stage, value in outcome.stages.items()}}
    answers = []
    for number, question in enumerate(evaluation.questions):
        if outcome.options is None:
            costs = {"retriever_calls": 1.0, "model_calls": 0.0, **shared}
            answer = Answer(question.id, "", tuple(outcome.retrieved[number]), costs=costs)
        else:
            decision = Decision(list(outcome.documents[number]), outcome.scores[number])
            found = evaluation.results[outcome.options.question_copies][number]
            answer = selected_answer(outcome.options, question, found, decision, shared)
        if read is not None:
            own = read[number]
            costs = {**sum_costs(answer.costs, own.costs), "seconds/reading": reading_seconds}
            notes = {**answer.notes, **own.notes}
            answer = replace(answer, text=own.text, logprob=own.logprob, costs=costs, notes=notes)
        answers.append(answer)
    return answers


def selection_tables(
    evaluation: Evaluation,
    read: Sequence[Sequence[Answer]],
    reading_seconds: float,
    settings: Settings,
    paper: paper_figures.Paper | None,
) -> list[ReportTable]:
    """One table per k, with paired differences to similarity matching.

    Args:
        evaluation: Its outcomes were read. Counted are questions with gold answers, and gold passages if any has.
        read: What a reader answered from its outcomes' documents.
        reading_seconds: Of the reader, per question.
        settings: Normalization and bootstrap.
        paper: Adds this paper's published results.
    """
    known_N = evaluation.known
    rows_N = [n for n, each in enumerate(evaluation.questions) if each.answers and (known_N[n] or not any(known_N))]
    if not rows_N:
        return []
    questions = [evaluation.questions[row] for row in rows_N]
    scored = [answer_values(questions, [row[n] for n in rows_N], settings) for row in read]
    steps = [float(np.mean([row[n].costs.get("model_calls", 0.0) for n in rows_N])) for row in read]
    measured = list(zip(evaluation.outcomes, scored, steps, strict=False))
    tables = []
    for k in dict.fromkeys(outcome.k for outcome in evaluation.outcomes):
        at_k = [each for each in measured if each[0].k == k]
        baseline, baseline_3N, _ = next(each for each in at_k if each[0].name == BASELINE)
        whole = baseline.seconds + reading_seconds
        rows: dict[str, Cells] = {}
        for outcome, (exact_N, f1_N, inclusion_N), calls in at_k:
            values = np.stack([exact_N, exact_N - baseline_3N[0], f1_N, inclusion_N])
            time = Cell((outcome.seconds + reading_seconds) / whole) if whole else None
            cells: list[Cell | None] = [*percent_cells(values, settings.bootstrap), Cell(calls), time]
            rows[outcome.name] = cells if outcome.name != BASELINE else [cells[0], None, *cells[2:]]
        published = paper_figures.dr_rag_answers(paper, k) if paper else {}
        tables.append(
            ReportTable(
                f"answers, k = {k}",
                f"Answers from at most {k} documents, normalization: {settings.normalization} (Tables 2-4)",
                COLUMNS,
                rows,
                {name: [cells[0], None, *cells[1:]] for name, cells in published.items()},
                note="Steps: calls of the reader per question. Time: of retrieval, pair scoring and reading, to SM's.",
                signed=frozenset({COLUMNS[1]}),
            )
        )
    return tables
