"""Tables as HTML have the cells of the Markdown report."""

import csv
import io
import math
import re
from html import unescape

from markdown_it import MarkdownIt

from harness.evaluation.tables import Cell, ReportTable, not_measured, tables_csv, tables_html, tables_markdown

NAN = math.nan


def test_tables_have_the_cells_of_the_markdown_report() -> None:
    nothing, none = not_measured("every set holds an answer"), not_measured("none refused")
    tables = [
        ReportTable("first", "One & <two>", ("x <b>%</b>", "y"), {
            "a": [Cell(1234.5, (-1.0, 2.0)), Cell(1234)],
            "both": [nothing, nothing],
            "one": [Cell(NAN), none],
        }, {"P": [Cell(2.0), None]}, note="A note <i>.\n\nAnother.", signed=frozenset({"y"})),
        ReportTable("first", "Silent", ("x",), {"a": [nothing]}, {"P": [Cell(2.0)]}),
        ReportTable("Second (of all)", "Only silent", ("x", "y"), {"a": [nothing] * 2}),
    ]  # fmt: skip
    lines = tables_markdown("T", [], tables, "").replace("*paper:*", "paper:").splitlines()
    expected = [unescape(line).strip("|").split("|") for line in lines if line.startswith("|") and "---" not in line]
    sentence = "not measured: every set holds an answer."
    expected += [[sentence]] * lines.count(sentence)
    html = tables_html(tables)
    rows = [re.findall(r"<t[dh].*?>(.*?)</t[dh]>", row) for row in re.findall(r"<tr.*?</tr>", html)]
    found = [[unescape(re.sub("<.*?>", "", cell)) for cell in row if cell] for row in rows]
    assert sorted(found) == sorted([cell.strip() for cell in row if cell.strip()] for row in expected)
    assert html.count('<tr class="paper">') == 2
    assert '<p class="note">A note &lt;i&gt;.</p><p class="note">Another.</p>' in html


def test_names_from_data_are_names_in_every_format() -> None:
    row, column, note = "=HYPERLINK(1)", "![c](http://e.example)|", "# <img src=x> \x1b[2J"
    table = ReportTable(row, f"{row} {column}", (column,), {row: [Cell(-1.5)], "b": [not_measured(note)]}, note=note)
    (head, first, second) = csv.reader(io.StringIO(tables_csv([table]), newline=""))
    assert len(head) == len(first) == 8
    assert [first[:4], second[7]] == [[f"'{row}", f"'{row}", column, "-1.5"], f"not measured: {note[:-4]}\\x1b[2J"]
    page = MarkdownIt("commonmark").enable("table").render(tables_markdown(column, [note], [table], note))
    assert {*re.findall(r"<(\w+)", page)} == {"h1", "h2", "ul", "li", "p", "table", "thead", "tbody", "tr", "th", "td"}
    assert page.count("<h1>") == page.count("<table>") == 1
    assert page.count("<td") == 4
    assert not {"\x1b", "<img"} & {*re.split(r"(\x1b|<img)", page + tables_html([table]))}
