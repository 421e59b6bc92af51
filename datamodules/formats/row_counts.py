"""Counts of rows that can be read but are not as they should be, by kind, each with its first example.

Empty, repeated and null rows, and those that are too long.  Standard library only.
"""

from collections.abc import Container, Mapping
from typing import NamedTuple

from common.errors import DataError


class RowKind(NamedTuple):
    """A kind of unusual row, and its treatment."""

    what: str
    outcome: str


LEFT_OUT, NOT_READ, NOT_SEARCHED = "left out", "not read", "kept with the passage, not searched"
EMPTY_PASSAGE = RowKind("a passage without title and text", LEFT_OUT)
TITLE_ALONE = RowKind("a passage with a title and no text", "kept")
REPEATED_PASSAGE = RowKind("a passage with the title and text of an earlier one", LEFT_OUT)
SHARED_ID = RowKind("a passage with the id of another one, and another text", "kept, both are found by that id")
CUT_PASSAGE = RowKind("a passage longer than the encoder reads", "cut")
WITHOUT_GOLD = "a question without a gold answer and a gold passage"
REPEATED_HEADER = RowKind("a header within a table", LEFT_OUT)
JOINED = RowKind("a row of an earlier question", "joined with it")
REPEATED_QUESTION = RowKind("a row with the question of an earlier one", LEFT_OUT)
REPEATED_REWRITE = RowKind("a row with the question and the rewrite of an earlier one", LEFT_OUT)
REPEATED_ID = RowKind("a question with the id of another one", "kept")
IN_EARLIER_FILE = RowKind("a question of an earlier file", LEFT_OUT)


class RowCounts:
    """Counts of unusual rows.

    Args:
        strict: Whether the first one is an error; rows that are joined, ids that are shared (chunks of a document have
            one), and fields of no layout, are none.
        without_gold: The treatment of a question without gold; None if no gold is needed, so that it is not unusual.
    """

    def __init__(self, strict: bool = False, without_gold: str | None = "not used") -> None:
        self.strict, self.without_gold = strict, without_gold
        self.here = ("", "")  # source and place of the row that was read last; empty when there is none
        self.row: Mapping[str, object] = {}  # this row
        self._found: dict[RowKind, tuple[int, str]] = {}

    @property
    def is_reading(self) -> bool:
        """Whether a row was read last."""
        return bool(self.here[0])

    @property
    def place(self) -> str:
        """Of the row that was read last."""
        return ", ".join(self.here)

    def add(self, kind: RowKind, place: str | None = None, count: int = 1) -> None:
        """Count a row.

        Args:
            kind: What it is.
            place: Of the first such row; the row that was read last by default.
            count: Number of rows.

        Raises:
            DataError: If strict.
        """
        place = self.place if place is None else place
        if self.strict and kind not in (JOINED, SHARED_ID) and kind.outcome not in (NOT_READ, NOT_SEARCHED):
            raise DataError(f"{place}: {kind.what}. Correct it, or omit strict: it is then {kind.outcome}.")
        before, first = self._found.get(kind, (0, place))
        self._found[kind] = before + count, first

    def add_unknown_fields(self, row: Mapping[str, object], known: Container[str], layout: str, place: str) -> None:
        """Count the fields of a file's first row that its layout does not have, such as one with a wrong name."""
        for name in row:
            if name and name not in known:
                self.add(RowKind(f"a field {name!r}, which the layout {layout} does not have", NOT_READ), place)

    def lines(self) -> list[str]:
        """A line for each kind that was met."""
        return [
            f"{kind.what}: {count:,}, {kind.outcome}; the first: {first}"
            for kind, (count, first) in self._found.items()
        ]

    def audit(self) -> dict[str, list[str]]:
        """The lines for the statistics of a training; nothing if there are none."""
        return {"unusual_rows": self.lines()} if self._found else {}

    def as_json(self) -> list[list[object]]:
        """The counts, JSON types only."""
        return [[*kind, *counted] for kind, counted in self._found.items()]

    def add_all(self, counted: list[list[str | int]]) -> None:
        """Count what `as_json` has returned.  Raises as `add`."""
        for what, outcome, count, first in counted:
            self.add(RowKind(str(what), str(outcome)), str(first), int(count))
