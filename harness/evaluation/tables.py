"""Result tables: one data structure, written as CSV and as Markdown."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

CSV_COLUMNS = ("table", "row", "column", "value", "interval_low", "interval_high", "source")


@dataclass(frozen=True, slots=True)
class Cell:
    """A number with its 95% interval; NaN for the mean of no values; an int is a count."""

    value: float
    interval: tuple[float, float] | None = None


Cells = Sequence[Cell | None]  # None: an empty cell


@dataclass(slots=True)
class Table:
    """A table with named rows and columns.

    Args:
        name: Value of the CSV's `table` column.
        title: Markdown heading.
        columns: Column names, with units.
        rows: Our results.
        paper: A paper's published results, in the same columns.
        note: Text below the Markdown table.
        decimals: Digits after the decimal point.
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
    """One line per cell; `source` is `ours` or `paper`."""
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
    """A Markdown report: facts, tables, notes."""
    lines = [f"# {title}", "", *(f"- {fact}" for fact in facts), ""]
    for table in tables:
        lines += [f"## {table.title}", "", *_table(table), ""]
        if table.note:
            lines += [table.note, ""]
    return "\n".join([*lines, notes]).rstrip() + "\n"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table: first column left-aligned, the others right-aligned."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return ["| " + " | ".join(cells) + " |" for cells in [head, rule, *rows]]


def _table(table: Table) -> list[str]:
    rows = [[name, *_formatted(table, name, cells)] for name, cells in table.rows.items()]
    rows += [[f"*paper:* {name}", *_formatted(table, "", cells)] for name, cells in table.paper.items()]
    return markdown_table(["", *table.columns], rows)


def _formatted(table: Table, row: str, cells: Cells) -> list[str]:
    signed = [bool({row, column} & table.signed) for column in table.columns]
    specs = [f"{'+' if sign else ''}.{table.decimals}f" for sign in signed]
    return [_cell(cell, spec) for cell, spec in zip(cells, specs, strict=True)]


def _cell(cell: Cell | None, spec: str) -> str:
    if cell is None or math.isnan(cell.value):
        return ""
    if isinstance(cell.value, int):
        return f"{cell.value:,}"
    value = f"{cell.value:{spec}}"
    return value if cell.interval is None else f"{value} [{', '.join(f'{end:{spec}}' for end in cell.interval)}]"


def _digits(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"
