"""The encoding of a text that does not say it, by the letters that languages use.

The text is decoded in each encoding; the one whose letters are most often those of one language wins, the first of
equal ones.
"""

import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from operator import mul

_SAMPLE = 8192  # bytes, of lines that are not ASCII
_SURE = 0.6  # a worse best score is no guess
_RARE = 0.7  # what a rare letter counts, where a common one counts 1
# of no language: quotes, dashes, signs
_NEUTRAL = re.compile("[\x00-\x7f\xa0\u2010-\u203a€£§°©®™«»²³¹½¼¾µ±·\xd7\u3000-\u3030\uff01-\uff5e]")
_LATIN = {  # encoding -> the letters of each of its languages, behind | the rare ones; without those of ASCII
    "windows-1252": "àâæçèéêëîïôœùûüÿ äöüß åäöæøé áéíóúüñ¿¡ªº àáâãçéêíóôõú àèéìíòóùúç àçèéíïòóúü· áæéíóöú|ðýþ",
    "windows-1250": "ąćęłńóśźż áčďéěíňóřšťúůýž áäčďéíĺľňóôŕšťúýž áéíóöőúüű ăâîşţ čćđšž",
    "windows-1254": "âçîğöıİşüû",
    "windows-1257": "ąčęėįšųūž āčēģīķļņšūž äõöšüž",
}
_LATIN |= {"iso-8859-2": _LATIN["windows-1250"]}
_GLUED = re.compile(r"(?<=[^\W\d_])[²³¹½¼¾ªº¿¡£§¤¦¨¬¯\xb4¶\xb8°](?=[^\W\d_])")  # a sign in a word
_MIXED = re.compile(r"[A-Za-z](?=[^\W\d_\x00-\x7f])|[^\W\d_\x00-\x7f](?=[A-Za-z])")  # letters of two scripts in a word
_BROKEN = 3  # characters, as which one counts that cannot be read
_OTHERS = {  # encoding -> common and rare letters
    "windows-1251": ("оеаинтсрвлкмдпу", "бгжзйфхцчшщъыьэюяёіїєґўђјљњћџ"),
    "windows-1253": ("αοιετσνηυρπκμλςωάίόέήύώ", "βγδζθξφχψΐΰϊϋ"),
    "windows-1255": ("יוהלארתבמשםנ", "גדזחטךכןסעףפץצק"),
    "windows-1256": ("اليمونرتبةعدسفهكقحج", "أشطصخضذثىءغئزظؤآإچپگژ،؟ک"),
    "cp874": ("านรกอเงมยลวดทสตบคป", "ะัิีึืุู่้์ำไใโแ็ๆฯพขจชหซผฉฐฑฒฌญฎฏณถธฝฟภศษฬฮฆฤ๊๋"),
}
_OTHERS |= {"koi8-u": _OTHERS["windows-1251"], "cp866": _OTHERS["windows-1251"]}
_DOUBLE = {  # encoding -> where its common characters begin, and what else its language writes
    "cp949": ("euc_kr", 0xB0, 0xC8, ""),
    "cp932": ("euc_jp", 0xB0, 0xCF, "[\u3041-\u30fe]"),
    "euc_jp": ("euc_jp", 0xB0, 0xCF, "[\u3041-\u30fe]"),
    "gb18030": ("gb2312", 0xB0, 0xD7, ""),
    "big5hkscs": ("big5", 0xA4, 0xC6, ""),
}


def guessed(data: bytes) -> str | None:
    """The encoding of a text that is neither ASCII nor UTF-8, by a name that Python knows; None if it is unclear."""
    sample = b"\n".join(line for line in data.splitlines() if not line.isascii())[:_SAMPLE]
    scores = {
        encoding: _score(sample.decode(encoding, "replace"), encoding) for encoding in (*_LATIN, *_DOUBLE, *_OTHERS)
    }
    best = max(scores, key=scores.__getitem__)
    return best if scores[best] >= _SURE else None


def _score(text: str, encoding: str) -> float:
    """How much a text is one of a language that is written in the encoding, up to 1."""
    counts = Counter(char for char in text.replace("İ", "i").lower() if not _NEUTRAL.match(char))
    if not counts:
        return 1.0
    odd = len((_GLUED if encoding in _LATIN else _MIXED).findall(text)) + _BROKEN * text.count("\ufffd")
    odd += sum(one.islower() and other.isupper() for one, other in pairwise(text) if not (one + other).isascii())
    capitals = sum(char.isupper() for char in text if not char.isascii()) if encoding in _OTHERS else 0
    ways = zip(*(_weights(encoding, char) for char in counts), strict=True)
    good = max(sum(map(mul, way, counts.values())) for way in ways)
    return (good - odd - 0.1 * capitals) / counts.total()


@lru_cache(maxsize=2**16)
def _weights(encoding: str, char: str) -> tuple[float, ...]:
    """How common a character is in each language of an encoding, up to 1."""
    if encoding in _LATIN:
        return tuple(
            1.0 if char in common else 0.95 * (char in rare)
            for common, _, rare in (letters.partition("|") for letters in _LATIN[encoding].split())
        )
    if encoding in _OTHERS:
        common, rare = _OTHERS[encoding]
        return (1.0 if char in common else _RARE if char in rare else 0.0,)
    codec, first, last, own = _DOUBLE[encoding]
    if own and re.match(own, char):
        return (1.0,)
    raw = char.encode(codec, "ignore")
    return ((1.0 if first <= raw[0] <= last else 0.5) if len(raw) == 2 else 0.0,)
