"""Result tables: one data structure, written as CSV, Markdown and HTML.

A cell without a value holds the reason.
"""

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from common.shown_text import csv_cell, html, markdown

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
class ReportTable:
    """A table with named rows and columns.

    A row whose cells all lack a value for one reason is printed as that reason, and so is a table.

    Args:
        name: Value of the CSV's `table` column.
        title: Markdown heading and HTML caption.
        columns: Column names, with units.
        rows: Our results.
        paper: A paper's published results, in the same columns.
        note: Text below the table in Markdown and HTML.
        decimals: Digits after the decimal point.
        signed: Rows or columns that are differences, printed with their sign.
        column_decimals: Digits after the decimal point in columns where they differ.
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

    def __post_init__(self) -> None:
        for name, cells in [*self.rows.items(), *self.paper.items()]:
            if len(cells) != len(self.columns):
                raise ValueError(f"row {name!r} has {len(cells)} cells for {len(self.columns)} columns")


def tables_csv(tables: Sequence[ReportTable]) -> str:
    """One line per cell; `source` is `ours` or `paper`, `note` the reason why there is no value.

    A text that a spreadsheet would take for a formula is marked (`common.shown_text.csv_cell`).
    """
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
                        texts = map(csv_cell, (table.name, name, column))
                        writer.writerow([*texts, _digits(cell.value), *ends, source, csv_cell(note)])
    return text.getvalue()


def tables_markdown(title: str, facts: Sequence[str], tables: Sequence[ReportTable], notes: str) -> str:
    """A Markdown report: facts, tables, notes."""
    lines = [f"# {markdown(title)}", "", *(f"- {markdown(fact)}" for fact in facts), ""]
    for table in tables:
        lines += [f"## {markdown(table.title)}", "", *_table(table), ""]
        if table.note:
            lines += [*map(markdown, table.note.splitlines()), ""]
    return "\n".join([*lines, *map(markdown, notes.splitlines())]).rstrip() + "\n"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table of Markdown texts: first column left-aligned, the others right-aligned."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return ["| " + " | ".join(cells) + " |" for cells in [head, rule, *rows]]


def tables_html(tables: Sequence[ReportTable]) -> str:
    """The tables as HTML, with the cells of the Markdown report; every table has a caption.

    Rows of a paper have the class `paper`, cells without a value the class `absent`.
    """
    return "\n".join(map(_html_table, tables))


def html_paragraphs(text: str, css_class: str) -> str:
    """Blank lines separate the paragraphs."""
    return "".join(f'<p class="{css_class}">{html(part)}</p>' for part in re.split(r"\n\s*\n", text.strip()) if part)


def _html_table(table: ReportTable) -> str:
    reason, rows = _printed(table)
    width = len(table.columns) + 1
    body = [f'<tr><td class="absent" colspan="{width}">{html(reason)}</td></tr>'] if reason else []
    for name, cells, of_paper in rows:
        css_class, mark = (' class="paper"', "<em>paper:</em> ") if of_paper else ("", "")
        body.append(f'<tr{css_class}><th scope="row">{mark}{html(name)}</th>{_html_cells(cells)}</tr>')
    columns = "".join(f'<th scope="col">{html(column)}</th>' for column in table.columns)
    return "\n".join(
        [
            '<div class="table"><div class="scroll" tabindex="0"><table>',
            f"<caption>{html(table.title)}</caption>",
            *([f"<thead><tr><td></td>{columns}</tr></thead>"] if rows else []),
            "<tbody>",
            *body,
            "</tbody></table></div>",
            f"{html_paragraphs(table.note, 'note')}</div>",
        ]
    )


def _html_cells(cells: Sequence[str]) -> str:
    """A reason that stands for the whole row spans it."""
    if len(cells) > 1 and cells[0].startswith(_NOT_MEASURED) and not any(cells[1:]):
        return f'<td class="absent" colspan="{len(cells)}">{html(cells[0])}</td>'
    absent = [' class="absent"' if cell.startswith(_NOT_MEASURED) else "" for cell in cells]
    return "".join(f"<td{css_class}>{html(cell)}</td>" for css_class, cell in zip(absent, cells, strict=True))


def _table(table: ReportTable) -> list[str]:
    reason, printed = _printed(table)
    rows = [[f"{'*paper:* ' * of_paper}{markdown(name)}", *map(markdown, cells)] for name, cells, of_paper in printed]
    lines = [markdown(reason)] if reason else []
    head = ["", *map(markdown, table.columns)]
    return lines + [""] * bool(lines and rows) + (markdown_table(head, rows) if rows else [])


def _printed(table: ReportTable) -> tuple[str, list[tuple[str, list[str], bool]]]:
    """The sentence that stands for our rows if all lack a value for one reason, else empty; and the rows.

    A row is its name, its cells, and whether it is the paper's.
    """
    reason = _only_reason([cell for cells in table.rows.values() for cell in cells])
    ours = [] if reason else [(name, _formatted(table, name, cells), False) for name, cells in table.rows.items()]
    paper = [(name, _formatted(table, "", cells), True) for name, cells in table.paper.items()]
    return f"{_NOT_MEASURED}{reason}." if reason else "", ours + paper


def _only_reason(cells: Cells) -> str:
    """The reason that all cells share; empty if one has a value or another reason."""
    reasons = {cell.reason if cell else "" for cell in cells}
    return reasons.pop() if len(reasons) == 1 else ""


def _formatted(table: ReportTable, row: str, cells: Cells) -> list[str]:
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
