"""The tables of judged evaluations.

Verdicts on one system, on several, and their costs.

Shape legend: N questions, R rows.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from common.records import Question
from harness.evaluation.answer_scores import differences_table, masks_of_kinds, row_cells
from harness.evaluation.judge import Verdict
from harness.evaluation.judgements import Judgements
from harness.evaluation.settings import Bootstrap
from harness.evaluation.tables import Cell, Cells, ReportTable, not_measured

NO_JUDGE = "no judge is configured; type --judge.llm with a language model"
NO_READER = "the system has no reader"
NOT_ASKED_FOR = "the judge is not asked for it (--judge.verdicts)"

CORRECT, HALF = "answers correct %", "answers correct %, half credit"
_COSTS = {  # cost of a verdict -> its column
    "model_calls": "calls", "repairs": "repairs", "cached_calls": "cached calls", "tokens": "tokens read",
    "reply_tokens": "tokens written", "usd": "US dollars", "seconds": "seconds",
}  # fmt: skip


def not_judged() -> ReportTable:
    """The table of an evaluation without a judge."""
    return ReportTable("judged", "Judged by a language model", ("mean",), {"ours": [not_measured(NO_JUDGE)]})


def retrieval_rows(k: int) -> tuple[str, str]:
    """The rows of the judged hit rate and precision of the first k passages."""
    return f"judged H@{k} %", f"judged P@{k} %"


def judged_table(judged: Judgements, failed: Mapping[str, int], bootstrap: Bootstrap) -> ReportTable:
    """The means of one system.

    Args:
        judged: Its values and reasons.
        failed: Row -> number of failed verdicts.
        bootstrap: For the intervals.
    """
    rows: dict[str, Cells] = {}
    (cells,) = row_cells({"": [*judged.values.values()]}, bootstrap, 100).values()
    for name, cell in zip(judged.values, cells, strict=True):
        count = Cell(int((~np.isnan(judged.values[name])).sum()))
        rows[name] = [cell or not_measured("all verdicts failed"), count, Cell(failed[name])]
    rows |= {name: [not_measured(reason)] * 3 for name, reason in judged.reasons.items()}
    note = (
        f"{CORRECT}: FreshQA's accuracy as DMQR-RAG has it scored; with half credit for partly correct answers: HiQA's "
        "accuracy. H@k: a relevant passage is among the first k; P@k: relevant passages among the first k, divided by "
        "k. A question whose verdict failed does not count."
    )
    return ReportTable(
        "judged", "Judged by a language model", ("mean", "questions", "failed verdicts"), rows, note=note
    )


def kinds_table(judged: Judgements, questions: Sequence[Question], bootstrap: Bootstrap) -> list[ReportTable]:
    """Judged answers by kind of question, the most frequent kind first.

    No table if there is one kind or no judged answer.

    Args:
        judged: Of one system.
        questions: Of the system.
        bootstrap: For the intervals.
    """
    kinds = masks_of_kinds(questions)
    if CORRECT not in judged.values or len(kinds) < 2:
        return []
    values = {
        kind: [np.where(mask_N, judged.values[row], np.nan) for row in (CORRECT, HALF)]
        for kind, mask_N in kinds.items()
    }
    cells = row_cells(values, bootstrap, 100)
    rows: dict[str, Cells] = {kind: [Cell(int(mask_N.sum())), *cells[kind]] for kind, mask_N in kinds.items()}
    return [
        ReportTable("judged by kind", "Answers judged correct, by kind of question", ("questions", CORRECT, HALF), rows)
    ]


def compared_tables(systems: Mapping[str, Judgements], bootstrap: Bootstrap) -> list[ReportTable]:
    """Judged means of several systems, and paired differences to the first.

    Args:
        systems: System -> its values.
        bootstrap: For the intervals.
    """
    names = [*dict.fromkeys(name for judged in systems.values() for name in judged.values)]
    if not names:
        return []
    first, title = next(iter(systems)), "Judged by a language model"
    known_N = next(values_N for judged in systems.values() for values_N in judged.values.values())
    unknown_N = np.full_like(known_N, np.nan)
    values = {name: [judged.values.get(each, unknown_N) for each in names] for name, judged in systems.items()}
    note = "An empty cell: the system has no reader, or the judge was not asked."
    heading = f"{title}: differences to {first}"
    return [
        ReportTable("judged", title, tuple(names), row_cells(values, bootstrap, 100), note=note),
        differences_table("judged, differences", heading, names, values, first, bootstrap, whole=100),
    ]


def costs_table(verdicts: Mapping[str, Sequence[Verdict]]) -> ReportTable:
    """What the verdicts cost: calls, tokens, US dollars, seconds; equal requests count once.

    Args:
        verdicts: What was judged -> its verdicts.
    """
    rows = {name: _costs(each) for name, each in verdicts.items()}
    rows["all"] = _costs([each for of_kind in verdicts.values() for each in of_kind])
    columns = ("verdicts", "failed", *_COSTS.values())
    note = (
        "Each request is asked once, also if several systems need its verdict, which is then charged to each of them. "
        "Calls: repairs included. Cached calls: answered from the response cache, with the costs of the first time. No "
        "US dollars: the model has no price in its config. Seconds: shares of the time of batches."
    )
    counts = ("calls", "repairs", "cached calls", "tokens read", "tokens written")
    return ReportTable("judge costs", "Costs of judging", columns, rows, note=note, decimals=1,
                 column_decimals=dict.fromkeys(counts, 0) | {"US dollars": 4})  # fmt: skip


def _costs(verdicts: Iterable[Verdict]) -> list[Cell | None]:
    asked = [*{each.key: each for each in verdicts}.values()]
    failed = sum(each.fields is None for each in asked)
    cells: list[Cell | None] = [Cell(len(asked)), Cell(failed)]
    for name in _COSTS:
        found = [each.seconds if name == "seconds" else each.costs.get(name) for each in asked]
        known = [each for each in found if each is not None]
        total = sum(known)
        whole = name not in ("usd", "seconds")
        cells.append((Cell(int(total)) if whole else Cell(total)) if known or whole else None)
    return cells
