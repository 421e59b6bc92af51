"""Tables of figures: one description from which both the CSV and the Markdown are written."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

CSV_COLUMNS = ("table", "row", "column", "value", "interval_low", "interval_high", "source")


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure with its 95% interval; NaN where there is nothing to average; an int is a count."""

    value: float
    interval: tuple[float, float] | None = None


Cells = Sequence[Cell | None]  # None: no such figure


@dataclass(slots=True)
class Table:
    """Named rows of figures.

    Args:
        name: How the CSV calls it.
        title: Its heading.
        columns: Names of the figures, with their units.
        rows: Ours.
        paper: The same columns as a paper prints them.
        note: What a reader must know to compare.
        decimals: Digits after the point.
        signed: Rows or columns that are differences, printed with their sign.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: Mapping[str, Cells]
    paper: Mapping[str, Cells] = field(default_factory=dict)
    note: str = ""
    decimals: int = 2
    signed: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name, cells in [*self.rows.items(), *self.paper.items()]:
            if len(cells) != len(self.columns):
                raise ValueError(f"row {name!r} has {len(cells)} cells for {len(self.columns)} columns")


def tables_csv(tables: Sequence[Table]) -> str:
    """One line per figure; `source` says whether it is ours or the paper's."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for table in tables:
        for source, rows in ("ours", table.rows), ("paper", table.paper):
            for name, cells in rows.items():
                for column, cell in zip(table.columns, cells, strict=True):
                    if cell is not None:
                        ends = [_digits(end) for end in cell.interval] if cell.interval else ["", ""]
                        writer.writerow([table.name, name, column, _digits(cell.value), *ends, source])
    return text.getvalue()


def tables_markdown(title: str, facts: Sequence[str], tables: Sequence[Table], notes: str) -> str:
    """The report for people: facts, one Markdown table after the other, notes."""
    lines = [f"# {title}", "", *(f"- {fact}" for fact in facts), ""]
    for table in tables:
        lines += [f"## {table.title}", "", *_table(table), ""]
        if table.note:
            lines += [table.note, ""]
    return "\n".join([*lines, notes]).rstrip() + "\n"


def _table(table: Table) -> list[str]:
    head = ["", *table.columns]
    body = [[name, *_shown(table, name, cells)] for name, cells in table.rows.items()]
    body += [[f"*paper:* {name}", *_shown(table, "", cells)] for name, cells in table.paper.items()]
    rule = ["---"] + ["---:"] * len(table.columns)
    return ["| " + " | ".join(cells) + " |" for cells in [head, rule, *body]]


def _shown(table: Table, row: str, cells: Cells) -> list[str]:
    signed = [bool({row, column} & table.signed) for column in table.columns]
    specs = [f"{'+' if sign else ''}.{table.decimals}f" for sign in signed]
    return [_figure(cell, spec) for cell, spec in zip(cells, specs, strict=True)]


def _figure(cell: Cell | None, spec: str) -> str:
    if cell is None or math.isnan(cell.value):
        return ""
    if isinstance(cell.value, int):
        return f"{cell.value:,}"
    value = f"{cell.value:{spec}}"
    return value if cell.interval is None else f"{value} [{', '.join(f'{end:{spec}}' for end in cell.interval)}]"


def _digits(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"
