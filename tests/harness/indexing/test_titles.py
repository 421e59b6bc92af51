"""Forms of titles, and the trie of hashes against a search for word sequences."""

import numpy as np
import pytest
from hypothesis import strategies as st

from harness.indexing.titles import TitleTrie, prefix_hashes, title_forms

WORDS = st.lists(st.sampled_from("abc"), min_size=1, max_size=5)


def trie(forms: list[list[str]]) -> TitleTrie:
    """Of forms that are numbered as listed."""
    nodes = np.unique(np.array([node for words in forms for node in prefix_hashes(words)], dtype=np.uint64))
    numbers = np.full(len(nodes), -1, dtype=np.int32)
    for number, words in enumerate(forms):
        numbers[np.searchsorted(nodes, np.uint64(prefix_hashes(words)[-1]))] = number
    return TitleTrie(nodes, numbers)


def named(titles: list[str], text: str) -> list[str]:
    """The titles that a text names, as they are written."""
    every = {tuple(words): title for title in titles for words, _ in title_forms(title)}
    numbers = trie([list(words) for words in every]).named([text]).forms_M
    return [*dict.fromkeys([*every.values()][number] for number in numbers)]


@pytest.mark.parametrize(
    ("title", "forms"),
    [
        ("Titanic (1997 film)", ["titanic 1997 film", "~titanic"]),
        ("Ed_Wood's  LIFE!", ["ed wood s life", "edwoods life"]),
        ("Æon Flux (ﬁlm)", ["aeon flux film", "~aeon flux"]),
        ("STRASSE Straße", ["strasse strasse"]),
        ("東京タワー\uff08映画\uff09", ["東 京 タ ワ ー 映 画", "~東 京 タ ワ ー"]),
        ("(500) Days of Summer", ["500 days of summer"]),
        ("A (b) (c)", ["a b c", "~a b"]),
        ("Mercury ()", ["mercury"]),
        ("(film)", ["film"]),
        ("Spider-Man (film)", ["spider man film", "spiderman film", "~spider man", "~spiderman"]),
        ("OpenStreetMap", ["openstreetmap", "open street map"]),
        ("AT&T", ["at&t", "at t"]),
        ("C++", ["c++"]),
        ("!!!", []),
        ("", []),
    ],
)
def test_forms_of_a_title(title, forms) -> None:
    assert ["~" * (not whole) + " ".join(words) for words, whole in title_forms(title)] == forms


@pytest.mark.parametrize(
    ("titles", "text", "expected"),
    [
        ("C++ C# C F#", "Vitamin C, and C++ (or C#).", "C++ C#"),
        ("Zürich Łódź", "from zurich to LODZ", "Zürich Łódź"),
        ("Wi-Fi", "WiFi", "Wi-Fi"), ("WiFi", "over Wi\u2011Fi", "WiFi"), ("e-mail", "an Email", "e-mail"),
        ("Spider-Man", "spider man and Spiderman", "Spider-Man"), ("McDonald", "at McDonald's", "McDonald"),
        ("McDonald's McDonald", "Ronald McDonald eats", "McDonald"), ("McDonald's", "McDonalds", "McDonald's"),
        ("Who It I 2012 The", "Who said it in 2012? The one whom I saw", ""),
        ("It Who", "He read It after Who", "It Who"), ("It", "so. It rains", ""), ("It", '(“It”, a novel)', "It"),
        ("It", "*It* is", "It"), ("It", "It's raining", ""), ("It", "THIS IS IT ALL", ""), ("It", "it", "It"),
        ("2012", "the film “2012”", "2012"), ("2012", "2012?", "2012"), ("7", "in 24/7", ""), ("7", "7", "7"),
        ("東京タワー 東京", "彼は東京タワーと東京駅を見た", "東京タワー 東京"), ("C", "?", ""),
        ("U.S. IT", "tell us of it", ""), ("U.S. IT", "the US needs IT", "U.S. IT"), ("C", "in C", ""),
        ("दिल्ली की", "यह दिल्ली है", "दिल्ली"), ("कम", "काम", ""), ("ไทย", "ประเทศไทย", "ไทย"), ("3.5", "35", ""),
    ],
)  # fmt: skip
def test_titles_that_are_named(titles: str, text: str, expected: str) -> None:
    assert named(titles.split(), text) == expected.split()
