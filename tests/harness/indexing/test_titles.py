"""Forms of titles, the trie of hashes, and links: against a search for every title in every text."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.files import digests
from common.records import Passage
from harness.indexing import title_links
from harness.indexing.title_links import TitleLinks, write_title_links
from harness.indexing.titles import TitleTrie, prefix_hashes, title_forms


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


FORMS = [
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
]


@pytest.mark.parametrize(("title", "forms"), FORMS)
def test_forms_of_a_title(title, forms) -> None:
    assert ["~" * (not whole) + " ".join(words) for words, whole in title_forms(title)] == forms


NAMED = [
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
]  # fmt: skip


@pytest.mark.parametrize(("titles", "text", "expected"), NAMED)
def test_titles_that_are_named(titles: str, text: str, expected: str) -> None:
    assert named(titles.split(), text) == expected.split()


def build(folder: Path, passages: list[Passage]) -> TitleLinks:
    write_title_links(folder, passages)
    return TitleLinks(folder)


def test_passages_are_searched_in_batches(tmp_path, monkeypatch) -> None:
    names = ["Titanic", "Titanic (1997 film)", "James Cameron", "Avatar", "", "James Cameron"]
    passages = [Passage.of(title, "Titanic, the ship. By James Cameron, as Avatar.") for title in names]
    for name, at_once in (("whole", 1000), ("batches", 2)):
        monkeypatch.setattr(title_links, "_AT_ONCE", at_once)
        (tmp_path / name).mkdir()
        assert build(tmp_path / name, passages).links > 3
    assert digests(tmp_path / "whole") == digests(tmp_path / "batches")


NAMES = ["alba", "brune", "alba brune", "brune (calder)", "alba brune (calder)", "brune-alba", "albabrune", "?"]
TITLES = st.lists(st.sampled_from(NAMES), min_size=1, max_size=6)
TEXTS = st.lists(st.tuples(st.sampled_from(["alba", "brune", "calder", "dorn"]), st.sampled_from(" -")), max_size=8)


def readings(text: str) -> list[list[tuple[str, int, int]]]:
    """The words of a text, split and joined at hyphens, with the first word and the one behind the last of each."""
    split, joined = [], []
    for chunk in text.split():
        words, first = chunk.strip("-").split("-"), len(split)
        split += [(word, first + place, first + place + 1) for place, word in enumerate(words)]
        joined.append(("".join(words), first, len(split)))
    return [split, joined]


@settings(max_examples=25)
@given(TITLES, st.lists(TEXTS, min_size=6, max_size=6))
def test_agrees_with_a_search_for_every_title_in_every_text(tmp_path_factory, titles, texts) -> None:
    written = ["".join(map("".join, text)) for text in texts]
    passages = [Passage.of(title, text) for title, text in zip(titles, written, strict=False)]
    forms = {tuple(words) for passage in passages for words, _ in title_forms(passage.title)}
    folder = tmp_path_factory.mktemp("links")
    if not forms:
        return
    links = build(folder, passages)
    for place, passage in enumerate(passages):
        spans = {
            (words[start][1], words[start + len(each) - 1][2], each)
            for words in readings(passage.text)
            for each in forms
            for start in range(len(words) - len(each) + 1)
            if tuple(word for word, *_ in words[start : start + len(each)]) == each
        }
        longest = [form for s, e, form in spans if not any(a <= s and e <= b and (a, b) != (s, e) for a, b, _ in spans)]
        expected = set(longest) - {tuple(own) for own, _ in title_forms(passage.title)}
        numbers = [{*links.named([" ".join(each)]).forms_M.tolist()} for each in expected]
        assert sorted(links.mentioned_by(place).tolist()) == sorted(number for (number,) in numbers)
