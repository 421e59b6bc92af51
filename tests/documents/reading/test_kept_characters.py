"""What a reader must neither drop nor take for markup, each kind with its siblings."""

import pytest

from documents.markdown_writing import to_markdown
from documents.reading.any_file import read_document
from documents.records import Document, Table


def text_of(document: Document) -> str:
    """All texts of a document, blocks between bars."""
    parts = (
        " / ".join(", ".join(row) for row in block.rows) if isinstance(block, Table) else getattr(block, "text", "")
        for block in document.blocks
    )
    return " | ".join((document.title, *parts))


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("a.txt", "--host <hostname> __init__ 2*3*4 a<b and c>d &amp; [1](x) 1986\\.", None),
        ("a.txt", "#include <stdio.h>\n# a comment", "#include <stdio.h> # a comment"),
        ("a.txt", "<p>no page</p>", None),
        ("a.txt", "name   volts\nmotor  24", None),
        ("a.txt", "* one *a*\n* two", None),
        ("a.txt", "wrapped\nprose.  More", "wrapped prose. More"),
        ("a.txt", "- a\n  b\n- c", "- a b\n- c"),
        ("a.txt", "Pump\n====\n\nUse\n---\nPress.\x0cEnd\n---", "Pump | Use | Press. | End"),
        ("a.md", "--host <hostname>, List<String>, List<S> x, a<b and c>d, <?php 1 ?>, `a <x>`", None),
        ("a.md", "x <b>bold</b> <br> y <a href='u'>z</a> <s>gone</s>", "x bold y z"),
        ("a.md", "<hostname>\n\n<div>see <serial> and <i>it</i></div>", "<hostname> | see <serial> and it"),
        ("a.md", "|a|b|\n|-|-|\n|1|2|3\\|x|`c`|\n|4|", "a, b, ,  / 1, 2, 3|x, c / 4, , , "),
        ("a.md", "> |a|\n> |-|\n> |1|2|", "a,  / 1, 2"),
        ("README.md", "<h1 align=center>Pump</h1>\n\n- *a*\n\n## Use\n", "Pump | - a | Use"),
        ("README.md", "<!-- x -->\n<p align=center>Pump</p>\n\n# T\n\nx *y*", "T | Pump | x y"),
        ("a.html", "<p>Price <b class=sr-only>24 euros</b><i aria-hidden=true>€24</i>.", "Price 24 euros."),
        ("a.html", "<p><i><b aria-hidden=true>4.1</b></i><b class=sr-only>4 of 5</b> stars", "4 of 5 stars"),
        ("a.html", "<p>Net <b aria-label='5 kilograms'><i aria-hidden=true>5 kg</i></b>", "Net 5 kg"),
        ("a.html", "<p>End <b class=sr-only>Close</b><i aria-hidden=true>&times;</i>", "End"),
        ("a.html", "<ol><li>a<li value=7>b<li>c</ol>", "1. a\n7. b\n8. c"),
        ("a.html", "<ol reversed><li>a<ul><li>x</ul><li>b</ol>", "2. a\n  - x\n1. b"),
        ("a.html", "<ol type=a start=3><li>x<li type=I>y</ol>", "- c. x\n- IV. y"),
        ("a.html", "<ol style='list-style: lower-roman'><li>x</ol>", "- i. x"),
        ("a.html", "<p>x<iframe srcdoc='<p>b &amp;lt;c'></iframe>d", "x | b <c | d"),
        ("a.html", "<table><tr><th>a<th>b</tr><td>1<td>2<tr><td>3<td>4</tr><form><tr><td>5<td>6</tr></form></table>",
         "a, b / 1, 2 / 3, 4 / 5, 6"),
    ],
)  # fmt: skip
def test_every_character_that_is_shown_stays(name: str, given: str, text: str | None) -> None:
    title, _, found = text_of(read_document(given.encode(), name)).partition(" | ")
    expected = given.replace("`", "") if text is None else text
    assert f"{title} | {found}" == expected if expected.startswith(f"{title} | ") else found == expected


def test_what_does_not_stay_is_counted() -> None:
    for name, given, left_out in (
        ("a.html", "<table>loose<tr><td>1<td>2<tr>x<td>3</table>", "text between the cells of tables left out: 2 x, 2"),
        ("a.html", "<table><tr><td>1<td>2<tr><td><iframe srcdoc='<p>b c'></iframe><td>3</table>", "left out: 1 x, 2"),
    ):  # fmt: skip
        assert any(left_out in line for line in read_document(given.encode(), name).left_out), given


@pytest.mark.parametrize(
    "title", ["(anonymous)", "untitled", "Untitled Document", "Microsoft Word - x.doc", "Document"]
)
def test_what_programs_fill_in_is_no_title(title: str) -> None:
    assert read_document(f"<title>{title}</title><p>x".encode(), "pump.html").title == "pump"


def test_plain_text_is_written_and_read_again() -> None:
    document = read_document(b"# a\n\n<b>x</b> *y*\n\n  1  2\n  3  4\n", "a.txt")
    assert read_document(to_markdown(document).encode(), "a.md").blocks == document.blocks
