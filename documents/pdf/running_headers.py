"""Running headers, footers and page numbers: what stands at the same place of many pages."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from documents.pdf.lines import Line
from documents.pdf.numbering import roman
from documents.pdf.spacing import body_of

_ZONE = 0.17  # of a page's height, at the top and at the bottom
_LAYERS = 12  # rows from the edge inwards
_SAME_PLACE = 3.0  # points
_MIN_PAGES = 3  # that a text or a counting number stands on; 2 in a document of 2 or 3 pages
_NEAR = 4  # pages between two of them
_DENSITY = 0.35  # of the pages from the first to the last one that a repeated text stands on, at least
_INNER_DENSITY = 0.7  # the same of a row further inwards, of left or right pages alone if it is only on these
_LARGER = 1.15  # body sizes from which on numbers that count pages may be those of chapters
_MIN_LETTERS = 3  # of a section's name
_MAX_OF_PLACE = 0.6  # of the rows at a place that run, for the others of the same size there to run too
_NUMBER = re.compile(r"(?<![\w.])(\d{1,4}|[ivxlc]{1,7})(?![\w.]*\w)", re.IGNORECASE)

_Row = tuple[int, ...]  # positions of pieces with the same baseline
_Edge = tuple[int, bool]  # a page, and whether its top is meant


def running(pieces: Sequence[Line], heights: Mapping[int, float]) -> set[int]:
    """Which pieces run.

    They stand near the edge of their page, and their text repeats, their number counts pages, or they name sections.

    Args:
        pieces: Pieces of lines of a document, in any order.
        heights: Of the pages, points.
    """
    body = body_of(pieces).size
    edges: dict[_Edge, list[_Row]] = {}
    pages = defaultdict(list)
    for at, piece in enumerate(pieces):
        pages[piece.page].append(at)
    for page, members in pages.items():
        rows = _rows(pieces, members)
        zone = _ZONE * heights[page]
        edges[page, True] = [row for row in rows if _baseline(pieces, row) < zone]
        edges[page, False] = [row for row in reversed(rows) if _baseline(pieces, row) > heights[page] - zone]
    titles = _titles(pieces)
    found: set[int] = set()
    for depth in range(_LAYERS):
        outermost = {key: rows[0] for key, rows in edges.items() if rows}
        layer = {
            key
            for top in (True, False)
            for key in _running_rows(
                pieces, {k: r for k, r in outermost.items() if k[1] is top}, titles, body, depth > 0
            )
        }
        if not layer:
            break
        for key in layer:
            found.update(edges[key].pop(0))
    return found


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
    texts = {key: _text(pieces, row) for key, row in rows.items()}
    same_text = defaultdict(list)
    counting = defaultdict(list)
    for key, text in texts.items():
        large = pieces[rows[key][0]].size > _LARGER * body
        same_text[text.casefold() if large else _NUMBER.sub("0", text.casefold())].append(key)
        for offset in () if large else _offsets(text, key[0]):
            counting[offset].append(key)
    found: set[_Edge] = set()
    least = _MIN_PAGES if len({page for page, _ in rows}) > _MIN_PAGES else 2
    for keys in same_text.values():
        numbers = [page for page, _ in keys]
        span = range(min(numbers), max(numbers) + 1, 2 if inner and len({page % 2 for page in numbers}) == 1 else 1)
        if len(keys) >= (_INNER_DENSITY if inner else _DENSITY) * len(span):
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


def _offsets(text: str, page: int) -> set[tuple[bool, int]]:
    """By how much the numbers at the ends of a text differ from the page's number, for Arabic and Roman numbers."""
    numbers = _NUMBER.findall(text)
    found = set()
    for number in {*numbers[:1], *numbers[-1:]}:
        value = int(number) if number.isdigit() else roman(number)
        if value is not None:
            found.add((number.isdigit(), value - page))
    return found
