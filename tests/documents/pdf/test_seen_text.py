"""What a PDF page shows is read: values of forms and notes, words by their gaps; and what is turned is no heading."""

from types import SimpleNamespace
from typing import Any

import pytest

from documents.fidelity import shares
from documents.markdown_writing import to_markdown
from documents.pdf.hyphenation import joined
from documents.pdf.margin_notes import margin_notes
from documents.pdf.page import Box
from documents.reading.pdf_reading import parse_pdf
from documents.reading.raw_text import raw_text
from documents.records import Heading
from documents.segments.chunking import plain_text
from tests.helpers.pdf_pages import Draw, both, pdf, text_page

BODY = text_page(
    [(60, 100 + 14 * at, f"Line {at} of the page has several words in it", "Helvetica", 10) for at in range(9)]
)


def text_of(data: bytes) -> str:
    return to_markdown(parse_pdf(data, "a.pdf"))


def form(canvas: Any) -> None:
    field = canvas.acroForm
    for at, label in enumerate(("Voltage:", "Remarks:", "Colour:", "Size:")):
        canvas.drawString(60, 300 - 40 * at, label)
    field.textfield(name="v", value="24 volts", x=160, y=294, width=120, height=18, fontSize=10)
    field.textfield(
        name="r", value="one\nof two", x=160, y=250, width=120, height=30, fieldFlags="multiline", fontSize=10
    )
    field.choice(name="c", value="blue", options=["red", "blue"], x=160, y=214, width=90, height=18)
    field.listbox(name="s", value="large", options=["large", "small"], x=160, y=174, width=90, height=30)
    field.checkbox(name="k", checked=True, x=60, y=150, size=12)
    canvas.drawString(80, 152, "Agreed")
    field.checkbox(name="l", checked=False, x=60, y=130, size=12)
    canvas.drawString(80, 132, "Later")
    canvas.freeTextAnnotation("A free note", DA="0 g /Helv 10 Tf", Rect=(60, 90, 200, 110))
    canvas.textAnnotation("sticky words", Rect=(300, 90, 320, 110))


@pytest.mark.parametrize("drawn", [b"/AP <<", b"/XP <<"], ids=["with looks", "without looks"])
def test_values_of_forms_and_notes_stand_where_they_are_seen(drawn: bytes) -> None:
    data = pdf(both(BODY, form)).replace(b"/AP <<", drawn)
    document = parse_pdf(data, "a.pdf")
    text = to_markdown(document)
    expected = ("Voltage: 24 volts", "of two", "Colour: blue", "large", "[x] Agreed", "[ ] Later", "A free note")
    assert [part for part in expected if part not in text] == []
    assert "small" not in text
    assert [line for line in document.left_out if line.startswith("comments left out: 1 x, 2 words")]
    assert shares(raw_text(data, 9), plain_text(document)[0])["lost"] == 0
    assert "24 volts" in raw_text(data, 9)


def turned(text: str, size: float, angle: float) -> Draw:
    def draw(canvas: Any) -> None:
        canvas.saveState()
        canvas.translate(30, 200)
        canvas.rotate(angle)
        canvas.setFont("Helvetica-Bold", size)
        canvas.drawString(0, 0, text)
        canvas.restoreState()

    return draw


@pytest.mark.parametrize(("size", "angle"), [(20, 90), (60, 45), (30, -90), (24, 180)])
def test_turned_text_is_no_title_and_no_heading(size: float, angle: float) -> None:
    stamp = turned("DRAFT of it", size, angle)
    title = text_page([(60, 60, "The Title", "Helvetica-Bold", 16)])
    document = parse_pdf(pdf(both(stamp, title, BODY), *[both(stamp, BODY)] * 2), "a.pdf")
    assert document.title == "The Title"
    assert not [block for block in document.blocks if isinstance(block, Heading) and "DRAFT" in block.text]
    assert to_markdown(document).count("DRAFT") + sum("DRAFT" in line for line in document.left_out) <= 2


@pytest.mark.parametrize(
    ("font", "size", "gap"), [("Helvetica", 10, 1.6), ("Times-Roman", 12, 1.6), ("Courier", 12, 1.6)]
)
def test_words_that_stand_a_narrow_gap_apart_are_two(font: str, size: float, gap: float) -> None:
    def draw(canvas: Any) -> None:
        x = 60.0
        canvas.setFont(font, size)
        for word in ("as", "required", "per", "legal", "Will", "III", "and", "a10", "mm"):
            canvas.drawString(x, 100, word)
            x += canvas.stringWidth(word, font, size) + gap

    assert "as required per legal Will III and a10" in text_of(pdf(both(BODY, draw)))


@pytest.mark.parametrize("space", [0, 0.5, 1.6, 3, 6])
def test_letters_that_are_set_apart_are_one_word(space: float) -> None:
    def draw(canvas: Any) -> None:
        text = canvas.beginText(60, 100)
        text.setFont("Helvetica", 10)
        text.setCharSpace(space)
        text.textOut("IMPORTANT for you and me")
        canvas.drawText(text)

    assert "IMPORTANT for you and me" in text_of(pdf(both(BODY, draw)))


def test_single_signs_in_a_row_are_not_joined() -> None:
    rows = [(60.0 + 5 * at, 500.0, sign, "Helvetica", 10.0) for at, sign in enumerate("a=b+c-d*e/2")]
    assert "abcd" not in text_of(pdf(both(BODY, text_page(rows))))


def test_a_sentence_that_repeats_stays_once_and_a_header_does_not() -> None:
    def page(number: int) -> Draw:
        rows = [
            (60, 120 + 14 * at, f"Line {at} of page {number} has words {number * 10 + at} in it", "Helvetica", 10.0)
            for at in range(20)
        ]
        head = [
            (60, 40, "Warning: switch off the pump before you open it.", "Helvetica", 10.0),
            (60, 580, "Pump manual", "Helvetica", 10.0),
        ]
        return text_page([*head, *rows])

    for pages in (2, 3, 5):
        document = parse_pdf(pdf(*map(page, range(pages))), "a.pdf")
        assert (to_markdown(document).count("switch off"), to_markdown(document).count("Pump manual")) == (1, 0)
        assert any("running headers" in line for line in document.left_out)


@pytest.mark.parametrize(
    ("header", "beside", "heading"),
    [
        ("7.5. WHAT IS A FILE OF THE PUMP?", "CHAPTER 7. BASICS", ""),
        ("WHAT IS A FILE OF THE PUMP?", "", "What is a file of the pump?"),
        ("BASICS OF THE MANAGEMENT OF A PUMP\u2026", "", ""),
        ("Copyright 2022 by the pump makers, all rights reserved.", "", ""),
    ],
)
def test_a_header_that_ends_like_a_sentence_is_left_out(header: str, beside: str, heading: str) -> None:
    head = [(60, 40, header, "Times-Roman", 10.0), (300, 40, beside, "Times-Roman", 10.0)]
    title = [(60, 80, heading, "Times-Bold", 16.0)]
    draws = [both(text_page(head), text_page(title if at == 0 else []), BODY) for at in range(4)]
    text = text_of(pdf(*draws))
    assert (header in text, beside in text and bool(beside), heading in text) == (False, False, True)


@pytest.mark.parametrize(
    ("end", "line", "whole"),
    [("well-", "known", "well-known"), ("so-", "called", "so-called"), ("user-", "friendly", "user-friendly"),
     ("self-", "less", "selfless"), ("agree-", "ment", "agreement"), ("real-", "ity", "reality")],
)  # fmt: skip
def test_a_compound_keeps_its_hyphen(end: str, line: str, whole: str) -> None:
    assert joined(f"a {end}", f"{line} b", ()) == f"a {whole} b"


@pytest.mark.parametrize(("sizes", "bold"), [((18, 12, 10), True), ((24, 16, 11), False), ((14, 0, 11), True)])
def test_a_page_of_five_lines_keeps_its_headings(sizes: tuple[int, int, int], bold: bool) -> None:
    """Also with more letters in headings than in the text, and with a title that looks like the heading."""
    fonts = ("Helvetica-Bold" if bold else "Helvetica", "Helvetica")
    rows = [(60, 60, "The pump", fonts[0], sizes[0])]
    for at, name in enumerate(("Setup of it", "Repair of it")):
        if sizes[1] or at:
            rows.append((60, 90 + 50 * at, name, fonts[0], sizes[1] or sizes[0]))
        rows.append((60, 110 + 50 * at, "Close it.", fonts[1], sizes[2]))
    document = parse_pdf(pdf(text_page(rows)), "a.pdf")
    assert document.title == "The pump"
    headings = [block.text for block in document.blocks if isinstance(block, Heading)]
    assert headings == (["Setup of it", "Repair of it"] if sizes[1] else ["Repair of it"])


SENTENCE = "The main column of this page is set in full lines of words"


@pytest.mark.parametrize(
    ("left", "text_left", "size", "leading"), [(20, 110, 8, 10), (325, 30, 8, 9), (20, 110, 10, 14), (325, 30, 10, 12)]
)
def test_a_note_in_the_margin_stays_together(left: float, text_left: float, size: float, leading: float) -> None:
    note = ("Read the safety", "notes, then", "a friend may", "open the con-", "tainer")
    rows = [(text_left, 100 + 14 * at, f"{SENTENCE} {at}", "Helvetica", 10.0) for at in range(20)]
    rows += [(left, 156 + leading * at, line, "Helvetica", size) for at, line in enumerate(note)]
    text = text_of(pdf(text_page(rows)))
    assert "\n\nRead the safety notes, then a friend may open the container\n" in text
    assert " ".join(f"{SENTENCE} {at}" for at in range(20)) in text


@pytest.mark.parametrize("size", [9, 10])
def test_labels_stay_beside_their_texts(size: float) -> None:
    rows = [(110.0, 100.0 + 14 * at, f"{SENTENCE} {at}", "Helvetica", 10.0) for at in range(9)]
    rows += [(20.0, 100.0 + 14 * at, f"--option-{at}", "Helvetica", size) for at in range(9)]
    text = text_of(pdf(text_page(rows)))
    assert all(f"--option-{at} {SENTENCE} {at}" in text for at in range(9))


def stacked(over: str, under: str, size: float, longer: float = 2, high: float = 2.7) -> Draw:
    """A line of 10 points with a fraction in it, between two others."""

    def draw(canvas: Any) -> None:
        canvas.setFont("Helvetica", 10)
        canvas.drawString(60, 313, "A line of text above the one with the fraction")
        canvas.drawString(60, 287, "A line of text below the one with the fraction")
        canvas.drawString(60, 300, "Power P =")
        left = 63 + canvas.stringWidth("Power P =", "Helvetica", 10)
        width = max(canvas.stringWidth(side, "Helvetica", size) for side in (over, under)) + longer
        canvas.drawString(left + width + 3, 300, "per second.")
        canvas.setFont("Helvetica", size)
        canvas.drawCentredString(left + width / 2, 300 + high + 0.3 * size, over)
        canvas.drawCentredString(left + width / 2, 300 + high - 0.9 * size, under)
        canvas.setLineWidth(0.5)
        canvas.line(left, 300 + high, left + width, 300 + high)

    return draw


@pytest.mark.parametrize("size", [6, 8, 10])
@pytest.mark.parametrize(
    ("over", "under", "whole"),
    [("U", "R", "U/R"), ("a + b", "c", "(a + b)/c"), ("x + 1", "2y - 3", "(x + 1)/(2y - 3)"), ("1", "2", "1/2")],
)
def test_a_stacked_fraction_is_read_in_its_line(over: str, under: str, whole: str, size: float) -> None:
    text = text_of(pdf(both(BODY, stacked(over, under, size))))
    assert f"above the one with the fraction Power P = {whole} per second." in text


@pytest.mark.parametrize("options", [{"longer": 14}, {"high": 8}, {"high": -3}])
def test_texts_above_and_below_another_rule_are_no_fraction(options: dict[str, float]) -> None:
    assert "U/R" not in text_of(pdf(both(BODY, stacked("U", "R", 8, **options))))


def piece(left: float, top: float, width: float) -> Any:
    box = Box(left, top, left + width, top + 10)
    return SimpleNamespace(box=box, size=10.0, baseline=top + 8, bold=False, monospaced=False, text="apple tree")


def test_a_short_list_in_the_second_column_is_no_note() -> None:
    text, block = [piece(30, 14 * at, 250) for at in range(20)], [piece(330, 147 + 12 * at, 60) for at in range(8)]
    assert margin_notes([*text, *block]) == [block]
    column = [piece(310, 14 * at, 200) for at in range(10)]
    assert margin_notes([*text, *column, *block]) == []
