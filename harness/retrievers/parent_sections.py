"""Parent sections: neighbouring segments of a document that are found by the best of them and read together.

A small segment with its whole path is found precisely, but says little; so the section around it is read. Only segments
under one chapter are joined, so that a parent section keeps at least one heading.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from os.path import commonprefix

from common.records import Passage
from common.words import word_spans
from documents.records import PATH_SEPARATOR
from harness.indexing.passage_store import KEPT


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a segment stands; `document` is empty for a passage that is no segment of a document."""

    document: str
    headings: tuple[str, ...]
    words: int

    @property
    def chapter(self) -> tuple[str, ...]:
        """Empty without a heading."""
        return (self.document, self.headings[0]) if self.headings else ()


class ParentSections(Sequence[Passage]):
    """The parent sections of the passages of an index, in its order.

    A passage that is no segment of a document, or stands before all headings, is its own parent.

    Args:
        passages: Of the index, by position; segments of a document stand together, in reading order.
        max_words: Sections are joined while they have at most so many words together; the segments of a longer section
            likewise.
    """

    def __init__(self, passages: Sequence[Passage], max_words: int) -> None:
        self._passages = passages
        self.starts: list[int] = []  # (P,) position of each parent's first segment
        start = 0
        for size in sizes([_place(passage) for passage in passages], max_words):
            self.starts.append(start)
            start += size
        self._ends = [*self.starts[1:], len(passages)]
        # joining is much of the time of a search that returns many of them
        self._kept = lru_cache(maxsize=KEPT)(self._joined)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, place: int) -> Passage:  # type: ignore[override]  # no slices
        return self._kept(place)

    def __iter__(self) -> Iterator[Passage]:
        return (self._joined(place) for place in range(len(self)))

    def _joined(self, place: int) -> Passage:
        return as_one([self._passages[position] for position in range(self.starts[place], self._ends[place])])


def sizes(places: Sequence[_Place], max_words: int) -> Iterator[int]:
    """Numbers of neighbours that make up the parents, one after the other."""
    chapter: tuple[str, ...] = ()
    count = words = 0  # of what is joined so far
    for _, group in groupby(places, key=lambda place: (place.document, place.headings)):
        for part in _parts(list(group), max_words):
            own, further = part[0].chapter, sum(place.words for place in part)
            if count and (not own or own != chapter or words + further > max_words):
                yield count
                count = words = 0
            chapter, count, words = own, count + len(part), words + further
    if count:
        yield count


def as_one(segments: Sequence[Passage]) -> Passage:
    """Segments as one passage: their texts, below headings where these change.

    What a table or an image repeats of the text is left out.

    Its metadata say where it stands, and name the ids of its tables (`tables`) and the files of its images (`images`).

    Args:
        segments: Of one parent.
    """
    if len(segments) == 1:
        return segments[0]
    about = [segment.metadata or {} for segment in segments]
    paths = [_headings(each) for each in about]
    common = _common(paths)
    lines: list[str] = []
    for place, (segment, path) in enumerate(zip(segments, paths, strict=True)):
        inner = path[len(common) :]
        if inner and (place == 0 or path != paths[place - 1]):
            lines.append(PATH_SEPARATOR.join(inner))
        known = set(lines) if about[place].get("kind") != "text" else set()
        lines += [line for line in segment.text.split("\n") if line not in known]
    titles = [tuple(segment.title.split(PATH_SEPARATOR)) for segment in segments]  # what of the path is indexed
    return Passage(
        hashlib.sha256("\0".join(segment.id for segment in segments).encode()).hexdigest()[:16],
        "\n".join(lines),
        PATH_SEPARATOR.join(_common(titles)),
        segments[0].source,
        metadata=_metadata(segments, about, common),
    )


def _metadata(
    segments: Sequence[Passage], about: Sequence[dict[str, object]], common: Sequence[str]
) -> dict[str, object]:
    kept = {name: value for name, value in about[0].items() if name in ("document", "document_title", "copies")}
    pages = [page for each in about for page in (each.get("page"), each.get("last_page")) if isinstance(page, int)]
    found = {
        "page": min(pages, default=None),
        "last_page": max(pages, default=None),
        "tables": [segment.id for segment, each in zip(segments, about, strict=True) if each.get("kind") == "table"],
        "images": list(dict.fromkeys(str(each["image"]) for each in about if each.get("image"))),
    }
    return {**kept, "headings": list(common), "kind": "text", **{name: value for name, value in found.items() if value}}


def _place(passage: Passage) -> _Place:
    about = passage.metadata or {}
    document = about.get("document")
    if not isinstance(document, str):
        return _Place("", (), 0)
    return _Place(document, _headings(about), len(word_spans(passage.text)))


def _headings(about: dict[str, object]) -> tuple[str, ...]:
    headings = about.get("headings")
    return tuple(map(str, headings)) if isinstance(headings, list) else ()


def _parts(section: list[_Place], max_words: int) -> Iterator[list[_Place]]:
    """The segments of a section, in as many parts as its length needs; one each without a heading."""
    if not section[0].headings:
        yield from ([place] for place in section)
        return
    part: list[_Place] = []
    for place in section:
        if part and sum(each.words for each in part) + place.words > max_words:
            yield part
            part = []
        part.append(place)
    yield part


def _common(paths: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The headings that all paths begin with."""
    return tuple(commonprefix(paths))  # noqa: RUF071 (of tuples)
