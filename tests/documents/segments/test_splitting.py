"""Splitting of long texts and tables, and fixed-size chunks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.records import Document, Heading, Image, Paragraph, Table
from documents.segments.augmentation import passages
from documents.segments.chunking import fixed_chunks
from documents.segments.splitting import joined, packed, pieces, split_table, word_count

text_strategy = st.lists(st.sampled_from(["word", "Word.", "泵。", "P-100", "x" * 40, "\n"]), min_size=1, max_size=60)


@given(text_strategy, st.integers(1, 12), st.booleans())
def test_parts_are_short_and_hold_every_word_in_order(words: list[str], max_words: int, code: bool) -> None:
    text = " ".join(words).strip()
    groups = packed(pieces(Paragraph(text, 3, code), max_words), max_words) if text else []
    assert all(word_count(joined(group)) <= max_words for group in groups)
    assert " ".join(joined(group) for group in groups).split() == text.split() or "泵" in text
    assert "".join(joined(group) for group in groups).replace(" ", "").replace("\n", "") == "".join(text.split())
    assert all(word in text.split() for group in groups for word in joined(group).split() if "泵" not in text)


def test_parts_are_about_equally_long_and_end_with_sentences_or_lines() -> None:
    text = " ".join(f"Sentence {n} has exactly six words." for n in range(10))  # of 60 words
    groups = packed(pieces(Paragraph(text), 50), 50)
    assert [word_count(joined(group)) for group in groups] == [30, 30]
    assert joined(groups[1]).startswith("Sentence 5 has")
    assert joined(packed(pieces(Paragraph("One. Two."), 50), 50)[0]) == "One. Two."
    code = "\n".join(f"a = {n}" for n in range(6))
    parts = [joined(group) for group in packed(pieces(Paragraph(code, code=True), 9), 9)]
    assert ("\n".join(parts), [part.count("\n") for part in parts]) == (code, [2, 2])
    with pytest.raises(ValueError, match="too long"):
        packed(pieces(Paragraph("a b c"), 3), 2)


def test_a_table_is_split_between_rows_with_its_header() -> None:
    table = Table((("Part", "Size"), *((f"p{n}", f"{n} mm") for n in range(10))), 1, "Table 1: Sizes", 4)
    parts = split_table(table, 5 + 9)  # five words of caption and header, three of a row
    assert [len(part.rows) for part in parts] == [4, 4, 4, 2]
    assert all(part.rows[0] == ("Part", "Size") and part.caption == table.caption and part.page == 4 for part in parts)
    assert [row for part in parts for row in part.rows[1:]] == list(table.rows[1:])
    assert split_table(table, 100) == [table]
    # a header that is longer than the limit leaves room for rows
    assert len(split_table(Table((("word " * 50, "b"), *((str(n), "x") for n in range(20)))), 20)) == 4


def test_chunks_overlap_and_know_their_pages() -> None:
    document = Document("p.pdf", "Pump", (Heading("A", 1, 1), Paragraph("b c d", 2), Paragraph("e f g h", 3)))
    found = fixed_chunks(document, 4, 1)
    assert [(s.text, s.page, s.last_page) for s in found] == [("A\n\nb c d", 1, 2), ("d\n\ne f g", 2, 3), ("g h", 3, 3)]
    assert {(s.kind, s.headings, s.document, s.embedded == s.text) for s in found} == {("text", (), "p.pdf", True)}
    assert [passage.title for passage in passages(found) + passages(found, "none")] == ["Pump"] * 3 + [""] * 3
    blocks = (Table((("a", "b"), ("1", "2")), caption="Table 1"), Image(b"x", ".png", "Figure 1", "in it"))
    (chunk,) = fixed_chunks(Document("a", "T", blocks))
    assert chunk.text == "Table 1\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\nFigure 1\nin it"


@given(st.integers(0, 50), st.integers(1, 9), st.integers(0, 8))
def test_all_words_stand_in_the_chunks(count: int, words: int, overlap: int) -> None:
    overlap = min(overlap, words - 1)
    given_words = [f"w{n}" for n in range(count)]
    document = Document("a", "T", (Paragraph(" ".join(given_words)),) if count else ())
    chunks = [segment.text.split() for segment in fixed_chunks(document, words, overlap)]
    assert [word for place, chunk in enumerate(chunks) for word in chunk[overlap if place else 0 :]] == given_words
    assert all(len(chunk) == words for chunk in chunks[:-1])
    assert all(len(chunk) > overlap for chunk in chunks[1:])
