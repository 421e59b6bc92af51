"""Splitting of long texts and tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.records import Paragraph, Table
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


def test_parts_are_about_equally_long_and_end_with_sentences() -> None:
    text = " ".join(f"Sentence {n} has exactly six words." for n in range(10))  # of 60 words
    groups = packed(pieces(Paragraph(text), 50), 50)
    assert [word_count(joined(group)) for group in groups] == [30, 30]
    assert joined(groups[1]).startswith("Sentence 5 has")
    assert joined(packed(pieces(Paragraph("One. Two."), 50), 50)[0]) == "One. Two."


def test_code_and_lists_are_split_between_lines() -> None:
    code = "\n".join(f"a = {n}" for n in range(6))
    groups = packed(pieces(Paragraph(code, code=True), 9), 9)
    assert [joined(group).count("\n") for group in groups] == [2, 2]
    assert "\n".join(map(joined, groups)) == code


def test_a_table_is_split_between_rows_with_its_header() -> None:
    table = Table((("Part", "Size"), *((f"p{n}", f"{n} mm") for n in range(10))), 1, "Table 1: Sizes", 4)
    parts = split_table(table, 5 + 9)  # five words of caption and header, three of a row
    assert [len(part.rows) for part in parts] == [4, 4, 4, 2]
    assert all(part.rows[0] == ("Part", "Size") and part.caption == table.caption and part.page == 4 for part in parts)
    assert [row for part in parts for row in part.rows[1:]] == list(table.rows[1:])
    assert split_table(table, 100) == [table]


def test_a_header_longer_than_the_limit_leaves_room_for_rows() -> None:
    table = Table((("word " * 50, "b"), *((str(n), "x") for n in range(20))))
    assert len(split_table(table, 20)) == 4


def test_a_piece_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="too long"):
        packed(pieces(Paragraph("a b c"), 3), 2)
