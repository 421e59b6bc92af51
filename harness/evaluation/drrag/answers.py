"""EM, F1 and accuracy of one reader on every selection's documents: DR-RAG's Tables 2 to 4.

Shape legend: N questions, R rows.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import Normalization
from common.records import Answer, Question, Ranked
from harness.evaluation import paper_figures
from harness.evaluation.answer_scores import MEASURES, Bootstrap, percent_cells, score_answers
from harness.evaluation.drrag.recall import BASELINE, Evaluation, Outcome
from harness.evaluation.tables import Cell, Cells, Table
from harness.readers.read_answers import sum_costs
from harness.selection.lazy_scoring import Decision
from harness.strategies.drrag import selected_answer

COLUMNS = ("EM %", f"EM - {BASELINE}, points", *MEASURES[1:])


def selected_documents(evaluation: Evaluation, outcomes: Sequence[Outcome]) -> list[list[list[Ranked]]]:
    """Each outcome's documents for every question, for a reader: in the order of selection, their scores are 0."""
    return [
        [[Ranked(evaluation.passages[id_], 0.0) for id_ in documents] for documents in outcome.documents]
        for outcome in outcomes
    ]


def selected_answers(
    evaluation: Evaluation, outcome: Outcome, read: Sequence[Answer] | None, reading_seconds: float
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
    texts: Sequence[Sequence[str]],
    normalization: Normalization,
    yes_no_rule: bool,
    paper: paper_figures.Paper | None,
    bootstrap: Bootstrap,
) -> list[Table]:
    """One table per k, with paired differences to similarity matching; then EM by kind of question for every k.

    Args:
        evaluation: Its outcomes were read; some of its questions have gold answers.
        texts: What a reader answered from its outcomes' documents.
        normalization: Applied to answers and gold answers.
        yes_no_rule: See `common.answer_metrics.f1`.
        paper: Adds this paper's published results.
        bootstrap: For the intervals.
    """
    rows_N = [row for row, question in enumerate(evaluation.questions) if question.answers]
    questions = [evaluation.questions[row] for row in rows_N]
    scored = [score_answers([row[n] for n in rows_N], questions, normalization, yes_no_rule).stacked() for row in texts]
    measured = list(zip(evaluation.outcomes, scored, strict=True))
    tables = []
    for k in dict.fromkeys(outcome.k for outcome in evaluation.outcomes):
        at_k = [(outcome, scores_3N) for outcome, scores_3N in measured if outcome.k == k]
        baseline_3N = next(scores_3N for outcome, scores_3N in at_k if outcome.name == BASELINE)
        rows: dict[str, Cells] = {}
        for outcome, (exact_N, f1_N, inclusion_N) in at_k:
            values = np.stack([exact_N, exact_N - baseline_3N[0], f1_N, inclusion_N])
            cells: list[Cell | None] = [*percent_cells(values, bootstrap)]
            rows[outcome.name] = cells if outcome.name != BASELINE else [cells[0], None, *cells[2:]]
        published = paper_figures.answers(paper, k) if paper else {}
        tables.append(
            Table(
                f"answers, k = {k}",
                f"Answers from at most {k} documents, normalization: {normalization} (Tables 2-4)",
                COLUMNS,
                rows,
                {name: [cells[0], None, *cells[1:]] for name, cells in published.items()},
                signed=frozenset({COLUMNS[1]}),
            )
        )
    return [*tables, *_by_kind(questions, measured)]


def _by_kind(questions: Sequence[Question], measured: Sequence[tuple[Outcome, NDArray[np.float64]]]) -> list[Table]:
    kinds_N = np.array([question.kind or "-" for question in questions])
    kinds, counts = np.unique(kinds_N, return_counts=True)
    if len(kinds) < 2:
        return []
    order = np.argsort(-counts, kind="stable")
    rows: dict[str, Cells] = {"questions": [Cell(int(counts[place])) for place in order]}
    for outcome, (exact_N, *_) in measured:
        means = [Cell(100 * float(exact_N[kinds_N == kinds[place]].mean())) for place in order]
        rows[f"{outcome.name}, k = {outcome.k}"] = means
    return [Table("EM by kind", "EM % by kind of question", tuple(str(kinds[place]) for place in order), rows)]
