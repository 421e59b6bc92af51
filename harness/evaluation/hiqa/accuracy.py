"""Accuracy of the rows' answers (HiQA, Appendix B.2; Tables 1 and 2 in shape), by kind of question.

Shape legend: N questions, R rows.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import exact_match
from common.records import Answer, Question, nfkc
from common.words import word_count, words_of
from harness.evaluation.answer_scores import Bootstrap, differences_table, masks_of_kinds, row_cells
from harness.evaluation.engine import has_read
from harness.evaluation.judge import Verdict
from harness.evaluation.judging.system import judged_values
from harness.evaluation.judging.tables import NO_JUDGE, NO_READER, NOT_ASKED_FOR, costs_table
from harness.evaluation.study import Settings
from harness.evaluation.tables import ReportTable, not_measured

RIGHT_OR_WRONG = ("choice", "calculation", "comparison", "true or false")  # kinds with one right answer, no half credit
MAX_WORDS = 10  # of the main accepted answer: nobody repeats a worked solution word for word
JUDGED = "accuracy %, judged"
_EXACT = (
    f"Kinds with one right answer ({', '.join(RIGHT_OR_WRONG)}): 1 if the answer's words are those of an accepted one, "
    f"in order, without case and punctuation, else 0; accepted answers of more than {MAX_WORDS} words do not count. "
    "An answer in other words needs a judge."
)
_JUDGED = (
    "By the judge: correct 1, partly correct 0.5, incorrect 0; an empty answer is incorrect. A failed verdict does not "
    "count."
)

Values = dict[str, NDArray[np.float64]]  # row -> (N,), NaN where it is undefined


def answer_tables_of_rows(
    rows: Mapping[str, Sequence[Answer]], questions: Sequence[Question], settings: Settings
) -> list[ReportTable]:
    """Accuracy by exact match, accuracy by a judge, and their paired differences to the first row.

    Args:
        rows: Answers of each row.
        questions: The questions.
        settings: Bootstrap and judge.
    """
    if not any(has_read(answers) for answers in rows.values()):
        return [_absent("accuracy", "Table 1: accuracy", NO_READER)]
    measured: dict[str, Values] = {"accuracy %, exact match": exact_accuracy(rows, questions)}
    notes = [_EXACT]
    asked: dict[str, list[Verdict]] = {}
    judge, tables = settings.judge, list[ReportTable]()
    if judge is None or "answers" not in judge.prompts:
        tables.append(_absent(JUDGED, f"Table 1: {JUDGED}", NO_JUDGE if judge is None else NOT_ASKED_FOR))
    else:
        judged = {name: judged_values(judge, "answers", questions, answers) for name, answers in rows.items()}
        measured[JUDGED] = {name: half_N for name, ((_, half_N), _) in judged.items()}
        asked["answers"] = [each for _, verdicts in judged.values() for own in verdicts for each in own]
        notes.append(_JUDGED)
    of_kinds = [
        _by_kind(title, values, questions, note, settings.bootstrap)
        for (title, values), note in zip(measured.items(), notes, strict=True)
    ]
    tables = [*of_kinds, *tables]
    if len(rows) > 1:
        own = next(iter(rows))
        values = {name: [each[name] for each in measured.values()] for name in rows}
        title = f"Answers: differences of {own} to the others"
        table = differences_table(
            "answers, differences", title, [*measured], values, own, settings.bootstrap, True, 100
        )
        tables.append(table)
    if asked:
        costs = costs_table(asked)
        costs.name, costs.title = "judge costs of the rows", "Costs of judging the rows"
        tables.append(costs)
    return tables


def exact_accuracy(rows: Mapping[str, Sequence[Answer]], questions: Sequence[Question]) -> Values:
    """100 or 0 for questions of the kinds `RIGHT_OR_WRONG` with gold answers, NaN for others."""
    return {
        name: np.array([
            100 * exact_match(answer.text, question.answers, in_words)
            if question.kind in RIGHT_OR_WRONG and question.answers and word_count(question.answers[0]) <= MAX_WORDS
            else np.nan
            for question, answer in zip(questions, answers, strict=True)
        ])
        for name, answers in rows.items()
    }  # fmt: skip


def in_words(text: str) -> str:
    """The words of an answer, small; of one that is a mere sign, such as a tick, the sign.

    Unlike `common.answer_metrics.squad` it keeps the word "a", which can be the answer to a choice.
    """
    return " ".join(word.text for word in words_of(nfkc(text))) or nfkc(text)


def _by_kind(title: str, values: Values, questions: Sequence[Question], note: str, bootstrap: Bootstrap) -> ReportTable:
    """One column for all questions and one for each kind that has a value."""
    known_N = ~np.isnan(np.stack([*values.values()])).all(axis=0)
    if not known_N.any():
        return _absent(title, f"Table 1: {title}", f"no question of the kinds {', '.join(RIGHT_OR_WRONG)}")
    kinds = {kind: known_N & mask_N for kind, mask_N in sorted(masks_of_kinds(questions).items())}
    kinds = {kind: mask_N for kind, mask_N in kinds.items() if mask_N.any()}
    places = {"all": known_N, **(kinds if len(kinds) > 1 else {})}
    rows = {name: [np.where(mask_N, own_N, np.nan) for mask_N in places.values()] for name, own_N in values.items()}
    columns = tuple(f"{name} ({place_N.sum()})" for name, place_N in places.items())
    heading = f"Table 1: {title} by kind of question (number)"
    return ReportTable(title, heading, columns, row_cells(rows, bootstrap, 100), note=note)


def _absent(name: str, title: str, reason: str) -> ReportTable:
    return ReportTable(name, title, ("mean",), {"all rows": [not_measured(reason)]})
