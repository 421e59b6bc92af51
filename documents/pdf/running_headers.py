"""Running headers, footers and page numbers: what stands at the same place of many pages."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise, takewhile

from documents.pdf.lines import Line
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
_SENTENCE_END = re.compile(r"[.!?:;\u2026\u3002\uff01\uff1f][\"'\u201d\u2019\u00bb)\]]*$")

_Row = tuple[int, ...]  # positions of pieces with the same baseline
_Edge = tuple[int, bool]  # a page, and whether its top is meant


def running(pieces: Sequence[Line], heights: Mapping[int, float]) -> set[int]:
    """Which pieces run.

    They stand near the edge of their page, and their text repeats, their number counts pages, or they name sections.

    Args:
        pieces: Pieces of lines of a document, in any order.
        heights: Of the pages, points.
    """
    body = body_of(pieces)
    edges: dict[_Edge, list[_Row]] = {}
    pages = defaultdict(list)
    for at, piece in enumerate(pieces):
        pages[piece.page].append(at)
    for page, members in pages.items():
        rows = _rows(pieces, members)
        edges[page, True], edges[page, False] = rows, rows[::-1]
    text = _Text(pieces, body, edges)
    titles = _titles(pieces)
    found: set[int] = set()
    for depth in range(_LAYERS):
        outermost = {
            key: rows[0]
            for key, rows in edges.items()
            if rows and _in_zone(pieces, rows[0], key, heights[key[0]]) and not text.begins(rows)
        }
        layer = {
            key
            for top in (True, False)
            for key in _running_rows(
                pieces, {k: r for k, r in outermost.items() if k[1] is top}, titles, body.size, depth > 0
            )
        }
        if not layer:
            break
        for key in layer:
            found.update(edges[key].pop(0))
    return found


def _in_zone(pieces: Sequence[Line], row: _Row, edge: _Edge, height: float) -> bool:
    """Whether a row stands near an edge of its page."""
    baseline = _baseline(pieces, row)
    return baseline < _ZONE * height if edge[1] else baseline > (1 - _ZONE) * height


class _Text:
    """Tells rows that begin or end the text of their page from others.

    They are as large as the body's text and stand at its line distance to further rows, not all of which repeat.
    """

    def __init__(self, pieces: Sequence[Line], body: Body, edges: Mapping[_Edge, Sequence[_Row]]) -> None:
        self._pieces = pieces
        self._body = body
        pages = defaultdict[str, set[int]](set)
        distances = Counter[float]()
        for (page, top), rows in edges.items():
            for row in rows[:_LAYERS]:
                pages[self._shown(row)].add(page)
            for one, other in pairwise(rows if top else ()):
                distance = _baseline(pieces, other) - _baseline(pieces, one)
                distances[round(2 * distance) / 2] += 0.8 * body.size < distance < 2.5 * body.size
        self._repeated = {text for text, numbers in pages.items() if len(numbers) > 1}
        self._leading = max(distances, key=lambda distance: (distances[distance], -distance), default=body.leading)

    def begins(self, rows: Sequence[_Row]) -> bool:
        """Whether the first row reads on in those after it, from an edge of the page inwards."""
        if any(self._pieces[at].size < _SMALLER * self._body.size for at in rows[0]):
            return False
        run = [rows[0], *(other for _, other in takewhile(lambda pair: self._close(*pair), pairwise(rows[:_LAYERS])))]
        if all(self._shown(row) in self._repeated for row in run):
            return False
        ends = _SENTENCE_END.search(_text(self._pieces, max(run, key=lambda row: _baseline(self._pieces, row))))
        return len(run) >= _READS_ON or (len(run) == 2 and ends is not None)

    def _shown(self, row: _Row) -> str:
        """A row's text; without numbers if it is short, as that of a header."""
        text = _text(self._pieces, row).casefold()
        return text if len(_WORDS.findall(text)) >= _MIN_WORDS else _NUMBER.sub("0", text)

    def _close(self, one: _Row, other: _Row) -> bool:
        """Whether two rows are neighbouring lines of text."""
        near = abs(_baseline(self._pieces, one) - _baseline(self._pieces, other)) <= _NEXT_LINE * self._leading
        lefts = [abs(self._pieces[at].box.left - self._pieces[to].box.left) for at in one for to in other]
        same_size = abs(self._pieces[one[0]].size - self._pieces[other[0]].size) <= 0.04 * self._body.size
        return near and same_size and min(lefts) <= _MAX_INDENT * self._body.size


def _rows(pieces: Sequence[Line], members: Sequence[int]) -> list[_Row]:
    """Lines of a page with the same baseline, from the top."""
    rows: list[list[int]] = []
    for at in sorted(members, key=lambda at: (_baseline(pieces, (at,)), pieces[at].box)):
        if rows and _baseline(pieces, (at,)) - _baseline(pieces, rows[-1]) < 1.5:
            rows[-1].append(at)
        else:
            rows.append([at])
    return [tuple(row) for row in rows]


def _baseline(pieces: Sequence[Line], row: Sequence[int]) -> float:
    return pieces[row[0]].baseline


def _text(pieces: Sequence[Line], row: _Row) -> str:
    row_pieces = sorted((pieces[at] for at in row), key=lambda piece: (piece.box, piece.text))
    return " ".join(piece.text for piece in row_pieces)


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


def _names_section(piece: Line, titles: Mapping[str, tuple[float, bool]], body: float) -> bool:
    """Whether a piece repeats what is set as a heading elsewhere: larger, or in bold, unlike itself."""
    size, bold = titles.get(_letters(piece.text), (0.0, False))
    if piece.size > _LARGER * body or piece.bold:
        return False
    return size > _LARGER * piece.size or (bold and size >= piece.size)


def _running_rows(
    pieces: Sequence[Line],
    rows: Mapping[_Edge, _Row],
    titles: Mapping[str, tuple[float, bool]],
    body: float,
    inner: bool,
) -> set[_Edge]:
    """Pages (and edges) whose outermost row runs."""
    places = {key: _baseline(pieces, row) for key, row in rows.items()}
    same_text = defaultdict(list)
    counting = defaultdict(list)
    for key, row in rows.items():
        same_text[_key(pieces, row, body)].append(key)
        for offset in _offsets(_text(pieces, row), key[0], _counter(pieces, row, body)):
            counting[offset].append(key)
    found: set[_Edge] = set()
    least = _MIN_PAGES if len({page for page, _ in rows}) > _MIN_PAGES else 2
    for keys in same_text.values():
        numbers = [page for page, _ in keys]
        span = range(min(numbers), max(numbers) + 1, 2 if inner and len({page % 2 for page in numbers}) == 1 else 1)
        large = pieces[rows[keys[0]][0]].size > _LARGER * body
        if len(keys) >= (_LARGE_DENSITY if large else _INNER_DENSITY if inner else _DENSITY) * len(span):
            found.update(_near(keys, places, least))
    for keys in counting.values():
        found.update(_near(keys, places, least))
    if not inner:
        naming = [key for key, row in rows.items() if any(_names_section(pieces[at], titles, body) for at in row)]
        there, of_these = Counter(map(round, places.values())), Counter(round(places[key]) for key in naming)
        naming = [key for key in naming if _usual(of_these, there, round(places[key]))]
        found.update(_near(naming, places, least))
    sizes = {
        key: (round(places[key]), max(pieces[at].box.bottom - pieces[at].box.top for at in rows[key])) for key in rows
    }
    total, run = Counter(place for place, _ in sizes.values()), Counter(sizes[key][0] for key in found)
    usual = {(place, round(height)) for key in found for place, height in [sizes[key]] if _usual(run, total, place)}
    return found | {key for key, (place, height) in sizes.items() if (place, round(height)) in usual}


def _usual(run: Counter[int], total: Counter[int], place: int) -> bool:
    """Whether most of the rows at a place run."""
    return run[place] >= _MAX_OF_PLACE * total[place]


def _near(keys: Sequence[_Edge], places: Mapping[_Edge, float], least: int) -> set[_Edge]:
    """Those near which at least `least` of them stand, themselves included, at the same place."""
    found = set()
    for key in keys:
        there = (other[0] for other in keys if abs(places[other] - places[key]) <= _SAME_PLACE)
        if sum(abs(page - key[0]) <= _NEAR for page in there) >= least:
            found.add(key)
    return found


def _counter(pieces: Sequence[Line], row: _Row, body: float) -> re.Pattern[str]:
    """What may be a page's number in a row: not the number of a large chapter, nor one within a line of text."""
    sizes = [pieces[at].size for at in row]
    if max(sizes) > _LARGER * body:
        return _NO_NUMBER
    few = len(_WORDS.findall(_text(pieces, row))) < _MIN_WORDS
    return _NUMBER if few or max(sizes) < _SMALLER * body else _LABEL


def _key(pieces: Sequence[Line], row: _Row, body: float) -> str:
    """A row's text without what may be the page's number: equal for rows that repeat."""
    return _counter(pieces, row, body).sub("0", _text(pieces, row).casefold())


def _offsets(text: str, page: int, counter: re.Pattern[str]) -> set[tuple[bool, int]]:
    """By how much the numbers at the ends of a text differ from the page's number, for Arabic and Roman numbers."""
    numbers = [match[match.lastgroup or 0] for match in counter.finditer(text)]
    found = set()
    for number in {*numbers[:1], *numbers[-1:]}:
        value = int(number) if number.isdecimal() else roman(number)
        if value is not None:
            found.add((number.isdecimal(), value - page))
    return found
