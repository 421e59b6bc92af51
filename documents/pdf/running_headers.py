"""Running headers, footers and page numbers: texts at the same place of many pages."""

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from documents.pdf.lines import Line, baseline_rows
from documents.pdf.numbering import roman
from documents.pdf.spacing import Body, body_of

_ZONE = 0.17  # of a page's height, at the top and at the bottom
_LAYERS = 12  # rows from the edge inwards
_SAME_PLACE = 3.0  # points
_MIN_PAGES = 3  # that a text or a counting number stands on; 2 in a document of 2 or 3 pages
_NEAR = 4  # pages between two of them
_DENSITY = 0.35  # of the pages from the first to the last one that a repeated text stands on, at least
_INNER_DENSITY = 0.7  # the same of a row further inwards, of left or right pages alone if it is only on these
_LARGE_DENSITY = 0.9  # the same of a row in large letters, which may be a heading that many chapters have
_LARGER = 1.15  # body sizes from which on numbers that count pages may be those of chapters
_MIN_LETTERS = 3  # of a section's name
_MAX_OF_PLACE = 0.6  # of the rows at a place that run, for the others of the same size there to run too
_NEXT_LINE = 1.6  # leadings to the next row that a line of the text reads on to
_READS_ON = 3  # rows that read on, for the outermost to be text; 2 that end with a sentence
_MAX_INDENT = 2.0  # font sizes between the left edges of such rows
_SMALLER = 0.96  # body sizes below which a row is no text
_MIN_WORDS = 4  # of a line of text
_ANY = r"(?<![\w.])(?P<number>\d{1,4}|[ivxlc]{1,7})(?![\w.]*\w)"
_PAGE = r"pages?|pg|p|seiten?|s|página|pagina|pág|sid[ae]|side|strona|str|страница|стр|folio|sheet|blatt"
_NUMBER = re.compile(_ANY, re.IGNORECASE)
_LABEL = re.compile(  # at an end of a row, or after the word for it
    rf"(?:^\W*|\b(?:{_PAGE})\W+){_ANY}|{_ANY.replace('?P<number>', '?P<last>')}(?=\W*$)", re.IGNORECASE
)
_WORDS = re.compile(r"[^\W\d_]+")
_NO_NUMBER = re.compile(r"(?!)(?P<number>)")
_SENTENCE_WORDS = 5  # of a sentence at least
_FULL_STOP = re.compile(
    r"(?<!\bal)(?<!\bInc)(?<!\bLtd)(?<!\bCo)(?<!\bCorp)(?<=[^\W\d_]{2})[.!?\u3002\uff01\uff1f][\"'\u201d\u2019\u00bb)\]]*$"
)
_NOTICE = re.compile(r"\u00a9|\bcopyright\b|\ball rights reserved\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?:;\u2026\u3002\uff01\uff1f][\"'\u201d\u2019\u00bb)\]]*$")


@dataclass(frozen=True, slots=True)
class _Row:
    """Pieces of a page with the same baseline."""

    pieces: tuple[Line, ...]  # from the left
    body: Body  # the style of the document's text

    @property
    def baseline(self) -> float:
        """Distance from the page's top."""
        return min(piece.baseline for piece in self.pieces)

    @property
    def size(self) -> float:
        """Of its largest font, points."""
        return max(piece.size for piece in self.pieces)

    @property
    def text(self) -> str:
        """Its text."""
        return " ".join(piece.text for piece in self.pieces)

    @property
    def is_large(self) -> bool:
        """Whether it may be a heading: the number of a large chapter counts no pages."""
        return self.size > _LARGER * self.body.size

    @property
    def is_short(self) -> bool:
        """Whether it has fewer words than a line of text."""
        return len(_WORDS.findall(self.text)) < _MIN_WORDS

    @property
    def shown(self) -> str:
        """Its text; without numbers if it is short, as that of a header."""
        return _NUMBER.sub("0", self.text.casefold()) if self.is_short else self.text.casefold()

    @property
    def counter(self) -> re.Pattern[str]:
        """What may be the page's number in it: not the number of a large chapter, nor one within a line of text."""
        if self.is_large:
            return _NO_NUMBER
        return _NUMBER if self.is_short or self.size < _SMALLER * self.body.size else _LABEL

    @property
    def key(self) -> str:
        """Its text without what may be the page's number: equal for rows that repeat."""
        return self.counter.sub("0", self.text.casefold())


def running(pieces: Sequence[Line], heights: Mapping[int, float]) -> set[int]:
    """Which pieces run.

    They stand near the edge of their page, and their text repeats, their number counts pages, or they name sections.

    Args:
        pieces: Pieces of lines of a document, in any order.
        heights: Of the pages, points.
    """
    pages = _rows(pieces)
    repeated = Counter(text for rows in pages.values() for text in {row.shown for row in rows})
    titles = _titles(pieces)
    found: set[int] = set()
    for at_top in (True, False):
        inwards = {page: rows if at_top else rows[::-1] for page, rows in pages.items()}
        for depth in range(_LAYERS):
            outermost = {
                page: rows[0]
                for page, rows in inwards.items()
                if rows and _in_zone(rows[0], heights[page], at_top) and not _begins_text(rows, repeated)
            }
            layer = _running_rows(outermost, titles, inner=depth > 0)
            for page in layer:
                found.update(map(id, inwards[page][0].pieces))
                inwards[page] = inwards[page][1:]
            if not layer:
                break
    return {at for at, piece in enumerate(pieces) if id(piece) in found}


def sentences(pieces: Sequence[Line], runs: Container[int]) -> set[int]:
    """Which pieces that run are the first ones of a sentence, which is content: it stays once.

    A question that is a heading elsewhere, or stands beside another text, is a header, and so is a copyright notice.

    Args:
        pieces: Pieces of lines of a document, in any order.
        runs: Which of them run.
    """
    found: set[int] = set()
    seen = {_letters(piece.text) for at, piece in enumerate(pieces) if at not in runs}
    for _, rows in sorted(_rows([piece for at, piece in enumerate(pieces) if at in runs]).items()):
        open_rows: list[_Row] = []
        for row in rows:
            open_rows = [*open_rows, row] if open_rows and _close(open_rows[-1], row) else [row]
            text = _letters(" ".join(one.text for one in open_rows))
            if _FULL_STOP.search(row.text) and all(len(one.pieces) == 1 for one in open_rows):
                is_header = text in seen or _NOTICE.search(text) is not None
                if len(_WORDS.findall(text)) >= _SENTENCE_WORDS and not is_header:
                    found.update(id(one.pieces[0]) for one in open_rows)
                seen.add(text)
                open_rows = []
    return {at for at, piece in enumerate(pieces) if id(piece) in found}


def _rows(pieces: Sequence[Line]) -> dict[int, list[_Row]]:
    """The rows of each page, from its top."""
    body = body_of(pieces)
    pages = defaultdict[int, list[Line]](list)
    for piece in pieces:
        pages[piece.page].append(piece)

    def from_left(row: Iterable[Line]) -> tuple[Line, ...]:
        return tuple(sorted(row, key=lambda piece: (piece.box, piece.text)))

    return {page: [_Row(from_left(row), body) for row in baseline_rows(found)] for page, found in pages.items()}


def _in_zone(row: _Row, height: float, at_top: bool) -> bool:
    """Whether a row stands near an edge of its page."""
    return row.baseline < _ZONE * height if at_top else row.baseline > (1 - _ZONE) * height


def _begins_text(rows: Sequence[_Row], repeated: Mapping[str, int]) -> bool:
    """Whether the first row reads on in those after it, from an edge of the page inwards.

    Text is as large as the body's and stands at its line distance to further rows, not all of which repeat.
    """
    if any(piece.size < _SMALLER * rows[0].body.size for piece in rows[0].pieces):
        return False
    run = [rows[0], *(other for _, other in takewhile(lambda pair: _close(*pair), pairwise(rows[:_LAYERS])))]
    if all(repeated[row.shown] > 1 for row in run):
        return False
    ends = _SENTENCE_END.search(max(run, key=lambda row: row.baseline).text)
    return len(run) >= _READS_ON or (len(run) == 2 and ends is not None)


def _close(one: _Row, other: _Row) -> bool:
    """Whether two rows are neighbouring lines of text."""
    near = abs(one.baseline - other.baseline) <= _NEXT_LINE * one.body.leading
    indent = min(abs(a.box.left - b.box.left) for a in one.pieces for b in other.pieces)
    return near and abs(one.size - other.size) <= 0.04 * one.body.size and indent <= _MAX_INDENT * one.body.size


def _titles(pieces: Sequence[Line]) -> dict[str, tuple[float, bool]]:
    """How texts are set where they are largest: their size, and whether they are bold."""
    titles: dict[str, tuple[float, bool]] = {}
    for piece in pieces:
        key = _letters(piece.text)
        if key:
            titles[key] = max(titles.get(key, (0.0, False)), (piece.size, piece.bold))
    return titles


def names(piece: Line) -> bool:
    """Whether a piece that runs is more than a number."""
    return bool(_letters(piece.text))


def _letters(text: str) -> str:
    """A text without numbers; empty where few letters are left."""
    key = _NUMBER.sub("", text.casefold()).strip(" .:-")
    return key if sum(map(str.isalpha, key)) >= _MIN_LETTERS else ""


def _names_section(row: _Row, titles: Mapping[str, tuple[float, bool]]) -> bool:
    """Whether a row repeats what is set as a heading elsewhere: larger, or in bold, unlike itself."""
    for piece in row.pieces:
        size, bold = titles.get(_letters(piece.text), (0.0, False))
        is_small = piece.size <= _LARGER * row.body.size and not piece.bold
        if is_small and (size > _LARGER * piece.size or (bold and size >= piece.size)):
            return True
    return False


def _running_rows(rows: Mapping[int, _Row], titles: Mapping[str, tuple[float, bool]], *, inner: bool) -> set[int]:
    """Pages whose outermost row runs."""
    alike = defaultdict[object, list[int]](list)  # pages by text, and by what their number counts from
    for page, row in rows.items():
        alike[row.key].append(page)
        for offset in _offsets(row, page):
            alike[offset].append(page)
    found: set[int] = set()
    for common, numbers in alike.items():
        span = range(min(numbers), max(numbers) + 1, 2 if inner and len({page % 2 for page in numbers}) == 1 else 1)
        density = _LARGE_DENSITY if rows[numbers[0]].is_large else _INNER_DENSITY if inner else _DENSITY
        if not isinstance(common, str) or len(numbers) >= density * len(span):
            found.update(_near(numbers, rows))
    places = {page: round(row.baseline) for page, row in rows.items()}
    total = Counter(places.values())
    if not inner:
        naming = [page for page, row in rows.items() if _names_section(row, titles)]
        of_these = Counter(places[page] for page in naming)
        naming = [page for page in naming if _usual(of_these, total, places[page])]
        found.update(_near(naming, rows))
    heights = {page: round(max(piece.box.bottom - piece.box.top for piece in row.pieces)) for page, row in rows.items()}
    run = Counter(places[page] for page in found)
    usual = {(places[page], heights[page]) for page in found if _usual(run, total, places[page])}
    return found | {page for page in rows if (places[page], heights[page]) in usual}


def _usual(run: Counter[int], total: Counter[int], place: int) -> bool:
    """Whether most of the rows at a place run."""
    return run[place] >= _MAX_OF_PLACE * total[place]


def _near(numbers: Sequence[int], rows: Mapping[int, _Row]) -> set[int]:
    """Those pages near which enough of them have their row at the same place, themselves included."""
    least = _MIN_PAGES if len(rows) > _MIN_PAGES else 2
    found = set()
    for page in numbers:
        there = [other for other in numbers if abs(rows[other].baseline - rows[page].baseline) <= _SAME_PLACE]
        if sum(abs(other - page) <= _NEAR for other in there) >= least:
            found.add(page)
    return found


def _offsets(row: _Row, page: int) -> set[tuple[bool, int]]:
    """By how much the numbers at the ends of a row differ from the page's number, for Arabic and Roman numbers."""
    numbers = [match[match.lastgroup or 0] for match in row.counter.finditer(row.text)]
    found = set()
    for number in {*numbers[:1], *numbers[-1:]}:
        value = int(number) if number.isdecimal() else roman(number)
        if value is not None:
            found.add((number.isdecimal(), value - page))
    return found
