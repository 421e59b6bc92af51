"""Scores of documents that were read: hand-worked, what must not count, bounds, and what equal documents get."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from documents.records import Block, Document, Heading, Paragraph, Table
from tests.documents.benchmark.scores import heading_scores, nested, scores, sections, table_scores, teds
from tests.documents.benchmark.trees import Tree


def document(*blocks: Block, title: str = "Manual") -> Document:
    return Document("manual", title, blocks)


def headings(*texts: str) -> list[Heading]:
    return [Heading(text, 1) for text in texts]


TEXTS = st.text("ab c1", min_size=1, max_size=12)
BLOCKS: st.SearchStrategy[Block] = st.one_of(
    st.builds(Heading, TEXTS, st.integers(1, 6)),
    st.builds(Paragraph, TEXTS),
    st.builds(Table, st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=3).map(tuple)),
)
DOCUMENTS = st.lists(BLOCKS, max_size=7).map(lambda blocks: document(*blocks))


def test_headings_in_the_documents_order_whatever_their_numbers_case_and_ligatures() -> None:
    true = headings("Safety", "Installation", "Power supply", "Disposal")
    read = headings("1 Safety", "2. INSTALLATION", "WARNING", "3 Disposal", "Page 7")
    assert heading_scores(true, read) == (3 / 5, 3 / 4, 2 * 3 / 9)
    assert heading_scores(headings("Options", "Examples", "Options"), headings("Options")) == (1, 1 / 3, 0.5)
    assert heading_scores(headings("First", "Second"), headings("Second", "First")) == (0.5, 0.5, 0.5)
    pairs = {
        "2.3 Power supply": "Power supply", "IV. VECTORS": "Vectors", "3 A new command": "A new command",
        "Appendix A: The vector product": "The vector product", "A new command": "A new command",
        "Chapter 2. Wiring": "Wiring", "E\ufb03cient use": "Efficient use", "LAT EX and friends": "LaTeX and friends",
    }  # fmt: skip
    got = scores(*(document(*headings(*texts), Paragraph("text")) for texts in (pairs.values(), pairs)))
    assert (got["precision"], got["recall"], got["f1"], got["mhs"], got["outline"]) == (1, 1, 1, 1, 1)


def test_title_and_headings_that_programs_print_count_for_nobody() -> None:
    read = document(*headings("The manual", "Contents", "1 Safety", "Index"))
    got = scores(document(Heading("Safety", 1), title="The Manual"), read)
    assert (got["precision"], got["recall"], got["mhs"], got["invented"]) == (
        1,
        1,
        1,
        1 / 2,
    )  # the number is no true word


def test_mhs_compares_headings_side_by_side_with_their_sections_words() -> None:
    tree = sections([Paragraph("Before"), Heading("A", 1), Heading("B", 2), Paragraph("of b"), Table((("x", "y"),))])
    content = Tree(("content", ("of", "b")))
    assert tree == Tree(
        ("document", ""),
        (Tree(("content", ("before",))), Tree(("heading", "A")), Tree(("heading", "B"), (content,))),
    )
    true = document(Heading("Alpha", 1), Paragraph("one two three four"), Heading("Beta", 1), Paragraph("five"))
    # "Beta" was not seen: 3 of 5 nodes are left, and its text went to "Alpha": 2 of 6 words of the section differ.
    read = document(Heading("Alpha", 1), Paragraph("one two three four"), Paragraph("Beta"), Paragraph("five"))
    got = scores(true, read)
    assert (got["mhs_structure"], got["mhs"]) == (pytest.approx(1 - 2 / 5), pytest.approx(1 - (2 + 2 / 6) / 5))


def test_the_outline_compares_levels() -> None:
    true = [Heading("A", 1), Heading("B", 2), Heading("C", 2), Heading("D", 1)]
    assert [tree.label[1] for tree in nested(true).children] == ["A", "D"]
    got = scores(document(*true), document(*headings(*"ABCD")))
    # Of the flat headings A can keep no child: B and C are deleted below A and inserted beside it.
    assert (got["f1"], got["mhs"], got["outline"]) == (1, 1, pytest.approx(1 - 2 / 5))


def test_teds_by_hand() -> None:
    one = (("Model", "Power"), ("X1", "300 W"))
    repeated = (("Ratings", "Ratings", "Note"), ("W", "V", "Note"))
    left_out = (("Ratings", "", "Note"), ("W", "V", ""))  # the repeated texts of spanning cells
    assert teds(one, one) == teds(repeated, left_out) == 1
    # Six nodes (2 rows, 4 cells); one cell's text differs by 1 of 5 characters.
    assert teds(one, (("Model", "Power"), ("X1", "800 W"))) == pytest.approx(1 - 0.2 / 6)
    # A row with its two cells is missing.
    assert teds(one, (("Model", "Power"),)) == pytest.approx(1 - 3 / 6)


def test_tables_are_matched_once_if_they_share_words_and_missing_ones_count_zero() -> None:
    one, other = (("Model", "X1"), ("Power", "300 W")), (("City", "Oslo"), ("Country", "Norway"))
    assert table_scores([one, other], [other, one]) == (1, 2)
    assert table_scores([one, other], [one, one]) == table_scores([one, one], [one]) == (0.5, 1)
    assert (table_scores([one], []), table_scores([], [one])) == ((0, 0), (None, 0))
    letters = (("a", "b"), ("c", "d"))
    assert table_scores([letters], [(("a", "f"), ("g", "h"))]) == (0, 0)  # 1 of 4
    assert table_scores([letters], [(("a", "b"), ("g", "h"))]) == (pytest.approx(1 - 2 / 6), 1)


def test_text_lost_and_invented_counts_tables_headings_and_captions() -> None:
    true = document(Heading("Alpha", 1), Table((("one", "two"),), caption="Table 1"))  # 5 words
    got = scores(true, document(Heading("Alpha", 1), Paragraph("one three")))
    assert (got["lost"], got["invented"]) == (pytest.approx(3 / 5), pytest.approx(1 / 3))


@given(DOCUMENTS, DOCUMENTS)
@settings(max_examples=60, deadline=None)
def test_scores_are_bounded_change_places_with_the_documents_and_equal_ones_are_perfect(
    one: Document, other: Document
) -> None:
    same, first, second = scores(one, one), scores(one, other), scores(other, one)
    perfect = {same.get(name, 1) for name in ("precision", "recall", "f1", "mhs", "mhs_structure", "outline")}
    assert (perfect, same["lost"], same["invented"]) == ({1}, 0, 0)
    for got in (first, second):
        assert all(0 <= value <= 1 for name, value in got.items() if name != "extra_tables")
    assert (first["lost"], first["invented"]) == (second["invented"], second["lost"])
    if "mhs" in {*first} & {*second}:
        assert (first["f1"], first["mhs"], first["outline"]) == pytest.approx(
            (second["f1"], second["mhs"], second["outline"])
        )
        assert (first["precision"], first["recall"]) == (second["recall"], second["precision"])
