"""Words of a text, the terms of an index, and the text without some of its words."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import words as words_module
from common.words import distinct_words, new_words, terms_of, without, word_count, word_texts, words_of

TEXT = st.text(st.characters(categories=["L", "N", "P", "Z", "Cc", "M"]), max_size=30) | st.text(
    "aAbİß1_'- \t", max_size=20
)
PLAIN = st.text("aAbİß1_'- \t\u0301éж", max_size=20)  # no sign that makes another word of the one before it


WORDS = [
    ("AT&T, C++ and (F#).", "AT&T=at&t C++=c++ and=and F#=f#"),
    ("C\u266f \uff23\uff0b\uff0b x+y Disney+", "C\u266f=c# \uff23\uff0b\uff0b=c++ x=x y=y Disney+=disney+"),
    (".NET, ASP.NET ...net", ".NET=.net ASP=asp NET=net net=net"),
    ("$5 US$5 €1,000,000 50% 3.5", "$5=$5 US=us $5=$5 €1,000,000=€1000000 50%=50% 3=3 5=5"),
    ("Zürich Zu\u0308rich İstanbul Łódź", "Zürich=zurich Zu\u0308rich=zurich İstanbul=istanbul Łódź=lodz"),
    ("Schillerstraße eﬃcient Ærø ΟΔΟΣ", "Schillerstraße=schillerstrasse eﬃcient=efficient Ærø=aero ΟΔΟΣ=οδοσ"),
    ("Ёлка й Đà Þór", "Ёлка=елка й=и Đà=da Þór=thor"),
    ("Donau\u00addampf Ze\u200bro", "Donau\u00addampf=donaudampf Ze\u200bro=zero"),
    ("दिल्ली की", "दिल्ली=दिल्ली की=की"),
    ("القَاهِرَة שָׁלוֹם", "القَاهِرَة=القاهره שָׁלוֹם=שלום"),
    ("กรุงไทย", "ก=ก รุ=รุ ง=ง ไ=ไ ท=ท ย=ย"),
    ("北京ABC社", "北=北 京=京 ABC=abc 社=社"),
    ("か\u3099 \u1109\u1165\u110b\u116e\u11af", "か\u3099=が \u1109\u1165=서 \u110b\u116e\u11af=울"),
    ("H₂O x² Java\u2122 🍕👍🏽", "H₂O=h2o x²=x2 Java=java 🍕=🍕 👍=👍"),
    ("أحمد مصطفى کتاب", "أحمد=احمد مصطفى=مصطفي کتاب=كتاب"),
    ("\u0661\u066c\u0662\u0663\u0664\u066b5", "\u0661\u066c\u0662\u0663\u0664=1234 5=5"),
    ("“.NET” Hawai\u02bbi \u02bfAli", ".NET=.net Hawai=hawai i=i Ali=ali"),
    ("5€, 5 $ US$ ($)", "5=5 €=€ 5=5 $=$ US=us"),
    ("_It_ max_len __", "It=it max=max len=len"),
    ("1½ 11\u20442", "1=1 ½=1 ½=2 1=1 1=1 2=2"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), WORDS)
def test_words_with_their_places(text: str, expected: str) -> None:
    assert " ".join(f"{text[word.start : word.end]}={word.text}" for word in words_of(text)) == expected


TERMS = [
    ("A cat. (The CAT), in 2012!", "a cat the cat in 2012"),
    ("AT&T C++ Disney+ 5% $5 .NET", "at t att at&t c++ disney disney+ 5 5% 5 $5 $ net .net"),
    ("Wi-Fi WiFi wifi", "wi fi wifi wifi wifi"),
    ("e\u2011mail max_len", "e mail email max len maxlen"),
    ("GPT4 iPhone6s 10GB 2nd A4 H2O", "gpt 4 gpt4 iphone 6s iphone6s 10 gb 10gb 2nd a4 h2o"),
    ("AC/DC OS/2 km/h iOS/Android and/or", "ac dc acdc os 2 os2 km h kmh ios android iosandroid and or"),
    ("12 € €12 5 km", "12 € 12 €12 € 5 km"),
    ("(1 000 000) in 12 300 2012 300", "1 000 000 in 12 300 2012 300 1000000 12300"),
    ("J. R. R. Tolkien", "j r r tolkien jrr"),
    ("LM-317T LM317T RTX4090 A100", "lm 317t lm317t lm 317t lm317t rtx 4090 rtx4090 a100"),
    ("O\u2019Brien's McDonald's Levi\u2019s", "o brien obrien obriens mcdonald mcdonalds levi levis"),
    ("don't she'll I'm we've", "don dont she i we"),
    ("U.S. Node.js J.R.R.", "u s us node js nodejs j r r jrr"),
    ("john.doe@example.com", "john doe johndoe example com examplecom"),
    ("1,000,000 1.000.000 1'000'000", "1000000 1 000 000 1.000.000 1000000 1000000"),
    ("3.5 3.11.2 9/11 10:30", "3 5 3.5 3 11 2 3.11.2 9 11 9/11 10 30 10:30"),
    ("2001-09-11 and/or", "2001 09 11 20010911 and or"),
    ("OpenStreetMap GeoJSON", "open street map openstreetmap geo json geojson"),
    ("McDonald MacBook iPhone URLs", "mcdonald macbook iphone urls"),
    ("北京市 京 ไทย", "北 京 市 北京 京市 京 ไ ท ย ไท ทย"),
    ("end -- start...here", "end start here"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "terms"), TERMS)
def test_terms_of_an_index(text: str, terms: str) -> None:
    assert terms_of(text) == terms.split()


@given(st.lists(st.text("aB1.'\"(),&", min_size=1, max_size=6)))
def test_terms_of_plain_words_are_found_faster_but_the_same(chunks: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(words_module, "_PLAIN", re.compile("(?!)"))
        slowly = [compound for chunk in words_module.compounds_of(" ".join(chunks)) for compound in chunk]
    assert [compound for chunk in words_module.compounds_of(" ".join(chunks)) for compound in chunk] == slowly
    assert terms_of(" ".join(chunks)) == [term for each in slowly for term in each.terms]


@given(TEXT)
def test_composed_and_decomposed_text_have_the_same_words(text: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert [word.text for word in words_of(composed)] == [word.text for word in words_of(decomposed)]
    assert terms_of(composed) == terms_of(decomposed)


def test_distinct_new_and_remaining_words() -> None:
    """Distinct ones in order of appearance; new ones, which the question lacks; a text without every one of some."""
    assert distinct_words("The end of the End, of Time") == ["the", "end", "of", "time"]
    assert new_words("Who built the Kiln?", ["The kiln of Amber", "amber, built of Clay"]) == ["of", "amber", "clay"]
    assert new_words("Who?", []) == []
    assert without("The other, the End of  the\tweather?", {"the"}) == "other, End of weather?"
    assert without("Who  wrote it", ()) == "Who wrote it"
    assert without("one", {"one"}) == ""


@given(TEXT | st.text("a1,B&'$%+ "))
def test_words_are_ordered_spans_that_cover_all_letters_and_digits(text: str) -> None:
    """Without their places they are the same; a word as it is compared stays so."""
    words, end = words_of(text), 0
    for word in words:
        assert 0 <= word.start < word.end <= len(text)
        assert word.start >= end or words_of(text[word.start : word.end])[0] != words_of(word.text)[0]  # as in ½
        assert not any(each.isalnum() and words_of(each) for each in text[end : word.start])
        assert [each.text for each in words_of(word.text)] == [word.text]
        end = word.end
    assert not any(each.isalnum() and words_of(each) for each in text[end:])
    assert word_texts(text) == [word.text for word in words]
    assert word_count(text) == len(words)


@given(PLAIN, st.data())
def test_what_is_left_has_the_other_words_and_leaving_out_again_changes_nothing(text: str, data: st.DataObject) -> None:
    removed = data.draw(st.sets(st.sampled_from([word.text for word in words_of(text)]))) if words_of(text) else set()
    left = without(text, removed)
    assert without(left, removed) == left
    assert [word.text for word in words_of(left)] == [word.text for word in words_of(text) if word.text not in removed]
    assert left == " ".join(left.split())


@given(st.text(alphabet="ab \n\t|"), st.integers(0, 12))
def test_the_first_words_keep_their_white_space(text: str, most: int) -> None:
    cut = words_module.first_words(text, most)
    assert cut.split() == text.split()[:most]
    assert text.startswith(cut)
    if len(text.split()) <= most:
        assert cut == text
    else:
        assert cut == cut.rstrip()


@given(st.text(alphabet="ab \n"), st.integers(20, 30))
def test_the_first_characters_end_between_words(text: str, most: int) -> None:
    cut = words_module.first_characters(text, most)
    assert len(cut) <= most
    if cut != text:
        assert len(text) > most
        kept = cut.removesuffix("...").rstrip(" ")
        assert cut.endswith("...")
        assert text.startswith(kept)
        assert kept.split() == text.split()[: len(kept.split())]


def test_the_first_words_of_a_table_and_the_first_characters_fill_what_they_may() -> None:
    assert words_module.first_words("| a | b |\n| - | - |\n| 1 | 2 |", 7) == "| a | b |\n| -"
    assert words_module.first_characters("one two three four", 18) == "one two three four"
    assert words_module.first_characters("one two three four", 17) == "one two three ..."
    assert words_module.first_characters("one\ntwo three four", 11) == "one\ntwo ..."
    assert words_module.first_characters("Donaudampfschiff faehrt", 10) == "..."


def test_every_character_of_a_script_without_blanks_counts_as_a_word() -> None:
    """In the second text five characters, DDC, 16 and NCO; in the last but one a mark belongs to its letter."""
    texts = ("The supply's voltage is 12 V.", "每个 DDC 通道16个NCO。", "दिल्ली भारत की राजधानी है", "กรุงเทพ", "?!")
    assert [*map(word_count, texts)] == [7, 8, 5, 6, 0]
