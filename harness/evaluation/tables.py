"""Result tables: one data structure, written as CSV and as Markdown.  What could not be measured has its reason in the cell."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

CSV_COLUMNS = ("table", "row", "column", "value", "interval_low", "interval_high", "source", "note")
_NOT_MEASURED = "not measured: "


@dataclass(frozen=True, slots=True)
class Cell:
    """A number with its 95% interval; NaN for the mean of no values; an int is a count."""

    value: float
    interval: tuple[float, float] | None = None
    reason: str = ""  # why there is no value; see `not_measured`


def not_measured(reason: str) -> Cell:
    """A cell without a value, because the data have nothing to measure.

    Args:
        reason: What the data lack, e.g. `every set holds an answer`; printed after "not measured: ".
    """
    return Cell(math.nan, reason=reason)


Cells = Sequence[Cell | None]  # None: an empty cell


@dataclass(slots=True)
class Table:
    """A table with named rows and columns.

    A row whose cells all lack a value for one reason is printed as that reason, and so is a table.

    Args:
        name: Value of the CSV's `table` column.
        title: Markdown heading.
        columns: Column names, with units.
        rows: Our results.
        paper: A paper's published results, in the same columns.
        note: Text below the Markdown table.
        decimals: Digits after the decimal point.
        signed: Rows or columns that are differences, printed with their sign.
        column_decimals: Digits after the decimal point in columns where they differ.
        published: Columns with a paper's published results.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: Mapping[str, Cells]
    paper: Mapping[str, Cells] = field(default_factory=dict)
    note: str = ""
    decimals: int = 2
    signed: frozenset[str] = frozenset()
    column_decimals: Mapping[str, int] = field(default_factory=dict)
    published: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name, cells in [*self.rows.items(), *self.paper.items()]:
            if len(cells) != len(self.columns):
                raise ValueError(f"row {name!r} has {len(cells)} cells for {len(self.columns)} columns")


def tables_csv(tables: Sequence[Table]) -> str:
    """One line per cell; `source` is `ours` or `paper`, `note` the reason why there is no value."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for table in tables:
        for source, rows in ("ours", table.rows), ("paper", table.paper):
            for name, cells in rows.items():
                for column, cell in zip(table.columns, cells, strict=True):
                    if cell is not None:
                        ends = [_digits(end) for end in cell.interval] if cell.interval else ["", ""]
                        note = _NOT_MEASURED + cell.reason if cell.reason else ""
                        by = "paper" if column in table.published else source
                        writer.writerow([table.name, name, column, _digits(cell.value), *ends, by, note])
    return text.getvalue()


def tables_not_measured(tables: Sequence[Table]) -> dict[str, dict[str, dict[str, str]]]:
    """The reasons of all cells without a value: table -> row -> column -> reason."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for table in tables:
        for name, cells in table.rows.items():
            reasons = {c: cell.reason for c, cell in zip(table.columns, cells, strict=True) if cell and cell.reason}
            if reasons:
                found.setdefault(table.name, {})[name] = reasons
    return found


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
    reason = _only_reason([cell for cells in table.rows.values() for cell in cells])
    lines, rows = [], [[name, *_formatted(table, name, cells)] for name, cells in table.rows.items()]
    if reason:
        lines, rows = [_NOT_MEASURED + reason + "."], []
    rows += [[f"*paper:* {name}", *_formatted(table, "", cells)] for name, cells in table.paper.items()]
    return lines + [""] * bool(lines and rows) + (markdown_table(["", *table.columns], rows) if rows else [])


def _only_reason(cells: Cells) -> str:
    """The reason that all cells share; empty if one has a value or another reason."""
    reasons = {cell.reason if cell else "" for cell in cells}
    return reasons.pop() if len(reasons) == 1 else ""


def _formatted(table: Table, row: str, cells: Cells) -> list[str]:
    reason = _only_reason(cells)
    if reason:
        return [_NOT_MEASURED + reason] + [""] * (len(cells) - 1)
    signed = [bool({row, column} & table.signed) for column in table.columns]
    decimals = [table.column_decimals.get(column, table.decimals) for column in table.columns]
    specs = [f"{'+' if sign else ''}.{digits}f" for sign, digits in zip(signed, decimals, strict=True)]
    return [_cell(cell, spec) for cell, spec in zip(cells, specs, strict=True)]


def _cell(cell: Cell | None, spec: str) -> str:
    if cell is not None and cell.reason:
        return _NOT_MEASURED + cell.reason
    if cell is None or math.isnan(cell.value):
        return ""
    if isinstance(cell.value, int):
        return f"{cell.value:,}"
    value = f"{cell.value:{spec}}"
    return value if cell.interval is None else f"{value} [{', '.join(f'{end:{spec}}' for end in cell.interval)}]"


def _digits(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"
