"""The normal form of a document, in which every formatter returns it and Markdown keeps it.

No control characters, prose and cells as one line, lists indented by two blanks a level, tables without ragged rows.
Standard library only.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from pathlib import PurePosixPath

from documents.records import MAX_LEVELS, Block, Document, Heading, Image, Paragraph, Table

LIST_ITEM = re.compile(r"( *)(-|\d{1,9}\.) (.*)")  # indentation, marker, text
MAX_LIST_LEVELS = 8
_MAX_LEFT_OUT = 20  # lines about what was left out
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")  # white space is none
NO_TITLE = re.compile(  # what programs fill in by themselves where a title is missing
    r"\W*(?:anonymous|unknown|unspecified|no ?title|none|null|document\d*)\W*|\W*untitled.*|"
    r"(?:microsoft (?:word|excel|powerpoint)|word document|powerpoint presentation)\b.*",
    re.IGNORECASE,
)
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def one_line(text: str) -> str:
    """A text without control characters, every run of white space a single blank."""
    return " ".join(_CONTROL.sub("", text).split())


def title_of(name: str) -> str:
    """A title for a document that has none: its file's name without the suffix."""
    return one_line(PurePosixPath(name).stem) or "Untitled"


def normalized(document: Document) -> Document:
    """The document in normal form.  Idempotent.

    Blocks without content are left out, a title is never empty, levels of headings lie between 1 and `MAX_LEVELS`.
    """
    blocks = tuple(block for given in document.blocks if (block := _block(given)) is not None)
    left_out = tuple(map(one_line, document.left_out))
    if len(left_out) > _MAX_LEFT_OUT + 1:
        left_out = (*left_out[:_MAX_LEFT_OUT], f"and {len(left_out) - _MAX_LEFT_OUT:,} more")
    title = one_line(document.title) or title_of(document.name)
    return replace(document, title=title, blocks=blocks, left_out=left_out)


def _block(block: Block) -> Block | None:
    match block:
        case Heading():
            text = one_line(block.text)
            return replace(block, text=text, level=min(max(block.level, 1), MAX_LEVELS)) if text else None
        case Paragraph():
            text = _code(block.text) if block.code else _prose(block.text)
            return replace(block, text=text) if text else None
        case Table():
            return _table(block)
        case Image():
            return replace(block, caption=one_line(block.caption), text=one_line(block.text)) if block.data else None


def _code(text: str) -> str:
    """Lines without control characters; empty lines at both ends are left out."""
    lines = [_CONTROL.sub("", line) for line in _LINE_END.sub("\n", text).split("\n")]
    held = [place for place, line in enumerate(lines) if line.strip()]
    return "\n".join(lines[held[0] : held[-1] + 1]) if held else ""


def _prose(text: str) -> str:
    """One line, or the lines of a list: prose between items belongs to the item before."""
    lines = [_CONTROL.sub("", line) for line in _LINE_END.sub("\n", text).split("\n")]
    lines = [line for line in lines if line.strip()]
    if not lines or not LIST_ITEM.fullmatch(lines[0]):
        return one_line(text) if not lines or not LIST_ITEM.fullmatch(one_line(text)) else _list([one_line(text)])
    return _list(lines)


def _list(lines: Iterable[str]) -> str:
    items: list[tuple[int, str, str]] = []  # indentation as given, marker, text
    for line in lines:
        if match := LIST_ITEM.fullmatch(line):
            items.append((len(match[1]), match[2], one_line(match[3])))
        else:
            indentation, marker, text = items[-1]
            items[-1] = (indentation, marker, one_line(f"{text} {line}"))
    made, open_ = [], [-1]  # the indentations of the items around
    for indentation, marker, text in items:
        if not text:
            continue
        while open_[-1] >= indentation:
            open_.pop()
        if len(open_) <= MAX_LIST_LEVELS:
            open_.append(indentation)
        made.append("  " * (len(open_) - 2) + f"{marker} {text}")
    return "\n".join(made)


def _table(table: Table) -> Table | None:
    rows = [tuple(map(one_line, row)) for row in table.rows]
    width = max(map(len, rows), default=0)
    rows = [row + ("",) * (width - len(row)) for row in rows]
    if not any(map(any, rows)):
        return None
    header_rows = min(max(table.header_rows, 0), len(rows))
    return replace(table, rows=tuple(rows), header_rows=header_rows, caption=one_line(table.caption))


def without_repeats(cells: Iterable[str]) -> list[str]:
    """Cells of a row or column, each run of equal ones once: a cell that spans several has its text in each."""
    return [cell for cell, _ in groupby(cells)]
