"""Marks of list items: bullets, and numbers and letters as they stand before items."""

import re

BULLETS = (
    "-*+o\u2022\u00b7\u25e6\u25aa\u25ab\u2023\u2043\u2219\u25cf\u25cb\u25a0\u25a1\u25b8\u25ba\u25b6"
    "\u27a2\u27a4\u2713\u2714\u2013\u2014\u00bb"
)
_BULLET = re.compile(rf"(?P<mark>[{re.escape(BULLETS)}])\s+(?=\S)")
_NUMBER = re.compile(r"(?P<mark>\(?(?:\d{1,3}|[a-zA-Z]|[ivxl]{1,5})[.)])\s+(?=\S)")


def item_mark(text: str) -> tuple[str, str] | None:
    """The mark of a list item as Markdown writes it ("-", "3.") and the text after it.

    None if the text begins with none.

    A mark that Markdown does not have, such as "(a)", stays in the text of an item with "-".
    """
    if match := _BULLET.match(text):
        return "-", text[match.end() :]
    if match := _NUMBER.match(text):
        digits = match["mark"].strip("().")
        return (f"{digits}.", text[match.end() :]) if digits.isdecimal() else ("-", text)
    return None


def is_bulleted(text: str) -> bool:
    """Whether a text begins with a bullet."""
    return _BULLET.match(text) is not None
