"""Titles and links of a corpus by hand, and against a search for every title in every text."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.records import Passage
from harness.indexing import title_links
from harness.indexing.title_links import FOLDER, TitleLinks, write_title_links
from harness.indexing.titles import title_forms


def build(folder: Path, passages: list[Passage]) -> TitleLinks:
    write_title_links(folder, passages)
    return TitleLinks(folder)


def form(links: TitleLinks, title: str) -> int:
    """The number of a form."""
    (number,) = {int(each) for each in links.named([title]).forms_M}
    return number


def titled(links: TitleLinks, title: str, most: int = 100) -> list[tuple[int, bool]]:
    places, exact = links.titled(form(links, title), most)
    return list(zip(places.tolist(), exact.tolist(), strict=True))


CORPUS = [
    Passage.of("Titanic", "A ship. It sank near Newfoundland; the Titanic had a cook."),
    Passage.of("Titanic (1997 film)", "By James Cameron, about Titanic, the ship."),
    Passage.of("James Cameron", "He made Titanic (1997 film), and Titanic again, and Avatar."),
    Passage.of("Avatar", "By James Cameron. Cast: none."),
    Passage.of("James Cameron", "James Cameron was born in Kapuskasing."),
    Passage.of("", "James Cameron has no title here."),
]


def test_passages_of_a_form_by_hand(tmp_path) -> None:
    links = build(tmp_path, CORPUS)
    assert links.forms == 4  # titanic, titanic 1997 film, james cameron, avatar
    assert titled(links, "titanic") == [(0, True), (1, False)]
    assert titled(links, "titanic 1997 film") == [(1, True)]
    assert titled(links, "james cameron") == [(2, True), (4, True)]
    assert titled(links, "james cameron", most=1) == [(2, True)]


def test_links_and_weights_by_hand(tmp_path) -> None:
    links = build(tmp_path, CORPUS)
    titanic, film, cameron, avatar = (
        form(links, title) for title in ("titanic", "titanic 1997 film", "james cameron", "avatar")
    )
    mentioned = [sorted(links.mentioned_by(place).tolist()) for place in range(6)]
    # the first mentions its own title, the second its own without the parenthesis
    assert mentioned == [[], [cameron], sorted([film, titanic, avatar]), [cameron], [], [cameron]]
    # N = 6.  James Cameron: 3 passages mention it, 2 have it; Avatar: 1 and 1
    expected = [(1 - np.log(4) / np.log(7)) / (1 + np.log(2)), 1 - np.log(2) / np.log(7)]
    assert links.weights([cameron, avatar]) == pytest.approx(expected)


def test_passages_are_searched_in_batches(tmp_path, monkeypatch) -> None:
    for name in ("whole", "batches"):
        (tmp_path / name).mkdir()
    build(tmp_path / "whole", CORPUS)
    monkeypatch.setattr(title_links, "_AT_ONCE", 2)
    build(tmp_path / "batches", CORPUS)
    for file in sorted((tmp_path / "whole" / FOLDER).iterdir()):
        assert file.read_bytes() == (tmp_path / "batches" / FOLDER / file.name).read_bytes()


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
        assert sorted(links.mentioned_by(place).tolist()) == sorted(form(links, " ".join(each)) for each in expected)
