"""The draw of places: every word once, short pieces within a page, always the same order, plain text of all formats."""

from pathlib import Path

from benchmarks.documents.catalogue import Entry, catalogue
from benchmarks.documents.question_places import WORDS, pairs, places

ENTRIES = {entry.id: entry for entry in catalogue()}
MARKDOWN = ENTRIES["markdown-api"]


def written(folder: Path, entry: Entry, text: str) -> Path:
    (folder / entry.half).mkdir(exist_ok=True)
    (folder / entry.half / entry.file).write_text(text, encoding="utf-8")
    return folder


def test_places_hold_every_word_once_in_pieces_of_limited_length(tmp_path: Path) -> None:
    lines = [f"line {number} has words" for number in range(300)]
    folder = written(tmp_path, MARKDOWN, "\n".join(lines))
    drawn = places(MARKDOWN, folder)
    assert all(len(place.text.split()) <= WORDS for place in drawn)
    assert sorted(line for place in drawn for line in place.text.splitlines()) == sorted(lines)
    assert [place.text for place in drawn] == [place.text for place in places(MARKDOWN, folder)]
    first = [lines.index(place.text.splitlines()[0]) for place in drawn]
    assert first != sorted(first)


def test_pairs_are_all_pairs_within_groups_each_once() -> None:
    drawn = pairs()
    assert len(drawn) == len({frozenset(pair) for pair in drawn}) == 8 * 7 // 2 + 3 * 2 // 2 + 7 * 6 // 2
    assert {name for pair in drawn for name in pair} <= set(ENTRIES)
    assert drawn == pairs()
