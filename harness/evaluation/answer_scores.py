"""Answer scores: exact match, F1 and accuracy by inclusion of a gold answer, per question and as means with intervals.

Shape legend: N questions, R rows.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.answer_metrics import NORMALIZATIONS, Normalization, exact_match, f1, inclusion
from common.records import Answer, Question, nfkc
from harness.answer_selection.answer_texts import is_refusal
from harness.evaluation.bootstrap import paired_intervals
from harness.evaluation.settings import Bootstrap, Settings, unspaced
from harness.evaluation.tables import Cell, Cells, ReportTable, not_measured

MEASURES = ("EM %", "F1 %", "Acc %")


def script_facts(questions: Sequence[Question], normalization: Normalization) -> list[str]:
    """A line for a report on gold answers in scripts without blanks between words; none if there are none."""
    count, answered = len(unspaced(questions)), sum(bool(question.answers) for question in questions)
    if not count:
        return []
    return [
        f"{count:,} of {answered:,} questions have gold answers in a script without blanks between words: "
        f"--normalization characters makes a word of each character, the others one of a phrase; it is {normalization}"
    ]


def score_answers(
    texts: Sequence[str], questions: Sequence[Question], normalization: Normalization, yes_no_rule: bool = False
) -> NDArray[np.float64]:
    """(3, N) scores, 0 to 1, in the order of `MEASURES`, of every text by its question's gold answers.

    Both are compared in NFKC, which is what models read and write: 1\u20442 is right where the file has ½.  An empty
    text is wrong.

    Args:
        texts: The answers, one per question.
        questions: All with gold answers.
        normalization: Applied to answers and gold answers.
        yes_no_rule: See `common.answer_metrics.f1`.
    """
    normalize = NORMALIZATIONS[normalization]
    pairs = [(nfkc(t), [*map(nfkc, q.answers)]) for t, q in zip(texts, questions, strict=True)]

    def each(measure: Callable[[str, Sequence[str]], float]) -> list[float]:
        return [measure(text, gold) if text else 0.0 for text, gold in pairs]

    return np.array(
        [
            each(lambda text, golds: exact_match(text, golds, normalize)),
            each(lambda text, golds: f1(text, golds, normalize, yes_no_rule)),
            each(lambda text, golds: inclusion(text, golds, normalize)),
        ]
    )


def percent_cells(values_RN: ArrayLike, bootstrap: Bootstrap, absent: str = "no question") -> list[Cell]:
    """Mean of each row in per cent (percentage points for differences) with its 95% bootstrap interval.

    Args:
        values_RN: One value per question, 0 to 1.
        bootstrap: For the intervals.
        absent: Why nothing is measured if there is no question.
    """
    values = np.asarray(values_RN, dtype=np.float64)
    if not values.shape[1]:
        return [not_measured(absent)] * len(values)
    ends_R2 = 100 * paired_intervals(values, bootstrap.resamples, bootstrap.seed)
    return [
        Cell(100 * float(mean), (float(low), float(high)))
        for mean, (low, high) in zip(values.mean(axis=1), ends_R2, strict=True)
    ]


def known_percent_cells(values_RN: ArrayLike, bootstrap: Bootstrap) -> list[Cell | None]:
    """As `percent_cells`, of each row's values that are not NaN; None for a row without any.

    Rows with values for the same questions share resamples, which take most of the time.
    """
    values = np.asarray(values_RN, dtype=np.float64)
    alike: dict[bytes, list[int]] = {}  # by which questions have a value
    for row, known_N in enumerate(~np.isnan(values)):
        alike.setdefault(known_N.tobytes(), []).append(row)
    cells: list[Cell | None] = [None] * len(values)
    for rows in alike.values():
        known_N = ~np.isnan(values[rows[0]])
        if known_N.any():
            for row, cell in zip(rows, percent_cells(values[rows][:, known_N], bootstrap), strict=True):
                cells[row] = cell
    return cells


def row_cells(rows: Mapping[str, Sequence[NDArray[np.float64]]], bootstrap: Bootstrap) -> dict[str, list[Cell | None]]:
    """The cells of rows: the mean of every (N,) array over its known values, with its interval.

    Args:
        rows: Arrays of one value per question, 0 to 1, NaN where it is undefined.
        bootstrap: For the intervals.
    """
    flat = [values_N for row in rows.values() for values_N in row]
    cells = iter(known_percent_cells(flat, bootstrap) if flat else [])
    return {name: list(islice(cells, len(row))) for name, row in rows.items()}


def differences_table(
    name: str,
    title: str,
    columns: Sequence[str],
    rows: Mapping[str, Sequence[NDArray[np.float64]]],
    to: str,
    bootstrap: Bootstrap,
    of_it: bool = False,
) -> ReportTable:
    """Paired differences of every row to one of them, on the questions for which both have a value.

    Args:
        name: Of the table.
        title: Its heading.
        columns: Of the arrays.
        rows: As in `row_cells`.
        to: The row to which the others are compared.
        bootstrap: For the intervals.
        of_it: Differences of this row to the others instead.
    """
    values = {
        f"{to} - {row}" if of_it else row: [
            (base - other) if of_it else (other - base) for other, base in zip(own, rows[to], strict=True)
        ]
        for row, own in rows.items()
        if row != to
    }
    note = "Paired: on the questions for which both have a value."
    cells = row_cells(values, bootstrap)
    return ReportTable(name, title, tuple(columns), cells, note=note, signed=frozenset(cells))


def masks_of_kinds(questions: Sequence[Question]) -> dict[str, NDArray[np.bool_]]:
    """Which questions are of each kind, (N,), the most frequent kind first."""
    kinds_N = np.array([question.kind or "-" for question in questions])
    kinds, counts = np.unique(kinds_N, return_counts=True)
    return {str(kinds[place]): kinds_N == kinds[place] for place in np.argsort(-counts, kind="stable")}


def has_read(answers: Sequence[Answer]) -> bool:
    """Whether a reader gave one of the answers, or failed to; it may have given an empty text."""
    return any(each.text or each.logprob is not None or each.costs.get("failed_calls") for each in answers)


def answer_values(questions: Sequence[Question], answers: Sequence[Answer], settings: Settings) -> NDArray[np.float64]:
    """(3, N) in the order of `MEASURES`, NaN for questions without gold answers."""
    known = [place for place, question in enumerate(questions) if question.answers]
    values = np.full((3, len(questions)), np.nan)
    texts, asked = [answers[place].text for place in known], [questions[place] for place in known]
    values[:, known] = score_answers(texts, asked, settings.normalization, settings.yes_no_rule)
    return values


def answer_tables(questions: Sequence[Question], answers: Sequence[Answer], settings: Settings) -> list[ReportTable]:
    """Scores with every normalization, the chosen one first; scores by kind of question with the chosen one.

    `characters` is among them where a gold answer needs it.
    """
    texts, normalization, bootstrap = [answer.text for answer in answers], settings.normalization, settings.bootstrap
    others = [name for name in NORMALIZATIONS if name != "characters" or unspaced(questions)]
    names = [normalization, *(name for name in others if name != normalization)]
    scored = {name: score_answers(texts, questions, name, settings.yes_no_rule) for name in names}
    rows = {f"ours, {name}": percent_cells(scores, bootstrap) for name, scores in scored.items()}
    tables = [ReportTable("answers", "Answers", MEASURES, rows)]
    kinds = masks_of_kinds(questions)
    if len(kinds) > 1:
        values = scored[normalization]
        of_kinds: dict[str, Cells] = {
            kind: [Cell(int(mask_N.sum())), *percent_cells(values[:, mask_N], bootstrap)]
            for kind, mask_N in kinds.items()
        }
        tables.append(
            ReportTable(
                "answers by kind", f"Answers by kind of question, {normalization}", ("questions", *MEASURES), of_kinds
            )
        )
    return tables


def withheld_tables(questions: Sequence[Question], answers: Sequence[Answer], settings: Settings) -> list[ReportTable]:
    """Shares of answered and refused questions, among answerable and unanswerable ones; none without unanswerable ones.

    An answer is refused if it is empty or says that there is none; a failed call is neither.  A pair are an answerable
    and an unanswerable question of one id: its answer counts where the other is refused, as in MuSiQue-Full's own
    measure.
    """
    if not any(question.source.withheld for question in questions):
        return []
    refused_N = np.array([is_refusal(a.text) or not (a.text or a.costs.get("failed_calls")) for a in answers])
    answered_N = np.array([bool(a.text) and not is_refusal(a.text) for a in answers])
    withheld_N, known_N = np.array([(bool(q.source.withheld), bool(q.answers)) for q in questions]).T
    said = [replace(question, answers=question.source.withheld) for question in questions if question.source.withheld]
    texts = [answer.text for answer, question in zip(answers, questions, strict=True) if question.source.withheld]
    guessed_N = np.full(len(questions), np.nan)
    guessed_N[withheld_N] = score_answers(texts, said, settings.normalization, settings.yes_no_rule)[0]
    shares_3N = np.array([answered_N, refused_N, guessed_N], dtype=np.float64)
    rows: dict[str, Cells] = {}
    for name, mask_N in (("answerable", known_N), ("unanswerable", withheld_N)):
        cells = known_percent_cells(shares_3N[:, mask_N], settings.bootstrap) if mask_N.any() else [None] * 3
        rows[name] = [Cell(int(mask_N.sum())), *cells]
    columns = ("questions", "answered %", "refused %", "withheld answer said %")
    note = "EM, F1 and accuracy above are of the answerable questions alone."
    tables = [ReportTable("refusals", "Answerable and unanswerable questions", columns, rows, note=note)]
    refused_of = {question.id: bool(refused_N[n]) for n, question in enumerate(questions) if question.source.withheld}
    pairs = [n for n, question in enumerate(questions) if question.answers and question.id in refused_of]
    if pairs:
        asked, given = [questions[n] for n in pairs], [answers[n].text for n in pairs]
        scores_3P = score_answers(given, asked, settings.normalization, settings.yes_no_rule)
        both_3P = scores_3P * np.array([refused_of[question.id] for question in asked])
        row: Cells = [Cell(len(pairs)), *percent_cells(both_3P, settings.bootstrap)]
        title = "Pairs: the answer, where the unanswerable question of the same id is refused"
        tables.append(ReportTable("pairs", title, ("pairs", *MEASURES), {f"ours, {settings.normalization}": row}))
    return tables


def costs_table(
    systems: Mapping[str, Sequence[Answer]], name: str = "costs", title: str = "Costs per question"
) -> ReportTable:
    """Mean costs per question of every system: calls, tokens, US dollars per 1,000 questions, seconds by stage."""
    totals = {system: Counter[str]() for system in systems}
    for system, answers in systems.items():
        for answer in answers:
            totals[system].update(answer.costs)
    names = dict.fromkeys(cost for own in totals.values() for cost in own)
    counted, stages = ([cost for cost in names if ("seconds/" in cost) == timed] for timed in (False, True))
    rows: dict[str, Cells] = {}
    for system, own in totals.items():
        means = {cost: total / len(systems[system]) for cost, total in own.items()}
        cells = {cost: Cell(1000 * mean if cost == "usd" else mean) for cost, mean in means.items()}
        seconds = Cell(float(sum(means.get(stage, 0.0) for stage in stages)))
        rows[system] = [*map(cells.get, counted), seconds, *map(cells.get, stages)]
    dollars = "US dollars per 1,000 questions"  # one costs too little
    of_stages = ("seconds", *(f"s, {stage[8:].replace('_', ' ')}" for stage in stages))
    columns = (*(dollars if cost == "usd" else cost.replace("_", " ") for cost in counted), *of_stages)
    note = "Seconds on this machine, in batches; what several rows share is charged to each of them."
    return ReportTable(name, title, columns, rows, note=note, column_decimals=dict.fromkeys((dollars, *of_stages), 4))
