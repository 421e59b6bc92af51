"""Records: the normalizers' properties, identities, the gold passages."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import UserError
from common.records import Passage, Question, as_questions, clean, nfkc, passage_id, passage_text

INVISIBLE = "".join(map(chr, [0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF, 0xAD]))
JOINERS = "\u200c\u200d"
ODD = st.text(
    st.sampled_from(
        "aé\u0301\u00a8\u2011ﬁ½Å\u212b\u1100\u1161\u00a0\u3000\t\n \x1c\u2028"
        "\u0627\u06cc\u0915\u094d\u0d28\u0d4d👩\ufe0f" + INVISIBLE + JOINERS
    )
)


CLEANED = [
    ("  two\n\n words\t", "two words"),
    ("\ufb01ne 1\u00bd \u212b", "\ufb01ne 1\u00bd \u00c5"),  # a ligature, a fraction, the angstrom sign
    ("10\u2076 m\u00b2 \u2116 5 \uff13", "10\u2076 m\u00b2 \u2116 5 \uff13"),
    ("zero\u200bwidth \ufeffmark soft\u00adhyphen", "zerowidth mark softhyphen"),
    ("cafe\u0301", "café"),
    ("e\u200d\u0301", "é"),  # the joiner goes before composing, else a second pass would differ
    ("a\u200cb \u200d c", "ab c"),
    (
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647",
    ),  # Persian: a prefix
    ("\u0645\u06cc\u200c\u200c\u062e \u200c\u0645\u200c", "\u0645\u06cc\u200c\u062e \u0645"),
    ("\u0915\u094d\u200d\u0937", "\u0915\u094d\u200d\u0937"),  # Hindi: half a letter
    # Malayalam: a letter of its own at the end of a word
    ("\u0d28\u0d4d\u200d \u0d05", "\u0d28\u0d4d\u200d \u0d05"),
    ("北\u200d京 서\u200c울 ก\u200dา カ\u200dナ ა\u200cბ", "北京 서울 กา カナ აბ"),
    ("ⲁ\u200dⲁ ﬁ\u200cﬁ", "ⲁⲁ ﬁﬁ"),
    ("👩\u200d👧 👩\u200d", "👩\u200d👧 👩"),
    ("line\u2028paragraph\u2029end", "line paragraph end"),  # white space, though as good as invisible
    ("no\u00a0break\u3000blank", "no break blank"),
    ("", ""),
    (" \u200b\n", ""),
]


@pytest.mark.parametrize(("text", "expected"), CLEANED)
def test_clean_by_hand(text: str, expected: str) -> None:
    assert clean(text) == expected


@given(st.text() | ODD)
def test_clean_is_idempotent_and_leaves_single_blanks_only_and_nfkc_is_one_for_all_that_it_gives(text: str) -> None:
    """NFKC is the `clean` of 0.2 and earlier, which serving folders were trained with: written out here."""
    cleaned, invisible = clean(text), str.maketrans("", "", INVISIBLE + JOINERS)
    assert cleaned == clean(cleaned) == " ".join(cleaned.split())
    assert not set(cleaned) & set(INVISIBLE)
    plain = unicodedata.normalize("NFKC", text.translate(invisible)).translate(invisible)
    assert nfkc(text) == nfkc(cleaned) == nfkc(nfkc(text)) == " ".join(plain.split())


@given(st.text() | ODD, st.text() | ODD)
def test_clean_joins_as_it_cleans(one: str, other: str) -> None:
    """Cleaning parts and joining them is cleaning the joined text, so sentences may be cleaned before or after."""
    assert clean(f"{clean(one)}\n{clean(other)}") == clean(f"{one}\n{other}")


@given(st.text(), st.text())
def test_identity_sees_through_what_clean_removes(title: str, text: str) -> None:
    passage = Passage.of(title, text)
    assert passage.id == passage_id(f" {title}\u200b", f"{text}\n")
    assert passage.id == passage_id(passage.title, passage.text)
    assert len(passage.id) == 16


def test_identity_never_changes_and_separates_title_from_text() -> None:
    """Indexes and mined files on disk hold these ids: printf 'Hamlet\\0A play.' | sha256sum"""
    assert passage_id("Hamlet", "A play.") == "0dd31c9dcbc11b4a"
    assert passage_id("", "5\u00b2 m") != passage_id("", "52 m")
    parted = [("a b", "c"), ("a", "b c"), ("", "a b c"), ("a b c", "")]
    assert len({passage_id(*parts) for parts in parted}) == 4


def test_gold_is_in_file_order() -> None:
    one, two, three = (Passage.of(title, "text") for title in ("one", "two", "three"))
    question = Question("q", "which", passages=(one, two, three), support=(three.id, one.id, "elsewhere"))
    assert question.gold_passages == (one, three)


def test_questions_may_be_texts() -> None:
    record = Question("q7", "which")
    assert as_questions("who\n wrote it") == [Question("1", "who wrote it")]
    assert as_questions(["who", record]) == [Question("1", "who"), record]
    with pytest.raises(UserError, match="question 2 is empty"):
        as_questions(["who", " \u200b"])


def test_a_text_of_several_lines_begins_below_its_title() -> None:
    """So that a table's first line is one of the table."""
    assert passage_text(Passage("1", "| a |\n| 1 |", "Ratings")) == "Ratings.\n| a |\n| 1 |"
    assert passage_text(Passage("1", "| a |\n| 1 |")) == "| a |\n| 1 |"
    assert passage_text(Passage.of("Alba", "A river.")) == "Alba. A river."


def test_a_row_makes_the_passage_again_whatever_others_have_added() -> None:
    passage = Passage("1", "A river.", "Alba", "web", "own", {"year": 1}, "alba", ("other",))
    made = Passage.from_row({**passage.row, "tenant": "a field that a user has added to the points of a collection"})
    assert (made.row, made.other_ids) == (passage.row, ("other",))
    assert Passage.from_row(Passage("1", "A river.").row) == Passage("1", "A river.")
