"""Agreement of a judge's verdicts with known truth.

Accuracy, precision, recall and Cohen's kappa, with bootstrap intervals.

Shape legend: Q questions, B resamples, 4 cells: (true, judged true), (false, judged true), (true, judged false),
(false, judged false).
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import Normalize, f1
from common.records import Question
from harness.evaluation.answer_scores import Bootstrap
from harness.evaluation.bootstrap import interval_of_means
from harness.evaluation.tables import Cell, Cells, not_measured

COLUMNS = ("cases", "true", "judged true", "accuracy %", "precision %", "recall %", "kappa")
_OPPOSITE = {"yes": "no", "no": "yes"}


@dataclass(frozen=True, slots=True)
class Case:
    """One verdict whose truth is known."""

    question: int  # number of its question: cases of one question are resampled together
    truth: bool
    verdict: bool


def agreement_cells(cases: Sequence[Case], absent: str, bootstrap: Bootstrap) -> Cells:
    """The cells of COLUMNS.

    Args:
        cases: Verdicts with their truth.
        absent: Why there is nothing to compare with, if there is no case.
        bootstrap: Questions are resampled with all their cases.
    """
    if not cases:
        return [not_measured(absent)] * len(COLUMNS)
    counts_Q4 = _counts(cases)
    counts_4 = counts_Q4.sum(axis=0)
    true, judged = int(counts_4[0] + counts_4[2]), int(counts_4[0] + counts_4[1])
    cells = [Cell(len(cases)), Cell(true), Cell(judged)]
    undefined = {
        _accuracy: "",
        _precision: "nothing is judged true",
        _recall: "nothing is true",
        _kappa: "truth and verdicts are all the same",
    }
    for statistic, reason in undefined.items():
        scale = 1 if statistic is _kappa else 100
        value = scale * float(statistic(counts_4[None])[0])
        interval = interval_of_means(statistic, counts_Q4.T, bootstrap.resamples, bootstrap.seed)
        known = not np.isnan(value) and interval is not None
        cells.append(
            Cell(value, (scale * interval[0], scale * interval[1])) if known and interval else not_measured(reason)
        )
    return cells


def _counts(cases: Sequence[Case]) -> NDArray[np.float64]:
    """(Q, 4) number of the cases of each question in each cell."""
    places = {question: place for place, question in enumerate(sorted({case.question for case in cases}))}
    counts_Q4 = np.zeros((len(places), 4))
    for case in cases:
        counts_Q4[places[case.question], 2 * (not case.verdict) + (not case.truth)] += 1
    return counts_Q4


def _accuracy(counts_B4: NDArray[np.float64]) -> NDArray[np.float64]:
    return (counts_B4[:, 0] + counts_B4[:, 3]) / counts_B4.sum(axis=1)


def _precision(counts_B4: NDArray[np.float64]) -> NDArray[np.float64]:
    return _ratio(counts_B4[:, 0], counts_B4[:, 0] + counts_B4[:, 1])


def _recall(counts_B4: NDArray[np.float64]) -> NDArray[np.float64]:
    return _ratio(counts_B4[:, 0], counts_B4[:, 0] + counts_B4[:, 2])


def _kappa(counts_B4: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cohen (1960): agreement beyond what truth and verdicts with these frequencies share by chance, 1 at most."""
    shares_B4 = counts_B4 / counts_B4.sum(axis=1, keepdims=True)
    true_B, judged_B = shares_B4[:, 0] + shares_B4[:, 2], shares_B4[:, 0] + shares_B4[:, 1]
    chance_B = true_B * judged_B + (1 - true_B) * (1 - judged_B)
    # both are rounded, so that no agreement beyond chance is 0, and chance is 1 where truth and verdicts are all the
    # same
    return _ratio(np.round(_accuracy(counts_B4) - chance_B, 12) + 0.0, np.round(1 - chance_B, 12))


def _ratio(over_B: NDArray[np.float64], under_B: NDArray[np.float64]) -> NDArray[np.float64]:
    """NaN where the divisor is 0."""
    return np.divide(over_B, under_B, out=np.full(len(over_B), np.nan), where=under_B != 0)


def known_answers(questions: Sequence[Question], count: int, normalize: Normalize) -> Iterator[tuple[int, str, bool]]:
    """Answers whose truth is known: for each of `count` questions one that is right and one that is wrong.

    The right one is the main accepted answer. The wrong one is the main accepted answer to another question, of the
    same kind if possible, that shares no word with the accepted ones; for yes it is no and for no it is yes. A question
    without such an answer is left out. The choice depends on the questions alone.

    Yields:
        Number of the question, the answer, whether it is right.
    """
    answered = [number for number, question in enumerate(questions) if question.answers]
    order = sorted(answered, key=lambda number: hashlib.sha256(questions[number].id.encode()).digest())
    chosen = 0
    for place, number in enumerate(order):
        question = questions[number]
        others = [questions[other] for other in order[place + 1 :] + order[:place]]
        wrong = _wrong_answer(question, others, normalize)
        if chosen == count:
            return
        if wrong is None:
            continue
        chosen += 1
        yield number, question.answers[0], True
        yield number, wrong, False


def _wrong_answer(question: Question, others: Sequence[Question], normalize: Normalize) -> str | None:
    golds = [normalize(gold) for gold in question.answers]
    for gold in golds:
        if gold in _OPPOSITE and _OPPOSITE[gold] not in golds:
            return _OPPOSITE[gold]
    for other in sorted(others, key=lambda other: other.kind != question.kind):  # stable: the given order otherwise
        answer = other.answers[0]
        if normalize(answer) not in ("", "yes", "no") and not f1(answer, question.answers, normalize):
            return answer
    return None
