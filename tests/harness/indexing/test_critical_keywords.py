"""Critical keywords: which names of a corpus are found, and where; brute force beside the matcher."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.words import word_texts
from harness.indexing.critical_keywords import KeywordMatcher, as_keyword, critical_keywords
from harness.indexing.critical_keywords import names as names_in

WORDS = st.lists(st.sampled_from("ab c"), max_size=12).map("".join)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Clean the Alto Pump 300 with care.", {"Alto Pump 300", "Pump 300"}),  # the first word alone is no name
        ("Order part CA-IF1051S or A100.", {"CA-IF1051S", "A100"}),
        ("It takes 12V, 5.5 kg and the 3rd screw.", set()),
        ("The EMC rules hold.", {"EMC", "The EMC"}),  # the corpus decides
        ("Ask Siemens for it.", {"Ask Siemens", "Siemens"}),
        ("a unit by Siemens. Then stop.", {"Siemens"}),
        ("Alto Pump 300\nThe seal is new", {"Alto Pump 300", "Pump 300"}),  # a title does not go on in the text
        ("We met Émile Zola in Łódź.", {"Émile Zola", "Zola", "Łódź"}),
        ("by İstanbul Airport and A\u030angstro\u0308m", {"İstanbul Airport", "Airport", "A\u030angstro\u0308m"}),
        ("Он живёт \u0441 Анна Каренина, ЖК-700", {"Анна Каренина", "Каренина", "ЖК-700"}),
        ("at AT&T, R&D and the S&P 500 by Johnson & Co", {"AT&T", "R&D", "S&P 500", "S&P", "Johnson", "Co"}),
        ("by Mr. O\u2019Brien or J. Roe", {"Mr", "O\u2019Brien", "J", "Roe"}),
        (
            "TCP/IP and CD-ROM, by ASP.NET and/or an I/O port",
            {"TCP/IP", "IP", "CD-ROM", "ASP", "NET", "ASP.NET"} | {"I", "O", "I/O"},
        ),
        ("in C++ or C#, not C", {"C", "C++", "C#"}),
        ("Alto " * 50, {" ".join(["Alto"] * length) for length in range(1, 7)}),
    ],
)
def test_names_by_patterns(text: str, names: set[str]) -> None:
    assert set(names_in(text)) - {"CA"} == names


def test_positions_by_hand() -> None:
    texts = ["set the Alto Pump 300 up", "the alto pump 300 weighs", "the Alto Pump 500", "nothing"]
    found = critical_keywords(texts, max_share=0.5)
    assert {" ".join(keyword): positions for keyword, positions in found.items()} == {
        "alto pump 300": [0, 1], "pump 300": [0, 1], "alto pump 500": [2], "pump 500": [2]
    }  # fmt: skip


def test_what_stands_in_too_many_texts_is_not_critical() -> None:
    texts = [f"the Alto Pump and the Unit {n}" for n in range(10)]
    found = critical_keywords(texts, max_share=0.2)
    assert ("unit", "3") in found
    assert ("alto", "pump") not in found
    assert ("alto", "pump") in critical_keywords(texts, 0.2, given=["Alto pump"])


def test_a_word_that_is_mostly_small_is_no_name() -> None:
    texts = ["see Power there", "the power", "more power", "by Siemens", "x", "y"]
    assert set(critical_keywords(texts, max_share=1.0)) == {("siemens",)}


def test_the_first_word_of_a_sentence_is_left_out_where_the_corpus_writes_it_small() -> None:
    texts = ["The Alto Pump 300 weighs nine.", "See the Alto Pump 300.", "Use it as the manual says."]
    assert set(critical_keywords(texts, max_share=1.0)) == {("alto", "pump", "300"), ("pump", "300")}


def test_a_keyword_is_found_however_it_is_written() -> None:
    texts = ["set the LM-317T by O'Brien of Łódź at AT&T", "an LM317T", "x", "y"]
    found = critical_keywords(texts, max_share=0.5)
    assert found[("lm", "317t")] == [0, 1]
    matcher = KeywordMatcher(found)
    for query in ("LM317T", "lm 317t", "o\u2019brien", "OBrien", "LODZ", "at&t"):
        assert len(matcher.longest(query)) == 1, query
    assert matcher.longest("lm 31 7t") == matcher.longest("vitamin t") == []


def test_a_query_has_the_longest_keywords_without_overlap() -> None:
    matcher = KeywordMatcher(map(as_keyword, ["Alto", "Alto Pump", "Pump 300", "300"]))
    assert matcher.longest("how heavy is ALTO pump 300? and alto") == [("alto", "pump"), ("300",), ("alto",)]


@given(st.lists(WORDS, min_size=1), st.lists(WORDS))
def test_contained_agrees_with_brute_force(texts: list[str], names: list[str]) -> None:
    keywords = {keyword for name in names if (keyword := as_keyword(name))}
    matcher = KeywordMatcher(keywords)
    for text in texts:
        words = word_texts(text)
        runs = {"".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, len(words) + 1)}
        assert {"".join(keyword) for keyword in matcher.contained(text)} == {*map("".join, keywords)} & runs
        assert set(matcher.longest(text)) <= set(matcher.contained(text))
