"""Cells of a table that are one: what spans columns or rows has its text in each of them."""

from collections.abc import Iterable, Sequence
from itertools import pairwise, product

from documents.pdf.clusters import fragments
from documents.pdf.page import Box, PageWord
from documents.pdf.table_columns import cells_of, column_at, covered
from documents.pdf.table_lines import Line, cell_text, lines_of
from documents.pdf.table_rows import TableRow

NEAR = 3.0  # points between a rule and the border of cells that it draws
SAME_START = 1.5  # points between the beginnings of cells of one column
HEADING_GAP = 1.5  # font sizes between words of a heading over several columns
CLOSED_SHARE = 0.5  # of a cell's side that rules cover if it is closed there
FULL_SHARE = 0.8  # of a table's width that a rule crosses which divides all its columns


class Cells:
    """Words of a table by row and column, and which cells are one.

    Args:
        rows: From the top.
        borders: Where columns end.
        box: The table's area.
    """

    def __init__(self, rows: Sequence[TableRow], borders: Sequence[float], box: Box) -> None:
        self.rows, self.borders, self.box = rows, list(borders), box
        self.columns = len(borders) + 1
        self.words: list[list[list[PageWord]]] = [[[] for _ in range(self.columns)] for _ in rows]
        for row, cells in zip(rows, self.words, strict=True):
            for line in row.lines:
                for column, words in cells_of(line, borders).items():
                    cells[column] += words
        places = product(range(len(rows)), range(self.columns))
        self._joined = {place: [place] for place in places}  # the places of the cell at each place
        self._starts = [_usual_start([cells[column] for cells in self.words]) for column in range(self.columns)]

    def add(self, words: Iterable[PageWord]) -> None:
        """Put words that stand upside down or sideways, and so make no lines, into the cells they are in."""
        for word in words:
            away = [max(row.top - word.box.middle, word.box.middle - row.bottom) for row in self.rows]
            self.words[away.index(min(away))][column_at(word.box.center, self.borders)].append(word)

    def texts(self) -> list[list[str]]:
        """The texts of the cells, row by row."""
        texts = [[""] * self.columns for _ in self.rows]
        for cell in self._cells():
            said = cell_text(word for row, column in sorted(cell) for word in self.words[row][column])
            for row, column in cell:
                texts[row][column] = said
        return texts

    def columns_with_text(self) -> list[int]:
        """Columns without those that only repeat what others say or that are empty."""
        kept = {column: set[int]() for column in range(self.columns)}
        for number, cell in enumerate(self._cells()):
            if any(self.words[row][column] for row, column in cell):
                for _, column in cell:
                    kept[column].add(number)
        for column in range(self.columns - 1, -1, -1):
            cells = kept.pop(column)
            if not cells <= set().union(*kept.values()):
                kept[column] = cells
        return sorted(kept)

    def spans_columns(self, row: int) -> bool:
        """Whether a row has a cell of several columns."""
        return any((row, column + 1) in self._joined[row, column] for column in range(self.columns - 1))

    def are_rectangles(self) -> bool:
        """Whether all cells that are one form rectangles; in diagrams of boxes they need not."""
        return all(
            len(cell) == len({row for row, _ in cell}) * len({column for _, column in cell}) for cell in self._cells()
        )

    def join_across(self, ruled: Sequence[float], verticals: Sequence[Box]) -> None:
        """Join neighbours that text runs across, or that no rule divides where one divides them in other rows.

        Args:
            ruled: Those of the borders that are drawn.
            verticals: Vertical rules.
        """
        for number, row in enumerate(self.rows):
            crossed = {border for line in row.lines for part in fragments(line) for border in self._crossed(part)}
            for border, at in enumerate(self.borders):
                left, right = self.words[number][border], self.words[number][border + 1]
                if at in ruled:
                    near = [(box.top, box.bottom) for box in verticals if abs(box.center - at) <= NEAR]
                    if _share(near, row.top, row.bottom) >= CLOSED_SHARE:
                        continue
                    if bool(left) != bool(right):
                        crossed.add(border)
                if border in crossed:
                    self._join((number, border), (number, border + 1))

    def join_below(self, horizontals: Sequence[Box], full_grid: bool) -> None:
        """Join cells above each other that no rule divides where one divides other columns.

        Also those above a rule of their own.

        Args:
            horizontals: Horizontal rules.
            full_grid: Whether rules divide rows and columns; else only empty cells are joined to the one above.
        """
        limits = [self.box.left, *self.borders, self.box.right]
        for number, (row, below) in enumerate(zip(self.rows, self.rows[1:], strict=False)):
            if row.band == below.band:
                continue
            near = [box for box in horizontals if row.bottom - NEAR <= box.middle <= below.top + NEAR]
            between = [(box.left, box.right) for box in near]
            if not between or _share(between, self.box.left, self.box.right) >= FULL_SHARE:
                continue
            closed = [_share(between, left, right) >= CLOSED_SHARE for left, right in pairwise(limits)]
            for column in range(self.columns):
                above, under = self.words[number][column], self.words[number + 1][column]
                if not closed[column] and (full_grid or (above and not under)):
                    self._join((number, column), (number + 1, column))
            if not full_grid:
                self._join_over(number, between, limits)

    def _crossed(self, part: Line) -> set[int]:
        """The borders that words without a wide gap run across.

        Not those where a word begins like most words of its column.
        """
        first, last = column_at(part[0].box.left + 1, self.borders), column_at(part[-1].box.right - 1, self.borders)
        crossed = set(range(first, last))
        for one, other in pairwise(part):
            border = column_at(one.box.center, self.borders)
            if border in crossed and column_at(other.box.center, self.borders) == border + 1:
                start = self._starts[border + 1]
                if start is not None and abs(other.box.left - start) <= SAME_START:
                    crossed.discard(border)
        return crossed

    def _join_over(self, row: int, rules: Sequence[tuple[float, float]], limits: Sequence[float]) -> None:
        """Join the columns over each rule under a heading of several columns."""
        for rule in rules:
            over = [
                column
                for column in range(self.columns)
                if _share([rule], limits[column], limits[column + 1]) >= CLOSED_SHARE
            ]
            words = [word for column in over for word in self.words[row][column]]
            if len(over) > 1 and all(len(fragments(line, HEADING_GAP)) == 1 for line in lines_of(words)):
                for column in over[1:]:
                    self._join((row, over[0]), (row, column))

    def _cells(self) -> list[list[tuple[int, int]]]:
        """The cells, each as the rows and columns that it is in."""
        return [*{id(cell): cell for cell in self._joined.values()}.values()]

    def _join(self, one: tuple[int, int], other: tuple[int, int]) -> None:
        first, second = self._joined[one], self._joined[other]
        if first is not second:
            first += second
            self._joined |= dict.fromkeys(second, first)


def _usual_start(cells: Sequence[Sequence[PageWord]]) -> float | None:
    """Where most cells of a column begin; None where they differ."""
    starts = [min(word.box.left for word in words) for words in cells if words]
    for start in starts:
        if sum(abs(start - other) <= SAME_START for other in starts) >= max(0.5 * len(starts), 3):
            return start
    return None


def _share(spans: Sequence[tuple[float, float]], start: float, end: float) -> float:
    """How much of an interval some spans cover, from 0 to 1."""
    inside = sum(max(min(right, end) - max(left, start), 0.0) for left, right in covered(spans, 0))
    return inside / (end - start) if end > start else 0.0
