"""Forms of titles, and the trie of hashes against a search for word sequences."""

import numpy as np
import pytest
from hypothesis import strategies as st

from harness.indexing.titles import TitleTrie, prefix_hashes, title_forms, title_words

WORDS = st.lists(st.sampled_from("abc"), min_size=1, max_size=5)


def trie(forms: list[list[str]]) -> TitleTrie:
    """Of forms that are numbered as listed."""
    nodes = np.unique(np.array([node for words in forms for node in prefix_hashes(words)], dtype=np.uint64))
    numbers = np.full(len(nodes), -1, dtype=np.int32)
    for number, words in enumerate(forms):
        numbers[np.searchsorted(nodes, np.uint64(prefix_hashes(words)[-1]))] = number
    return TitleTrie(nodes, numbers)


def named(forms: list[str], *texts: str) -> list[list[str]]:
    """The forms that each text names, as they are written."""
    found = trie([title_words(form) for form in forms]).named(texts)
    return [[forms[form] for form in found.forms_M[found.texts_M == text]] for text in range(len(texts))]


@pytest.mark.parametrize(
    ("title", "forms"),
    [
        ("Titanic (1997 film)", ["titanic 1997 film", "titanic"]),
        ("Ed_Wood's  LIFE!", ["ed wood s life"]),
        ("Æon Flux (ﬁlm)", ["æon flux film", "æon flux"]),  # NFKC resolves the ligature
        ("STRASSE Straße", ["strasse strasse"]),  # case-folded
        ("東京タワー (映画)", ["東 京 タ ワ ー 映 画", "東 京 タ ワ ー"]),
        ("(500) Days of Summer", ["500 days of summer"]),
        ("A (b) (c)", ["a b c", "a b"]),
        ("Mercury ()", ["mercury"]),
        ("(film)", ["film"]),
        ("!!!", []),
        ("", []),
    ],
)
def test_forms_of_a_title(title, forms) -> None:
    assert [" ".join(words) for words in title_forms(title)] == forms


def test_the_longest_form_is_named_and_those_inside_it_are_not() -> None:
    forms = ["New York", "York", "New York City", "City Hall", "Ha"]
    assert named(forms, "NEW-YORK city hall has a hall; York") == [["New York City", "City Hall", "York"]]


def test_a_form_ends_where_its_text_ends() -> None:
    assert named(["New York", "New"], "old and new", "york new york") == [["New"], ["New York"]]


def test_the_beginning_of_a_form_alone_names_nothing() -> None:
    assert named(["New York City"], "new york", "", "?") == [[], [], []]


def test_chinese_titles_are_found_within_a_run_of_characters() -> None:
    assert named(["東京タワー", "東京"], "彼は東京タワーと東京駅を見た") == [["東京タワー", "東京"]]


def test_a_trie_without_forms_names_nothing() -> None:
    assert len(TitleTrie(np.array([], dtype=np.uint64), np.array([], dtype=np.int32)).named(["a b"]).forms_M) == 0
