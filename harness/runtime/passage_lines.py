"""A passage as lines for the terminal: where it stands, why it was chosen, its text with tables as tables."""

import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby

from common.records import Passage
from common.shown_text import terminal
from common.words import first_characters
from harness.runtime.citation import citation, images_of

MIN_WIDTH = 20  # columns
_METADATA_CHARACTERS = 300  # shown of a passage's metadata
_CELL_BORDER = re.compile(r"(?<!\\)\|")


def passage_lines(
    number: str, passage: Passage, reasons: Sequence[str], width: int, characters: int | None
) -> Iterator[str]:
    """A passage in lines: title, reasons, text, image and metadata, then an empty line.

    The title is followed by the corpus's own id or the place in a document.

    Args:
        number: Stands before the title.
        passage: The passage.
        reasons: Why it was chosen.
        width: Columns at which lines are wrapped; rows of tables are not.
        characters: At most this many of the text, cut between words; all when None.
    """
    about = passage.metadata or {}
    own_id = f"[{passage.corpus_id}] " if passage.corpus_id else ""
    indent = " " * (len(number) + 1)
    cited = citation(passage)
    title = f"{about.get('document_title') or ''} [{cited}]" if cited else passage.title or "(no title)"
    yield from wrapped(f"{number} {own_id}{title.strip()}", width, indent, first="")
    if reasons:
        yield from wrapped(f"({'; '.join(reasons)})", width, indent)
    text = passage.text if characters is None else first_characters(passage.text, characters)
    for is_table, lines in groupby(text.split("\n"), key=lambda line: line.startswith("|")):
        if is_table:
            yield from (indent + line for line in _aligned([*map(terminal, lines)], width - len(indent)))
        else:
            yield from (part for line in lines for part in wrapped(line, width, indent))
    if cited:
        yield from (indent + terminal(f"Image: {image}") for image in images_of(passage))
    elif about:
        metadata = first_characters(json.dumps(about, ensure_ascii=False), _METADATA_CHARACTERS)
        yield from wrapped(metadata, width, indent)
    yield ""


def wrapped(text: str, width: int, indent: str, first: str | None = None) -> list[str]:
    """Lines of at most `width` columns, broken between words; see `common.shown_text.terminal`."""
    return textwrap.wrap(
        terminal(text),
        max(width, MIN_WIDTH),
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _aligned(lines: list[str], width: int) -> list[str]:
    """The lines of a Markdown table with equally wide columns, or as they are if these would not fit."""
    rows = [[cell.strip() for cell in _CELL_BORDER.split(line)[1:-1]] for line in lines]
    if len({len(row) for row in rows}) != 1 or not rows[0]:
        return lines
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    if sum(widths) + 3 * len(widths) + 1 > width:
        return lines
    return [
        f"| {' | '.join(_filled(cell, columns) for cell, columns in zip(row, widths, strict=True))} |" for row in rows
    ]


def _filled(cell: str, columns: int) -> str:
    """A cell filled with blanks, the line under the header with hyphens."""
    return cell.ljust(columns, "-" if set(cell) == {"-"} else " ")
