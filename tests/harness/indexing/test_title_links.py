"""Titles and links of a corpus by hand, and against a search for every title in every text."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from common.files import digests
from common.records import Passage
from harness.indexing import title_links
from harness.indexing.title_links import TitleLinks, write_title_links
from harness.indexing.titles import title_forms


def build(folder: Path, passages: list[Passage]) -> TitleLinks:
    write_title_links(folder, passages)
    return TitleLinks(folder)


def test_passages_are_searched_in_batches(tmp_path, monkeypatch) -> None:
    names = ["Titanic", "Titanic (1997 film)", "James Cameron", "Avatar", "", "James Cameron"]
    passages = [
        Passage.of(title, f"{text}. By {other}.")
        for title, text, other in zip(names, names[::-1], names[1:] + names[:1], strict=True)
    ]
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
