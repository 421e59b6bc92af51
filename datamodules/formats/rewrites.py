"""Reads examples of query rewriting from official files.  Standard library only.

    rrr        Rewrite-Retrieve-Read (Ma et al. 2023): NAME.source with questions and NAME.target with search queries,
               line by line, several queries of a question separated by ";"; the path names the .source file
    qrecc      QReCC (Anantha et al. 2021): {Context: [turns], Question, Rewrite}; as AdaQR has it:
               {conversation: "Q: ... A: ..." lines, question, label}
    canard     CANARD (Elgohary et al. 2019): {History: [page title, section title, turns ...], Question, Rewrite}
    rewrites   this project's: {question, rewrite, strategy, history: [turns]}, of which the last two are optional; the
               case of the names does not count, and in a cell of a table turns are parted by | or are a list

All but rrr are JSON Lines, a JSON list, CSV or TSV, gzip'd or not, or a Hugging Face data set.
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
from datamodules.formats.recognition import AUTO, best_of, fitting
from datamodules.formats.row_counts import RowCounts
from datamodules.formats.row_fields import EmptyFieldError, Row

_FIELDS = ("question", "query", "rewrite", "strategy", "history")  # of the layout rewrites
_TURN = re.compile(r"Q: (.*?) A: (.*)")


@dataclass(frozen=True)
class _Layout:
    """One layout: the fields that tell it from others (`recognition`), and how a row becomes an example."""

    SIGNATURE_FIELDS: tuple[str, ...]
    strategy: str  # what its rewrites count as unless told
    example: Callable[[Row, str], RewriteExample]
    ANY_CASE: bool = False


def _rrr(row: Row, strategy: str) -> RewriteExample:
    return RewriteExample(fields.filled_text(row, "source"), strategy, fields.filled_text(row, "target"))


def _qrecc(row: Row, strategy: str) -> RewriteExample:
    if fields.has(row, "Context"):
        return _example(row, "Question", "Rewrite", fields.optional_texts(row, "Context"), strategy)
    turns: list[str] = []
    for line in filter(str.strip, fields.text(row, "conversation").split("\n")):
        match = _TURN.fullmatch(line.strip())
        if match is None:
            raise DataError(f"field 'conversation' has the line {line[:60]!r}, not 'Q: ... A: ...'")
        if line.count(" A: ") > 1:
            raise EmptyFieldError("field 'conversation' has a line with several ' A: ': which of them parts it?")
        turns += match.groups()
    return _example(row, "question", "label", turns, strategy)


def _rewrites(row: Row, strategy: str) -> RewriteExample:
    row = fields.plain(row)
    turns = [fields.as_text_of(turn, "an item of field 'history'") for turn in fields.listed(row, "history")]
    return _example(row, "question|query", "rewrite", turns, clean(fields.optional_text(row, "strategy")) or strategy)


def _example(row: Row, question: str, rewrite: str, turns: list[str], strategy: str) -> RewriteExample:
    history = tuple(filter(None, map(clean, turns)))
    return RewriteExample(fields.filled_text(row, question), strategy, fields.filled_text(row, rewrite), history)


_LAYOUTS = {
    "rrr": _Layout(("source", "target"), "decomposition", _rrr),
    "qrecc": _Layout(("conversation|Context", "question|Question", "label|Rewrite"), "gqr", _qrecc),
    "canard": _Layout(("History", "Question", "Rewrite"), "gqr", _rewrites),
    "rewrites": _Layout(("question|query", "rewrite"), "gqr", _rewrites, ANY_CASE=True),
}
REWRITE_LAYOUTS = tuple(_LAYOUTS)


def check_rewrites(layout: str) -> None:
    """Raise UserError if no layout of rewrites, nor `auto`, has the name."""
    if layout != AUTO and layout not in _LAYOUTS:
        raise UserError(f"layout {layout!r} is unknown; allowed: {', '.join((AUTO, *REWRITE_LAYOUTS))}.")


def read_rewrites(
    layout: str,
    source: str,
    strategy: str | None = None,
    limit: int | None = None,
    counts: RowCounts | None = None,
) -> Iterator[RewriteExample]:
    """The examples of a file or data set, in file order.

    Args:
        layout: One of REWRITE_LAYOUTS, or `auto`.
        source: A file (of rrr the .source file), or `hf:<id or local data-set folder>[:<config>]:<split>`.
        strategy: What the rewrites count as; the layout's when None: decomposition of rrr, else gqr. Rows of the layout
            rewrites may name their own.
        limit: Maximum number of rows that are read; all by default.
        counts: Counts the rows that are left out: those with a null or empty field.

    Raises:
        UserError: Immediately, if an argument is wrong.
        MissingInputError: Immediately, if a file does not exist.
        DataError: While reading, if a file is truncated or corrupt, or a row does not match the layout; names the file,
            the line and the cause.
    """
    check_rewrites(layout)
    if layout == AUTO and ".source" in Path(source).name:
        layout = "rrr"
    found = _rrr_rows(source) if layout == "rrr" else rows(source)
    return _read(layout, source, islice(found, limit), strategy, counts or RowCounts())


def _read(
    layout: str, source: str, found: Iterator[tuple[str, Row]], strategy: str | None, counts: RowCounts
) -> Iterator[RewriteExample]:
    if layout == AUTO:
        layout = best_of(_LAYOUTS, next(rows(source))[1], source, "rewrites")
    chosen = _LAYOUTS[layout]

    def look(row: Row, place: str) -> None:
        if layout == "rewrites":
            counts.add_unknown_fields(fields.plain(row), _FIELDS, layout, place)

    def example(row: Row) -> RewriteExample:
        return chosen.example(row, strategy or chosen.strategy)

    def cure(row: Row, is_first: bool) -> str:
        if not is_first:
            return "Correct that row or fetch the file again."
        fits = [*fitting(_LAYOUTS, row)]
        if fits and layout not in fits:
            return f"It looks like {fits[0]}: use layout {fits[0]}."
        return f"Is this a {layout} file? Known layouts: {', '.join(_LAYOUTS)}."

    yield from converted(source, found, example, cure, counts, look=look)


def _rrr_rows(source: str) -> Iterator[tuple[str, dict]]:
    path = Path(source)
    if ".source" not in path.name:
        raise UserError(
            f"{source} is not named NAME.source: of the layout rrr, name that file; NAME.target lies beside it."
        )
    start, _, end = path.name.rpartition(".source")
    return paired_lines(source, [("source", path), ("target", path.with_name(f"{start}.target{end}"))])
