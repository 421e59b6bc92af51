"""The encodings of the web by the names that pages give them (https://encoding.spec.whatwg.org/).

As browsers read them: gb2312 is gb18030, iso-8859-1 is windows-1252, shift_jis is windows-31j.
"""

import codecs
import re

_NOT_IN_PYTHON = {  # label -> one that Python knows
    "cseucpkdfmtjapanese": "euc-jp", "csisolatin9": "iso-8859-15", "csiso88596e": "iso-8859-6",
    "csiso88596i": "iso-8859-6", "csiso88598e": "iso-8859-8", "csiso88598i": "iso-8859-8", "logical": "iso-8859-8",
    "visual": "iso-8859-8", "sun_eu_greek": "iso-8859-7", "koi": "koi8-r", "koi8": "koi8-r", "koi8-ru": "koi8-u",
    "csmacintosh": "macintosh", "mac": "macintosh", "mac-ukrainian": "mac-cyrillic", "dos-874": "cp874",
    "windows-874": "cp874", "windows-949": "cp949", "windows-31j": "cp932", "sjis": "cp932", "csgb2312": "gbk",
    "gb_2312": "gbk", "gb_2312-80": "gbk", "cn-big5": "big5", "x-big5": "big5", "cseuckr": "cp949",
    "csksc56011987": "cp949", "iso-ir-149": "cp949", "ks_c_5601-1989": "cp949", "ksc_5601": "cp949",
    "unicode-1-1-utf-8": "utf-8", "unicode11utf8": "utf-8", "unicode20utf8": "utf-8", "csunicode": "utf-16",
    "iso-10646-ucs-2": "utf-16", "ucs-2": "utf-16", "unicode": "utf-16", "unicodefeff": "utf-16",
    "unicodefffe": "utf-16", "user-defined": "cp1252",
}  # fmt: skip
_READ_AS = {  # Python's name of what a label says -> that of what is read: what it contains, and more
    "ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874",
    "gb2312": "gb18030", "gbk": "gb18030", "big5": "big5hkscs", "euc_kr": "cp949", "shift_jis": "cp932",
    "iso2022_jp": "iso2022_jp_ext", "utf-16": "utf-8", "utf-16-le": "utf-8", "utf-16-be": "utf-8",
}  # fmt: skip
_OTHERS = re.compile(
    r"utf-8|gb18030|big5hkscs|euc_jp|cp932|cp949|hz|iso2022_kr|koi8-[ru]|mac-(?:roman|cyrillic)|cp125[0-8]|cp866|cp874"
    r"|iso8859-(?:[2-8]|1[03-6])"
)


def web_encoding(label: str) -> str | None:
    """Python's name of the encoding that a page's label stands for; None for an unknown one.

    A page whose label can be read as ASCII is not in UTF-16, whatever it says: it is read as UTF-8.
    """
    label = label.strip("\t\n\f\r ").lower().removeprefix("x-")
    label = re.sub(r"iso8859(?=\d)", "iso8859-", _NOT_IN_PYTHON.get(label, label))
    label = re.sub(r"(?<=iso-8859-[68])-[ei]", "", label)
    try:
        name = codecs.lookup(label).name
    except (LookupError, UnicodeError, ValueError):
        return None
    name = _READ_AS.get(name, name)
    return name if _OTHERS.fullmatch(name) or name in _READ_AS.values() else None
