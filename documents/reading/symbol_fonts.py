"""Symbol, Wingdings and Webdings: what their characters show, in Unicode.

`symbol_fonts.json` has the characters from 0x20 to 0xff of each font, after the tables of dingbat-to-unicode (Michael
Williamson, BSD-2-Clause); U+FFFD where it has none.
"""

import json
from functools import cache
from pathlib import Path

_PRIVATE = 0xF000  # Word and PDF files add it to the codes of such fonts
_NONE = "\ufffd"


@cache
def _table(font: str) -> str:
    """The characters of a font; empty for another font."""
    fonts = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    name = font.lower().replace("-", " ").removesuffix(" regular")
    return str(fonts.get("symbol" if name.startswith("symbol") and "ui" not in name else name, ""))


def unicode_of(font: str, code: int) -> str:
    """The sign that a font shows for a code; a code of another font, as it is.

    U+FFFD where that is in the private area, or the font has none.
    """
    low = code - _PRIVATE if _PRIVATE <= code <= _PRIVATE + 0xFF else code
    table = _table(font)
    if table and 0x20 <= low <= 0xFF:
        return table[low - 0x20]
    return _NONE if 0xE000 <= code <= 0xF8FF or not 0 < code < 0x110000 or 0xD800 <= code < 0xE000 else chr(code)


def text_of_font(font: str, text: str) -> str:
    """A text in a font, in Unicode; white space and what the font does not have stay as they are."""
    if not _table(font):
        return text
    shown = ((sign, sign if sign.isspace() else unicode_of(font, ord(sign))) for sign in text)
    return "".join(old if new == _NONE else new for old, new in shown)
