"""The meaning of a Word document's styles: headings by outline level, in any language and also custom ones.

Titles, captions, code, contents.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from docx.oxml.ns import qn
from lxml import etree

BODY_LEVEL = 9  # outline level of text that is no heading
_LOOKS = ("vanish", "strike", "dstrike", "vertAlign")  # properties of text that count
_FONTS = ("ascii", "hAnsi")  # attributes that name a text's font
_MAX_BASES = 20  # styles that build on each other


@dataclass(frozen=True, slots=True)
class DocxStyle:
    """A paragraph style, with what it takes over from the styles that it builds on."""

    name: str = ""  # lower-case; names of built-in styles are English in every language
    outline: int | None = None  # outline level from 0; None if no style says one
    list_id: str = ""  # of automatic numbers
    list_level: int = 0

    @property
    def is_title(self) -> bool:
        """Whether it is the document's title."""
        return self.name == "title"

    @property
    def is_caption(self) -> bool:
        """Whether it is a caption of a table or an image."""
        return self.name in ("caption", "table caption", "figure caption", "image caption", "captioned figure")

    @property
    def is_contents(self) -> bool:
        """Whether it is a line of a table of contents or index, which repeat what stands elsewhere."""
        return re.match(r"(?:toc|contents|index|table of figures)\b", self.name) is not None

    @property
    def is_code(self) -> bool:
        """Whether line breaks and blanks count."""
        return re.search(r"\b(?:code|preformatted|listing|verbatim|macro text|macro)\b", self.name) is not None


class Styles:
    """The styles of a document.

    Args:
        root: The styles part's root element; None if the document has none.
    """

    def __init__(self, root: etree._Element | None) -> None:
        self._elements: dict[str, etree._Element] = {}
        self._styles, self._values = cache(self._read), cache(self._read_values)
        self._default = ""
        for element in root.iterfind(qn("w:style")) if root is not None else ():
            if element.get(qn("w:type")) in (None, "paragraph", "character"):
                id_ = element.get(qn("w:styleId")) or ""
                self._elements.setdefault(id_, element)
                if element.get(qn("w:type")) != "character" and element.get(qn("w:default")) in ("1", "true", "on"):
                    self._default = id_

    def style(self, id_: str | None) -> DocxStyle:
        """A paragraph's style by its id; the default style without one."""
        return self._styles(self._default if id_ is None else id_)

    def look(self, run: etree._Element, paragraph_style: str | None) -> tuple[str, str, str]:
        """The rule that leaves a run of text out, or nothing; how it stands in its line; and its font.

        By its own properties, its style, or that of its paragraph (None for the default one). In its line it is a
        "superscript", a "subscript", or stands on the line: another word or nothing.
        """
        own = run.find(qn("w:rPr"))
        values = self._values(self._default if paragraph_style is None else paragraph_style)
        if own is not None:
            values = values | self._values(value(own, "w:rStyle")) | _run_values(own)
        is_on = {name for name, given in values.items() if given not in ("0", "false", "off")}
        rules = {"vanish": "hidden text left out", "strike": "struck text left out", "dstrike": "struck text left out"}
        rule = next((rule for name, rule in rules.items() if name in is_on), "")
        return rule, values.get("vertAlign", ""), values.get("font", "")

    def _read_values(self, id_: str) -> dict[str, str]:
        """The properties of the text of a style."""
        values: dict[str, str] = {}
        for element in self._chain(id_):
            properties = element.find(qn("w:rPr"))
            values = (_run_values(properties) if properties is not None else {}) | values
        return values

    def _read(self, id_: str) -> DocxStyle:
        chain = list(self._chain(id_))
        name = value(chain[0], "w:name").lower() if chain else id_.lower()
        outlines = [level for element in chain if (level := value(element, "w:pPr/w:outlineLvl")).isdecimal()]
        outline = int(outlines[0]) if outlines else None
        if outline is None:  # a style of a program that leaves the outline level to the name
            named = [re.fullmatch(r"heading ([1-9])", value(element, "w:name").lower()) for element in chain]
            outline = next((int(match[1]) - 1 for match in named if match), None)
        lists = [found for element in chain if (found := value(element, "w:pPr/w:numPr/w:numId"))]
        levels = [level for element in chain if (level := value(element, "w:pPr/w:numPr/w:ilvl")).isdecimal()]
        list_level = int(levels[0]) if levels else outline or 0
        return DocxStyle(name, outline, lists[0] if lists else "", list_level)

    def _chain(self, id_: str) -> Iterator[etree._Element]:
        """A style, the one that it builds on, and so on."""
        for _ in range(_MAX_BASES):
            element = self._elements.get(id_)
            if element is None:
                return
            yield element
            id_ = value(element, "w:basedOn")


def _run_values(properties: etree._Element) -> dict[str, str]:
    known = {name: properties.find(qn(f"w:{name}")) for name in _LOOKS}
    values = {name: found.get(qn("w:val")) or "" for name, found in known.items() if found is not None}
    fonts = properties.find(qn("w:rFonts"))
    named = next((name for key in _FONTS if fonts is not None and (name := fonts.get(qn(f"w:{key}")))), "")
    return values | ({"font": named} if named else {})


def value(element: etree._Element | None, path: str) -> str:
    """The attribute `w:val` of an element below; empty if there is none.

    `path`: names with prefixes between slashes.
    """
    found = None if element is None else element.find("/".join(map(qn, path.split("/"))))
    return "" if found is None else (found.get(qn("w:val")) or "")


def number_of(text: str | None, default: int = 0) -> int:
    """A whole number of up to six digits; `default` for anything else."""
    return int(text) if text and text.isdecimal() and len(text) < 7 else default
