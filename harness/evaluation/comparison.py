"""Several systems on the same questions.

One table with paired differences to the first, tables by kind of question, costs, and a plot of quality against cost.

Shape legend: N questions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.files import write_json
from common.records import Answer
from harness.evaluation.answer_scores import (
    costs_table,
    differences_table,
    known_percent_cells,
    masks_of_kinds,
    row_cells,
    script_facts,
)
from harness.evaluation.engine import MeasuredSystem, Measures
from harness.evaluation.judging import judge_costs_table, judge_record, not_judged
from harness.evaluation.plots import axes_of, save
from harness.evaluation.question_files import QuestionFiles
from harness.evaluation.report import REPORT, notes_of, write_pages
from harness.evaluation.settings import Bootstrap, Settings
from harness.evaluation.tables import Cell, Cells, ReportTable
from harness.evaluation.trec import measure_names

QUALITY = ("EM", "F1", "Acc", "recall of gold", "hit", "has-answer recall", "MRR", "Log-Rank")
KINDS_OF = ("EM", "F1", "recall of gold", "has-answer recall")  # also shown by kind of question
PLOTTED = ("EM", "recall of gold", "has-answer recall")
Values = NDArray[np.float64]  # (N,) of one measure, 0 to 1, NaN where it is undefined


def all_systems(measured: Mapping[str, MeasuredSystem]) -> dict[str, tuple[Sequence[Answer], Measures]]:
    """The answers and measures of every system, and of every variant in its study as `system: variant`."""
    systems: dict[str, tuple[Sequence[Answer], Measures]] = {}
    for name, each in measured.items():
        for variant, answers in each.systems.items():
            systems[shown_name(name, each, variant)] = (answers, each.measures[variant])
    return systems


def shown_name(name: str, measured: MeasuredSystem, variant: str) -> str:
    """A system's name, and for a variant in its study `system: variant`."""
    return name if variant == measured.word else f"{name}: {variant}"


def comparison_tables(measured: Mapping[str, MeasuredSystem], settings: Settings) -> list[ReportTable]:
    """Quality with paired differences to the first system, quality by kind of question, and costs.

    Args:
        measured: System -> its results, on the same questions.
        settings: Of the evaluation.
    """
    systems, questions = all_systems(measured), next(iter(measured.values())).questions
    judged = dict.fromkeys(name for each in measured.values() for name in each.judged.measures)
    named = (*QUALITY, *measure_names(settings.min_grade), *judged)
    known = [name for name in named if any(_is_known(each.get(name)) for _, each in systems.values())]
    first, none_N = next(iter(systems)), np.full(len(questions), np.nan)
    values = {name: [measures.get(each, none_N) for each in known] for name, (_, measures) in systems.items()}
    cells = row_cells(values, settings.bootstrap)
    quality = {
        name: [*cells[name], Cell(float(np.mean([len(answer.evidence) for answer in answers])))]
        for name, (answers, _) in systems.items()
    }
    note = (
        "Recall, has-answer recall and MRR: over all of a system's evidence; passages: their mean number. An empty "
        "cell: the system has no reader, the file lacks what the measure needs, or no judge was asked."
    )
    points, title = [f"{name}, points" for name in known], f"Differences to {first}, points"
    tables = [
        ReportTable("quality", "Quality", (*(f"{name} %" for name in known), "passages"), quality, note=note),
        differences_table("differences", title, points, values, first, settings.bootstrap),
    ]
    kinds = masks_of_kinds(questions)
    for place, name in enumerate(known):
        if name in KINDS_OF and len(kinds) > 1:
            of_rows = {row: each[place] for row, each in values.items()}
            tables += kind_tables(name, of_rows, [*measured], kinds, settings.bootstrap)
    return [*tables, costs_table({name: answers for name, (answers, _) in systems.items()})]


def kind_tables(
    name: str,
    values: Mapping[str, Values],
    competing: Sequence[str],
    kinds: Mapping[str, NDArray[np.bool_]],
    bootstrap: Bootstrap,
) -> list[ReportTable]:
    """One measure by kind of question, with a sentence on each kind, and the differences to the first system.

    Args:
        name: Of the measure.
        values: Of every row; the first row is the system to which the others are compared.
        competing: The rows among which the best is named: systems, not their variants.
        kinds: Which questions are of each kind, (N,).
        bootstrap: For the intervals.
    """
    known = {row: each_N for row, each_N in values.items() if not np.isnan(each_N).all()}
    first = next(iter(values))
    counts: dict[str, Cells] = {"questions": [Cell(int(mask_N.sum())) for mask_N in kinds.values()]}
    own = {row: known[row] for row in competing if row in known}
    note = ""
    if len(own) > 1:
        of_kinds = {kind: {row: values_N[mask_N] for row, values_N in own.items()} for kind, mask_N in kinds.items()}
        best = " ".join(f"{kind}: {best_of(of_kind, bootstrap)}" for kind, of_kind in of_kinds.items())
        note = f"By {name}, intervals not corrected for the number of comparisons. {best}"
    cells = row_cells(_by_kind(known, kinds), bootstrap)
    tables = [
        ReportTable(f"{name} by kind", f"{name} % by kind of question", (*kinds,), {**counts, **cells}, note=note)
    ]
    others = {row: v - known[first] for row, v in known.items() if row != first} if first in known else {}
    if others:
        differences = row_cells(_by_kind(others, kinds), bootstrap)
        title = f"Differences to {first} by kind of question, {name}, points"
        signed = frozenset(differences)
        tables.append(ReportTable(f"{name} by kind, differences", title, (*kinds,), differences, signed=signed))
    return tables


def _by_kind(rows: Mapping[str, Values], kinds: Mapping[str, NDArray[np.bool_]]) -> dict[str, list[Values]]:
    """The values of each row, undefined for all questions but those of each kind."""
    return {row: [np.where(mask_N, own_N, np.nan) for mask_N in kinds.values()] for row, own_N in rows.items()}


def best_of(values: Mapping[str, Values], bootstrap: Bootstrap) -> str:
    """A sentence on which system is best: it wins if the interval of its difference to the next one excludes zero.

    Args:
        values: Of every system, on the same questions.
        bootstrap: For the intervals.
    """
    means = {name: 100 * float(np.nanmean(each_N)) for name, each_N in values.items() if not np.isnan(each_N).all()}
    if len(means) < 2:
        return "not measured for two systems."
    best, second = sorted(means, key=lambda name: -means[name])[:2]
    named = f"{best}, {means[best]:.1f}"
    (cell,) = known_percent_cells([values[best] - values[second]], bootstrap)
    if cell is None or cell.interval is None:
        return f"no clear winner; the greatest is {named}, without a question in common with {second}."
    low, high = cell.interval
    behind = f"{cell.value:+.1f} [{low:+.1f}, {high:+.1f}] to {second}"
    return f"{named}, wins, {behind}." if low > 0 else f"no clear winner; the greatest is {named}, {behind}."


def write_comparison(
    folder: Path, measured: Mapping[str, MeasuredSystem], files: QuestionFiles, settings: Settings
) -> None:
    """Write the comparison's report.md, report.csv, report.json, report.html and quality_and_cost.png into a folder.

    Args:
        folder: Exists already.
        measured: System -> its results, on the same questions.
        files: The questions.
        settings: Of the evaluation.
    """
    first = next(iter(measured.values()))
    questions = first.questions
    title = f"Comparison: {len(questions):,} questions of {files.name}"
    facts = [
        *first.facts[:1],
        *(f"{name}: {'; '.join([*each.facts[1:], f'{each.seconds:.0f} s in all'])}" for name, each in measured.items()),
        f"normalization: {settings.normalization}; bootstrap: {settings.bootstrap.resamples:,} resamples, seed "
        f"{settings.bootstrap.seed}",
        *script_facts(questions, settings.normalization),
        *first.judged.facts,
    ]
    judge, record = settings.judge, None
    tables = comparison_tables(measured, settings)
    if judge is None:
        tables.append(not_judged())
    else:
        kinds = dict.fromkeys(kind for each in measured.values() for kind in each.judged.verdicts)
        of_all = {kind: [v for each in measured.values() for v in each.judged.verdicts.get(kind, ())] for kind in kinds}
        tables.append(judge_costs_table(of_all))
        record = judge_record(judge, of_all, {name: each.judged.record["means"] for name, each in measured.items()})
    notes = notes_of(replace(settings, paper=None))  # the paper's figures are in the reports of the systems
    picture = folder / "quality_and_cost.png"
    plot_quality_and_cost(measured, picture)
    cases = [
        [
            replace(case, title=f"{name}: {case.title}")
            for name, each in measured.items()
            for case in each.cases_of(number)
        ]
        for number in range(len(questions))
    ]
    systems = all_systems(measured)
    answers = {name: each for name, (each, _) in systems.items()}
    measures = {name: each for name, (_, each) in systems.items()}
    plots = {"quality and cost": picture.read_bytes()}
    write_pages(folder, title, facts, tables, notes, plots, questions, answers, measures, cases)
    asked = files.record(len(questions), first.read)
    write_json(folder / REPORT, {"questions": asked, "systems": list(measured), "judge": record})


def plot_quality_and_cost(measured: Mapping[str, MeasuredSystem], path: Path) -> None:
    """Quality against seconds per question, one panel per measure; a system's variants have its colour."""
    systems = all_systems(measured)
    shown = [name for name in PLOTTED if any(_is_known(each[name]) for _, each in systems.values())]
    figure, panels = axes_of(len(shown))
    colours = {
        shown_name(name, each, row): f"C{n}" for n, (name, each) in enumerate(measured.items()) for row in each.systems
    }
    for axes, name in zip(panels, shown, strict=True):
        for row, (answers, measures) in systems.items():
            if not _is_known(measures[name]):
                continue
            seconds = [sum(v for key, v in each.costs.items() if key.startswith("seconds/")) for each in answers]
            point = max(float(np.mean(seconds)), 1e-5), 100 * float(np.nanmean(measures[name]))
            size, marker = (90, "o") if row in measured else (30, "x")
            axes.scatter(*point, color=colours[row], s=size, marker=marker, label=row)
        axes.set(xscale="log", xlabel="seconds per question", ylabel=f"{name}, %")
    save(figure, panels, path)


def _is_known(values_N: Values | None) -> bool:
    return values_N is not None and not np.isnan(values_N).all()
