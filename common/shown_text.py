"""Escapes data for terminal, CSV, Markdown and HTML, so that no text in it acts as a command or as markup.

Questions, passages, titles, answers, ids, names of files and replies of models are data. Every writer of reports, model
cards, tables and error lines passes them through here. JSON needs none of it and holds each text as it is.
"""

import re
from html import escape

_CONTROL = re.compile(  # control characters, those that turn the direction of writing, line ends of Unicode, half pairs
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_FORMULA = re.compile(r"['\s]*[=+\-@\uff1d\uff0b\uff0d\uff20]|'*[\t\n]")
_BACKSLASH = re.compile(r"\\(?=[!-/:-@\[-`{-~]|$)")
_ANYWHERE = re.compile(r"[`~|]|\*(?! )|(?<! )\*|(?<![^\W_])_|_(?![^\W_])|(?<=:)/(?=/)|(?<=\bwww)\.", re.IGNORECASE)
_LINK = re.compile(r"\][(\[:]")  # brackets without one are brackets
_OF_LINKS = re.compile(r"[\[\]]|(?<=\])\(")
_AT_THE_START = re.compile(  # a heading, quotation, list, rule or box to tick
    r"^(?:(\d{1,9})(?=[.)](?:\s|$))|(?=#{1,6}(?:\s|$)|>|[-+](?:\s|$)|[-=]+$|\[[ xX]\]))"
)
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_ENTITY = re.compile(r"&(?=#|\w+;)")


def terminal(text: str) -> str:
    r"""Text that a terminal prints as it is: ESC becomes `\x1b`. Line breaks and tabs stay."""
    return _CONTROL.sub(_named, text.replace("\r\n", "\n"))


def csv_cell(text: str) -> str:
    """Text for a cell of a CSV file that no spreadsheet reads as a formula; the `csv` module adds the quotes.

    A text that begins with =, +, -, @, a tab or a line break, blanks before it or not, gets an apostrophe in front; so
    does such a text behind apostrophes. Without its first apostrophe a marked cell is the text again.
    """
    text = terminal(text)
    return f"'{text}" if _FORMULA.match(text) else text


def markdown(text: str) -> str:
    """One line of Markdown, also for the cell of a table, that reads as the text: no links, images, tags, emphasis."""
    text = _BACKSLASH.sub(r"\\\\", " ".join(terminal(text).split()))
    text = _OF_LINKS.sub(r"\\\g<0>", text) if _LINK.search(text) else text
    text = _TAG.sub("&lt;", _ENTITY.sub("&amp;", _ANYWHERE.sub(r"\\\g<0>", text)))
    return _AT_THE_START.sub(r"\1\\", text)


def markdown_code(text: str) -> str:
    """Text between two backticks of Markdown."""
    return " ".join(terminal(text).split()).replace("`", "'")


def html(text: str) -> str:
    """Text for an element or a quoted attribute of HTML."""
    return escape(terminal(text))


def _named(control: re.Match[str]) -> str:
    code = ord(control[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
