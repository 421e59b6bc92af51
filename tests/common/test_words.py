"""Words of a text, and the text without some of them."""

from hypothesis import given
from hypothesis import strategies as st

from common.words import Word, distinct_words, first_characters, first_words, new_words, without, word_count, words_of

TEXT = st.text(st.characters(categories=["L", "N", "P", "Z", "Cc", "M"]), max_size=30) | st.text(
    "aAbİß1_'- \t", max_size=20
)


def test_words_of_a_question() -> None:
    assert words_of("Was Ed's café in St.-Paul?")[:3] == [Word("was", 0, 3), Word("ed", 4, 6), Word("s", 7, 8)]
    assert [word.text for word in words_of("Was Ed's café in St.-Paul?")] == [
        "was", "ed", "s", "café", "in", "st", "paul"
    ]  # fmt: skip
    assert words_of("?! ") == []


def test_distinct_words_are_in_order_of_appearance() -> None:
    assert distinct_words("The end of the End, of Time") == ["the", "end", "of", "time"]


def test_new_words_are_those_that_the_question_lacks() -> None:
    assert new_words("Who built the Kiln?", ["The kiln of Amber", "amber, built of Clay"]) == ["of", "amber", "clay"]
    assert new_words("Who?", []) == []


def test_without_removes_every_occurrence_of_whole_words() -> None:
    assert without("The other, the End of  the\tweather?", {"the"}) == "other, End of weather?"
    assert without("Who  wrote it", ()) == "Who wrote it"
    assert without("one", {"one"}) == ""


@given(TEXT)
def test_words_are_ordered_spans_that_cover_all_letters_and_digits(text: str) -> None:
    words, end = words_of(text), 0
    for word in words:
        assert text[word.start : word.end].lower() == word.text
        assert not any(each.isalnum() for each in text[end : word.start])
        assert end == 0 or word.start > end  # at least one other character between two words
        end = word.end
    assert not any(each.isalnum() for each in text[end:])


@given(TEXT, st.data())
def test_what_is_left_has_the_other_words_and_leaving_out_again_changes_nothing(text: str, data: st.DataObject) -> None:
    removed = data.draw(st.sets(st.sampled_from([word.text for word in words_of(text)]))) if words_of(text) else set()
    left = without(text, removed)
    assert without(left, removed) == left
    assert [word.text for word in words_of(left)] == [word.text for word in words_of(text) if word.text not in removed]
    assert left == " ".join(left.split())


@given(st.text(alphabet="ab \n\t|"), st.integers(0, 12))
def test_the_first_words_keep_their_white_space(text: str, most: int) -> None:
    cut = first_words(text, most)
    assert cut.split() == text.split()[:most]
    assert text.startswith(cut)
    if len(text.split()) <= most:
        assert cut == text
    else:
        assert cut == cut.rstrip()


def test_the_first_words_of_a_table_stay_a_table() -> None:
    assert first_words("| a | b |\n| - | - |\n| 1 | 2 |", 7) == "| a | b |\n| -"


@given(st.text(alphabet="ab \n"), st.integers(20, 30))
def test_the_first_characters_end_between_words(text: str, most: int) -> None:
    cut = first_characters(text, most)
    assert len(cut) <= most
    if cut != text:
        assert len(text) > most
        kept = cut.removesuffix("...").rstrip(" ")
        assert cut.endswith("...")
        assert text.startswith(kept)
        assert kept.split() == text.split()[: len(kept.split())]


def test_the_first_characters_fill_what_they_may() -> None:
    assert first_characters("one two three four", 18) == "one two three four"
    assert first_characters("one two three four", 17) == "one two three ..."
    assert first_characters("one\ntwo three four", 11) == "one\ntwo ..."
    assert first_characters("Donaudampfschiff faehrt", 10) == "..."


def test_every_chinese_character_counts_as_a_word() -> None:
    assert word_count("The supply's voltage is 12 V.") == len(words_of("The supply's voltage is 12 V.")) == 7
    assert word_count("每个 DDC 通道16个NCO。") == 8  # five characters, DDC, 16, NCO
    assert word_count("") == word_count("?!") == 0


@given(st.text(alphabet=st.characters(max_codepoint=0x24F)))
def test_of_latin_text_words_are_counted(text: str) -> None:
    assert word_count(text) == len(words_of(text))
