"""Run-in headings: bold words that begin a paragraph."""

from documents.pdf.lines import Line
from documents.pdf.run_in_headings import split_run_in
from documents.pdf.spacing import Body
from tests.helpers.pdf_lines import LEADING, line, prose

BODY = Body(size=10, font="Times", leading=LEADING)


def read(*leads: str, above: float = 20.0, titles: tuple[str, ...] = ()) -> list[str]:
    """Texts of lines, headings marked, of paragraphs that begin with these words in bold."""
    items, baseline = prose(60, 2), 72.0
    for lead in leads:
        baseline += above
        items += [line(f"{lead} The pump moves the water", baseline, lead=len(lead)), *prose(baseline + LEADING, 2)]
        baseline += 2 * LEADING
    found = split_run_in(items, BODY, set(titles))
    return [("# " if item.is_run_in else "") + item.text for item in found if isinstance(item, Line)]


def headings(*leads: str, above: float = 20.0, titles: tuple[str, ...] = ()) -> list[str]:
    return [text for text in read(*leads, above=above, titles=titles) if text.startswith("#")]


def test_bold_words_that_begin_several_paragraphs_are_headings() -> None:
    found = read("Online sources.", "Date accessed.", "Page numbers.")
    assert [text for text in found if text.startswith("#")] == ["# Online sources", "# Date accessed", "# Page numbers"]
    assert found.count("The pump moves the water") == 3


def test_one_alone_is_emphasis() -> None:
    assert headings("Online sources.", "Date accessed.") == []


def test_a_number_is_enough() -> None:
    assert headings("4.1.1 Online sources.") == ["# 4.1.1 Online sources"]


def test_so_is_an_entry_of_the_outline() -> None:
    assert headings("Online sources.", titles=("onlinesources",)) == ["# Online sources"]


def test_what_does_not_stand_apart_is_emphasis() -> None:
    assert headings("Online sources.", "Date accessed.", "Page numbers.", above=LEADING) == []


def test_theorems_captions_and_warnings_are_none() -> None:
    assert headings("Theorem 1.", "Figure 2.", "Warning.", "Note.", "Proof.") == []


def test_terms_without_a_full_stop_are_none() -> None:
    assert headings("Online", "Date accessed", "Page numbers:") == []
