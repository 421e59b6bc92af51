"""Reads examples of query rewriting from official files.  Standard library only.

    rrr        Rewrite-Retrieve-Read (Ma et al. 2023): NAME.source with questions and NAME.target with search queries,
               line by line, several queries of a question separated by ";"; the path names the .source file
    qrecc      QReCC (Anantha et al. 2021) as AdaQR has it: {conversation: "Q: ... A: ..." lines, question, label}
    canard     CANARD (Elgohary et al. 2019): {History: [page title, section title, turns ...], Question, Rewrite}
    rewrites   this project's: {question, strategy, rewrite, history: [turns], optional}

All but rrr are JSON Lines or a JSON list, gzip'd or not, or a Hugging Face data set.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from common.errors import DataError, UserError
from common.records import clean
from common.rewrites import RewriteExample
from datamodules.formats import row_fields as fields
from datamodules.formats.conversion import converted
from datamodules.formats.open_data import paired_lines, rows
from datamodules.formats.row_counts import RowCounts
from datamodules.formats.row_fields import Row

_TURN = re.compile(r"Q: (.*?) A: (.*)")


@dataclass(frozen=True)
class _Layout:
    """One layout: the fields that tell it from others, and how a row becomes an example."""

    signature: tuple[str, ...]
    strategy: str | None  # what its rewrites count as unless told; None: every row names its own
    example: Callable[[Row, str], RewriteExample]


def _rrr(row: Row, strategy: str) -> RewriteExample:
    return RewriteExample(fields.filled_text(row, "source"), strategy, fields.filled_text(row, "target"))


def _qrecc(row: Row, strategy: str) -> RewriteExample:
    turns: list[str] = []
    for line in filter(str.strip, fields.text(row, "conversation").split("\n")):
        match = _TURN.fullmatch(line.strip())
        if match is None:
            raise DataError(f"field 'conversation' has the line {line[:60]!r}, not 'Q: ... A: ...'")
        turns += match.groups()
    return _example(row, "question", "label", turns, strategy)


def _canard(row: Row, strategy: str) -> RewriteExample:
    return _example(row, "Question", "Rewrite", fields.optional_texts(row, "History"), strategy)


def _rewrites(row: Row, strategy: str) -> RewriteExample:
    return _example(
        row, "question", "rewrite", fields.optional_texts(row, "history"), fields.filled_text(row, "strategy")
    )


def _example(row: Row, question: str, rewrite: str, turns: list[str], strategy: str) -> RewriteExample:
    history = tuple(filter(None, map(clean, turns)))
    return RewriteExample(fields.filled_text(row, question), strategy, fields.filled_text(row, rewrite), history)


_LAYOUTS = {
    "rrr": _Layout(("source", "target"), "decomposition", _rrr),
    "qrecc": _Layout(("conversation", "question", "label"), "gqr", _qrecc),
    "canard": _Layout(("History", "Question", "Rewrite"), "gqr", _canard),
    "rewrites": _Layout(("question", "strategy", "rewrite"), None, _rewrites),
}
REWRITE_LAYOUTS = tuple(_LAYOUTS)


def check_rewrites(layout: str, strategy: str | None) -> None:
    """Check how a file is to be read.

    Raises:
        UserError: If the layout is unknown, or a strategy is named for a layout whose rows name theirs.
    """
    if layout not in _LAYOUTS:
        raise UserError(f"layout {layout!r} is unknown; allowed: {', '.join(REWRITE_LAYOUTS)}.")
    if strategy is not None and _LAYOUTS[layout].strategy is None:
        raise UserError(
            f"strategy {strategy} is given for a file in the layout {layout}, whose rows name theirs: omit it."
        )


def read_rewrites(
    layout: str,
    source: str,
    strategy: str | None = None,
    limit: int | None = None,
    counts: RowCounts | None = None,
) -> Iterator[RewriteExample]:
    """The examples of a file or data set, in file order.

    Args:
        layout: One of REWRITE_LAYOUTS.
        source: A file (of rrr the .source file), or `hf:<id or local data-set folder>[:<config>]:<split>`.
        strategy: What the rewrites count as; the layout's when None: decomposition of rrr, gqr of qrecc and canard.
        limit: Maximum number of rows that are read; all by default.
        counts: Counts the rows that are left out: those with a null or empty field.

    Raises:
        UserError: Immediately, if an argument is wrong.
        MissingInputError: Immediately, if a file does not exist.
        DataError: While reading, if a file is truncated or corrupt, or a row does not match the layout; names the file,
            the line and the cause.
    """
    check_rewrites(layout, strategy)
    found = _rrr_rows(source) if layout == "rrr" else rows(source)
    chosen = _LAYOUTS[layout]

    def example(row: Row) -> RewriteExample:
        return chosen.example(row, strategy or chosen.strategy or "")

    def cure(row: Row, is_first: bool) -> str:
        if not is_first:
            return "Correct that row or fetch the file again."
        fits = [name for name, other in _LAYOUTS.items() if all(fields.key(row, field) for field in other.signature)]
        if fits and layout not in fits:
            return f"It looks like {fits[0]}: use layout {fits[0]}."
        return f"Is this a {layout} file? Known layouts: {', '.join(_LAYOUTS)}."

    return converted(source, islice(found, limit), example, cure, counts or RowCounts())


def _rrr_rows(source: str) -> Iterator[tuple[str, dict]]:
    path = Path(source)
    if ".source" not in path.name:
        raise UserError(
            f"{source} is not named NAME.source: of the layout rrr, name that file; NAME.target lies beside it."
        )
    start, _, end = path.name.rpartition(".source")
    return paired_lines(source, [("source", path), ("target", path.with_name(f"{start}.target{end}"))])
