"""Weight, slant and equal width of all characters, from a font's name."""

import re

_SUBSET = re.compile(r"^[A-Z]{6}\+")
# TeX's Computer Modern and its relatives name their shapes by letters: CMBX10 is bold, CMTI10 italic, CMTT10
# monospaced.
_TEX = re.compile(r"^(?:CM|EC|SF|LM|CS|PL|TC)(?P<shape>[A-Z]+)\d+$", re.IGNORECASE)
_TEX_BOLD = frozenset(
    ["B", "BX", "BXTI", "BXSL", "SSBX", "SSDC", "BSY", "MIB", "RB", "SB", "BI", "TB", "BTT", "BTL", "SO"]
)
_TEX_ITALIC = frozenset(["TI", "SL", "BXTI", "BXSL", "SSI", "ITT", "SLTT", "MI", "MIB", "RI", "SI", "BI", "U"])
_TEX_MONOSPACED = frozenset(["TT", "ITT", "SLTT", "TCSC", "BTT", "BTL", "TK", "TB", "STT"])
_BOLD = re.compile(
    r"bold|black|heavy|demi(?!light)|[-,]medi(?:ital)?$|[-,]b(?:d|i|it)?$|(?<=[a-z])bd(?![a-z])", re.IGNORECASE
)
_ITALIC = re.compile(r"ital|obli|slant|kursiv|[-,]b?(?:i|it)$", re.IGNORECASE)
_MONOSPACED = re.compile(
    r"mono(?!type)|courier|consol|typewriter|menlo|fixed|terminal|inconsolata|source ?code|fira ?code|cascadia|"
    r"nimbusmon|(?<![a-z])(?:tt|hack)(?![a-z])|tt\d*$",
    re.IGNORECASE,
)


def base_name(name: str) -> str:
    """A font's name without the prefix of a subset ("ABCDEF+")."""
    return _SUBSET.sub("", name)


def is_bold(name: str) -> bool:
    """Whether a font is named as a bold one."""
    match = _TEX.match(name)
    return match["shape"].upper() in _TEX_BOLD if match else bool(_BOLD.search(name))


def is_italic(name: str) -> bool:
    """Whether a font is named as an italic or slanted one."""
    match = _TEX.match(name)
    return match["shape"].upper() in _TEX_ITALIC if match else bool(_ITALIC.search(name))


def is_monospaced(name: str) -> bool:
    """Whether a font is named as one whose characters are equally wide."""
    match = _TEX.match(name)
    return match["shape"].upper() in _TEX_MONOSPACED if match else bool(_MONOSPACED.search(name))
