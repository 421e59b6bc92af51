"""Tables of HiQA's study.

Rankings of the rows and their differences (Table 2), by number of documents (Figure 2), in contexts of so many words;
accuracy of the answers by kind of question (Appendix B.2; Tables 1 and 2 in shape).

Rows whose passages are of different length are compared fairly in contexts of equal length alone: every row fills the
same number of words.

Shape legend: N questions, R rows.
"""

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import exact_match
from common.records import Answer, Question, nfkc
from common.words import word_count, words_of
from harness.evaluation.answer_scores import differences_table, has_read, masks_of_kinds, row_cells
from harness.evaluation.judging import judge_costs_table, judged_values
from harness.evaluation.log_rank import log_rank_index
from harness.evaluation.settings import Bootstrap, Settings
from harness.evaluation.tables import ReportTable, not_measured

RIGHT_OR_WRONG = ("choice", "calculation", "comparison", "true or false")  # kinds with one right answer, no half credit
MAX_WORDS = 10  # of the main accepted answer: nobody repeats a worked solution word for word
WHOLE, RECALL, ALL_GOLD, LOG_RANK = "whole index", "recall", "all gold", "Log-Rank"
EXACT, JUDGED = "accuracy %, exact match", "accuracy %, judged"
TITLES = {
    RECALL: "Gold segments in a context of so many words, %",
    ALL_GOLD: "Questions with all gold segments in it, %",
}
_NOTES = {
    EXACT: f"Kinds with one right answer ({', '.join(RIGHT_OR_WRONG)}): 1 if the answer's words are those of an "
    "accepted one, in order, without case and punctuation, else 0; accepted answers of more than "
    f"{MAX_WORDS} words do not count. An answer in other words needs a judge.",
    JUDGED: "By the judge: correct 1, partly correct 0.5, incorrect 0; an empty answer is incorrect. A failed verdict "
    "does not count.",
}
_BUDGETS = (
    "The passages of the ranking, best first, each with its title, that fit so many words together: as the system "
    "fills its context, but without its limit on their number. The first passage always counts."
)

Scores = Mapping[str, float]  # of one question, by measure, 0 to 1
Values = dict[str, NDArray[np.float64]]  # row -> (N,), NaN where it is undefined
Rankings = Mapping[str, Mapping[str, Sequence[Scores]]]  # row -> column -> scores of each question


def scores(places: Sequence[int | None], segments: int, k: int, gamma: float) -> Scores:
    """Of one question's gold segments in a ranking or a context.

    Args:
        places: Of each, from 1; None for one that is not there.
        segments: That were ranked; 0 if nothing is found, or the index holds no gold document.
        k: Of hit rate and recall.
        gamma: Of the Log-Rank Index.
    """
    found = [place for place in places if place]
    first = sum(place <= k for place in found)
    return {
        f"hit@{k}": float(first > 0),
        f"recall@{k}": first / len(places),
        "MRR": 1 / min(found) if found else 0.0,
        LOG_RANK: log_rank_index(places, max(1, segments), gamma),
        RECALL: len(found) / len(places),
        ALL_GOLD: float(len(found) == len(places)),
    }


def ranking_tables(
    rows: Rankings,
    k: int,
    gamma: float,
    sizes: Sequence[str],
    budgets: Sequence[str],
    segments: int,
    bootstrap: Bootstrap,
) -> list[ReportTable]:
    """Hit rate, recall, MRR and Log-Rank Index of every row, in per cent (Table 2), and differences of the first row.

    Then hit rate and Log-Rank Index by number of documents (Figure 2 in shape), and the content of every row's context
    with the differences of the first row.

    Args:
        rows: The scores of each row.
        k: Of hit rate and recall.
        gamma: Of the Log-Rank Index.
        sizes: Columns of the smaller collections.
        budgets: Columns of the contexts.
        segments: Of the first row's index.
        bootstrap: For the intervals.
    """
    own, measures = next(iter(rows)), (f"hit@{k}", f"recall@{k}", "MRR", LOG_RANK)

    def values(columns: Sequence[str], measures: Sequence[str]) -> dict[str, list[NDArray[np.float64]]]:
        cells = [(column, measure) for column in columns for measure in measures]
        return {
            name: [np.array([each[measure] for each in found[column]]) for column, measure in cells]
            for name, found in rows.items()
        }

    note = (
        f"Rankings of all segments of the row's index ({segments:,} in the first row's), Log-Rank Index with gamma "
        f"{gamma:g}. A gold segment is found at the first one that holds its evidence; what no segment holds whole "
        "counts as last."
    )
    whole, columns = values([WHOLE], measures), tuple(f"{measure} %" for measure in measures)
    cells = row_cells(whole, bootstrap)
    tables = [ReportTable("ranking", "Table 2: augmentation and routes", columns, cells, note=note)]
    if len(rows) > 1:
        points = [f"{measure}, points" for measure in measures]
        title = f"Differences of {own} to the others"
        tables.append(differences_table("differences", title, points, whole, own, bootstrap, of_it=True))
    for measure in (measures[0], LOG_RANK) if sizes else ():
        title, cells = f"Figure 2: {measure} % as documents are added", row_cells(values(sizes, [measure]), bootstrap)
        tables.append(ReportTable(f"documents - {measure}", title, tuple(sizes), cells))
    for measure, title in TITLES.items() if budgets else ():
        within = values(budgets, [measure])
        table = differences_table(f"budgets - {measure}", title, budgets, within, own, bootstrap, of_it=True)
        table.rows, table.note = row_cells(within, bootstrap) | dict(table.rows), _BUDGETS
        tables.append(table)
    return tables


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
        return []  # the table of the system's answers says why
    judge, bootstrap, own = settings.judge, settings.bootstrap, next(iter(rows))
    measured = {EXACT: exact_accuracy(rows, questions)}
    costs: list[ReportTable] = []
    if judge is not None and "answers" in judge.prompts:
        judged = {name: judged_values(judge, "answers", questions, answers) for name, answers in rows.items()}
        measured[JUDGED] = {name: half_N for name, ((_, half_N), _) in judged.items()}
        asked = {"answers": [*chain.from_iterable(chain(*each) for _, each in judged.values())]}
        costs = [judge_costs_table(asked, "judge costs of the rows", "Costs of judging the rows")]
    tables = [_by_kind(name, values, questions, bootstrap) for name, values in measured.items()]
    if len(rows) > 1:
        title = f"Answers: differences of {own} to the others"
        of_rows = {row: [each[row] for each in measured.values()] for row in rows}
        tables.append(
            differences_table("answers, differences", title, [*measured], of_rows, own, bootstrap, of_it=True)
        )
    return [*tables, *costs]


def exact_accuracy(rows: Mapping[str, Sequence[Answer]], questions: Sequence[Question]) -> Values:
    """1 or 0 for questions of the kinds `RIGHT_OR_WRONG` with gold answers, NaN for others."""
    return {
        name: np.array([
            exact_match(answer.text, question.answers, in_words)
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


def _by_kind(name: str, values: Values, questions: Sequence[Question], bootstrap: Bootstrap) -> ReportTable:
    """One column for all questions and one for each kind that has a value."""
    known_N = ~np.isnan([*values.values()]).all(axis=0)
    kinds = {kind: known_N & mask_N for kind, mask_N in sorted(masks_of_kinds(questions).items())}
    kinds = {kind: mask_N for kind, mask_N in kinds.items() if mask_N.any()}
    title = f"Table 1: {name} by kind of question (number)"
    if not kinds:
        reason = not_measured(f"no question of the kinds {', '.join(RIGHT_OR_WRONG)}")
        return ReportTable(name, title, ("mean",), {"all rows": [reason]})
    masks = {"all": known_N, **(kinds if len(kinds) > 1 else {})}
    rows = {row: [np.where(mask_N, own_N, np.nan) for mask_N in masks.values()] for row, own_N in values.items()}
    columns = tuple(f"{kind} ({mask_N.sum()})" for kind, mask_N in masks.items())
    return ReportTable(name, title, columns, row_cells(rows, bootstrap), note=_NOTES[name])
