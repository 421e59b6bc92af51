"""Texts of data in reports: nothing in them is obeyed, and each reads as it is."""

import csv
import html as standard_html
import io
import re

import pytest
from markdown_it import MarkdownIt

from common.shown_text import csv_cell, html, markdown, markdown_code, terminal

ORDINARY = ("recall@5, P_RE: 52.1 [50.2, 54.0]", "-1.50 [-2.00, -1.00]", "w/o gqr, q* > 1 & q < 2", "2 * 3", "क‍ष AT&T")
HOSTILE = (
    "=1+1", " =cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "'=1", "''=1", "\uff1d1", "\n=1", "'\n", "'plain",
    "<script>alert(1)</script>", "<img src=x onerror=y>", "<!-- c", "</td>", "<https://e.example>", "&lt;b&gt; &#x41;",
    "[c](http://e.example)", "![i](https://e.example/i.png)", "[a][b]", "[a]: http://e.example", "[ ] do",
    "www.e.example", "http://e.example", "a|b", "a\\|b", "ends in \\", "`code` *em* __b__ ~~s~~ _x_ snake_case_",
    "# h", "> q", "- i", "+ i", "12. i", "3) i", "---", "===", "***", "```", "~~~", "a\nb\r\nc",
    'quoted "text", and more',
)  # fmt: skip
CONTROLS = {"\x1b[2J": "\\x1b[2J", "a\rb": "a\\x0db", "\x9b1m": "\\x9b1m", "a\u202eb\u2066": "a\\u202eb\\u2066",
            "\x00\x07\x7f": "\\x00\\x07\\x7f", "\u2028": "\\u2028", "\ud800": "\\ud800"}  # fmt: skip


@pytest.mark.parametrize("text", [*ORDINARY, *HOSTILE])
def test_no_format_obeys_a_text_and_each_reads_as_the_text(text: str) -> None:
    given = text.replace("\r\n", "\n")
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerow([csv_cell(text), "next"])
    cell, after = next(csv.reader(io.StringIO(written.getvalue(), newline="")))
    marked = cell.startswith("'") and csv_cell(cell[1:]) == cell
    assert (cell[1:] if marked else cell, after) == (given, "next")
    assert not re.match(r"\s*[=+\-@\uff1d\t\n]", cell)

    line = " ".join(text.split())
    for before in ("", "- ", "# ", "| a |\n| --- |\n| "):
        page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(f"{before}{markdown(text)}")
        shown = re.sub(r"</?(p|ul|li|h1|table|thead|tbody|tr|t[hd])>|\n", "", page)
        assert "<" not in shown
        assert standard_html.unescape(shown).strip() == ("a" if "table" in page else "") + line
    assert "://" not in markdown(text)  # the pages of a code host make links of bare addresses, too
    assert MarkdownIt("commonmark").render(f"`{markdown_code(text)}`").count("</code>") == 1
    assert standard_html.unescape(html(text)) == terminal(text) == given
    assert not set("<>\"'") & set(html(text))


def test_ordinary_texts_stay_as_they_are_in_markdown() -> None:
    assert [markdown(text) for text in ORDINARY[:2]] == list(ORDINARY[:2])
    assert markdown(ORDINARY[2]) == "w/o gqr, q\\* > 1 & q < 2"


@pytest.mark.parametrize(("text", "shown"), CONTROLS.items())
def test_control_characters_are_named(text: str, shown: str) -> None:
    assert terminal(text) == shown
    assert csv_cell(text) == shown
    assert html(text) == shown
    assert markdown(text).replace("\\\\", "\\") == shown
