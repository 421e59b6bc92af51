"""Soft hyphens in long words, so that lines in narrow columns break as real ones do."""

import re

_SYLLABLES = """
instruc-tions instal-lation opera-tion main-tenance manufac-turer tempera-ture elec-trical elec-tronics con-densation \
ventila-tion
protec-tive conduc-tors commis-sioning regula-tions per-mitted equip-ment packag-ing sur-faces inter-vals cus-tomer \
con-nected mois-ture
compo-nents vibra-tion damp-ers improp-er
"""
_SOFT_HYPHEN = "\u00ad"
_HYPHENATED = {word.replace("-", ""): word.replace("-", _SOFT_HYPHEN) for word in _SYLLABLES.split()}
_LONG_WORD = re.compile("|".join(_HYPHENATED), re.IGNORECASE)


def hyphenate(text: str) -> str:
    """The text with soft hyphens in the words of the list."""
    return _LONG_WORD.sub(lambda match: match[0][0] + _HYPHENATED[match[0].lower()][1:], text)
