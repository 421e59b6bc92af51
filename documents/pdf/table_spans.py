"""Cells of a table that are one: what spans columns or rows has its text in each of them."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from documents.pdf.page import Box, PageWord
from documents.pdf.table_columns import column_at
from documents.pdf.table_lines import Line, cell_text, center, fragments, lines_of, middle
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
        self._parent = list(range(len(rows) * self.columns))
        self.words: list[list[list[PageWord]]] = [[[] for _ in range(self.columns)] for _ in rows]
        for row, cells in zip(rows, self.words, strict=True):
            for line in row.lines:
                for word in line:
                    cells[column_at(center(word.box), borders)].append(word)
        self._starts = [_usual_start([cells[column] for cells in self.words]) for column in range(self.columns)]

    def add(self, words: Iterable[PageWord]) -> None:
        """Put words that stand upside down or sideways, and so make no lines, into the cells they are in."""
        for word in words:
            at = middle(word.box)
            away = [max(row.top - at, at - row.bottom) for row in self.rows]
            self.words[away.index(min(away))][column_at(center(word.box), self.borders)].append(word)

    def texts(self) -> list[tuple[str, ...]]:
        """What the cells say, row by row."""
        joined: dict[int, list[PageWord]] = {}
        for row in range(len(self.rows)):
            for column in range(self.columns):
                joined.setdefault(self._root(row, column), []).extend(self.words[row][column])
        said = {root: cell_text(words) for root, words in joined.items()}
        return [tuple(said[self._root(row, column)] for column in range(self.columns)) for row in range(len(self.rows))]

    def columns_with_text(self) -> list[int]:
        """Columns without those that only repeat what a neighbor says or that are empty."""
        own = [self._texts_of(column) for column in range(self.columns)]
        alone = {
            column
            for column, roots in enumerate(own)
            if roots - set().union(*(others for other, others in enumerate(own) if other != column))
        }
        said = set().union(*(own[column] for column in alone))
        for column, roots in enumerate(own):
            if not roots <= said:
                alone.add(column)
                said |= roots
        return sorted(alone)

    def _texts_of(self, column: int) -> set[int]:
        """The cells with text that a column has, alone or with its neighbors."""
        return {
            self._root(row, column)
            for row in range(len(self.rows))
            if any(
                self.words[row][other] and self._root(row, other) == self._root(row, column)
                for other in range(self.columns)
            )
        }

    def spans_columns(self, row: int) -> bool:
        """Whether a row has a cell of several columns."""
        roots = [self._root(row, column) for column in range(self.columns)]
        return len(set(roots)) < len(roots)

    def are_rectangles(self) -> bool:
        """Whether all cells that are one form rectangles; in diagrams of boxes they need not."""
        members: dict[int, list[tuple[int, int]]] = {}
        for row in range(len(self.rows)):
            for column in range(self.columns):
                members.setdefault(self._root(row, column), []).append((row, column))
        return all(
            len(cells) == len({row for row, _ in cells}) * len({column for _, column in cells})
            for cells in members.values()
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
                    near = [(box.top, box.bottom) for box in verticals if abs((box.left + box.right) / 2 - at) <= NEAR]
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
            between = [
                (box.left, box.right)
                for box in horizontals
                if row.bottom - NEAR <= (box.top + box.bottom) / 2 <= below.top + NEAR
            ]
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
            border = column_at(center(one.box), self.borders)
            if border in crossed and column_at(center(other.box), self.borders) == border + 1:
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

    def _root(self, row: int, column: int) -> int:
        at = row * self.columns + column
        while self._parent[at] != at:
            at = self._parent[at]
        return at

    def _join(self, one: tuple[int, int], other: tuple[int, int]) -> None:
        first, second = sorted((self._root(*one), self._root(*other)))
        self._parent[second] = first


def _usual_start(cells: Sequence[Sequence[PageWord]]) -> float | None:
    """Where most cells of a column begin; None where they differ."""
    starts = [min(word.box.left for word in words) for words in cells if words]
    for start in starts:
        if sum(abs(start - other) <= SAME_START for other in starts) >= max(0.5 * len(starts), 3):
            return start
    return None


def _share(spans: Sequence[tuple[float, float]], start: float, end: float) -> float:
    """How much of an interval some spans cover, from 0 to 1."""
    covered, at = 0.0, start
    for left, right in sorted(spans):
        left, right = max(left, at), min(right, end)
        if right > left:
            covered += right - left
            at = right
    return covered / (end - start) if end > start else 0.0
