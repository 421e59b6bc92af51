"""Critical keywords: which names of a corpus are found, and where; brute force beside the matcher."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.words import word_texts
from harness.indexing.critical_keywords import KeywordMatcher, as_keyword, critical_keywords
from harness.indexing.critical_keywords import names as names_in

WORDS = st.lists(st.sampled_from("ab c"), max_size=12).map("".join)


NAMED = [
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
    ("TCP/IP and CD-ROM, by ASP.NET", {"TCP/IP", "IP", "CD-ROM", "ASP", "NET", "ASP.NET"}),
    ("by and/or an I/O port", {"I", "O", "I/O"}),
    ("in C++ or C#, not C", {"C", "C++", "C#"}),
    ("Alto " * 50, {" ".join(["Alto"] * length) for length in range(1, 7)}),
]


@pytest.mark.parametrize(("text", "names"), NAMED)
def test_names_by_patterns(text: str, names: set[str]) -> None:
    assert set(names_in(text)) - {"CA"} == names


def found(texts: list[str], max_share: float, **options: list[str]) -> dict[str, list[int]]:
    """Positions by keyword."""
    return {" ".join(keyword): at for keyword, at in critical_keywords(texts, max_share, **options).items()}


def test_keywords_and_positions_by_hand() -> None:
    """Of names; not of what stands in too many texts, is mostly small, or small where no sentence begins."""
    texts = ["set the Alto Pump 300 up", "the alto pump 300 weighs", "the Alto Pump 500", "nothing"]
    of_500 = {"alto pump 500": [2], "pump 500": [2]}
    assert found(texts, 0.5) == {"alto pump 300": [0, 1], "pump 300": [0, 1], **of_500}
    assert found(texts, 0.25) == of_500
    assert found(texts, 0.25, given=["Pump 300"]) == {**of_500, "pump 300": [0, 1]}
    assert found(["see Power there", "the power", "more power", "by Siemens", "x", "y"], 1.0) == {"siemens": [3]}
    sentences = ["The Alto Pump 300 weighs nine.", "See the Alto Pump 300.", "Use it as the manual says."]
    assert found(sentences, 1.0) == {"alto pump 300": [0, 1], "pump 300": [0, 1]}


def test_a_keyword_is_found_however_it_is_written() -> None:
    texts = ["set the LM-317T by O'Brien of Łódź at AT&T", "an LM317T", "x", "y"]
    keywords = critical_keywords(texts, max_share=0.5)
    assert keywords[("lm", "317t")] == [0, 1]
    matcher = KeywordMatcher(keywords)
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
