"""HTML pages as documents, by lxml.

Pages of documentation generators (Sphinx, Texinfo, DocBook, pandoc) and any others. Nothing is fetched.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from lxml import etree

from common.errors import DataError
from documents.left_out import LeftOut
from documents.normal_form import NO_TITLE, normalized, one_line, title_of
from documents.reading.block_builder import BlockBuilder
from documents.reading.html_elements import (
    BLOCKS,
    HEADINGS,
    MAIN,
    classes_of,
    is_content,
    names,
    script_of,
    script_text,
    tag_of,
    text_of,
)
from documents.reading.html_tables import is_layout, read_table
from documents.reading.image_files import LONGEST_SOURCE, ImageLoader, linked_image
from documents.reading.outline import titled
from documents.reading.text_encoding import decoded
from documents.records import Block, Document, Heading, Image, Paragraph
from documents.written_numbers import written

_LISTS = names("ul ol dl")
_DIVISIONS = names(  # of DocBook, whose headings do not always say their level
    "part chapter appendix preface glossary bibliography reference refentry sect1 sect2 sect3 sect4 sect5 refsect1 "
    "refsect2"
)
_FIGURES = names("figure table informalfigure float")  # classes of elements that hold a figure and its caption
_TITLES = names("title settitle")  # classes of a heading that is the document's title
_CAPTIONS = names("caption title")
_WHOLE = re.compile(r"[+-]?\d{1,8}", re.ASCII)
_LIST_STYLE = re.compile(r"list-style(?:-type)?\s*:[^;]*\b(lower|upper)-(alpha|latin|roman)", re.IGNORECASE)
_KINDS = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman", "1": "decimal"}


def parse_html(data: bytes, name: str, load_image: ImageLoader | None = None) -> Document:
    """A document from an HTML page, in normal form.

    Args:
        data: The file's bytes.
        name: The document's name.
        load_image: Reads images that are files; it gets the address as it stands in the page.

    Raises:
        DataError: If the file is empty.
    """
    left_out = LeftOut()
    root = _tree(decoded(data, left_out, is_html=True), left_out)
    if root is None:
        raise DataError(f"{name} is an empty HTML file.")
    first = next(root.iter("h1"), None)
    named = text_of(first, LeftOut()) if first is not None and classes_of(first) & _TITLES else ""
    title, blocks = titled(_blocks(root, load_image, left_out), named)
    said = one_line(root.findtext(".//title") or "")
    title = title or ("" if NO_TITLE.fullmatch(said) else said) or title_of(name)
    return normalized(Document(name, title, tuple(blocks), left_out=left_out.lines))


def html_blocks(markup: str, load_image: ImageLoader | None, left_out: LeftOut, framed: bool = False) -> list[Block]:
    """The blocks of a piece of HTML.

    Args:
        markup: The piece.
        load_image: See `parse_html`.
        left_out: Gets what is not read.
        framed: Whether it stands in a frame: frames in it are left out.
    """
    root = _tree(markup, left_out)
    return [] if root is None else _blocks(root, load_image, left_out, framed)


def html_text(markup: str, left_out: LeftOut) -> str:
    """The text of a piece of HTML on one line."""
    root = _tree(markup, left_out)
    return "" if root is None else text_of(root, left_out)


def _tree(text: str, left_out: LeftOut) -> etree._Element | None:
    """The tree of a page; None without any element.

    The parser bounds its depth, loads nothing and knows only HTML's entities.
    """
    parser = etree.HTMLParser(
        encoding="utf-8", no_network=True, recover=True, huge_tree=True, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError:  # nothing in it
        return None
    if any(error.level_name == "FATAL" for error in parser.error_log):
        left_out.append("HTML after elements that are nested more than 2,000 levels deep")
    return root


def _blocks(
    root: etree._Element, load_image: ImageLoader | None, left_out: LeftOut, framed: bool = False
) -> list[Block]:
    mains = [element for element in root.iter() if tag_of(element) == "main" or element.get("role") == "main"]
    if len(mains) != 1:
        return _Reader(load_image, left_out, framed).read(root)
    for inside in (mains[0], *mains[0].iterancestors()):
        for beside in (*inside.itersiblings(preceding=True), *inside.itersiblings()):
            if is_content(beside, left_out):
                left_out.text("text outside of the main part left out", text_of(beside, left_out))
    return _Reader(load_image, left_out, framed).read(mains[0])


@dataclass
class _Figure:
    """A figure that is being read."""

    element: etree._Element
    caption_element: etree._Element | None
    caption: str  # empty once it is used


class _Reader:
    """Walks a tree in the order of the document, without recursion."""

    def __init__(self, load_image: ImageLoader | None, left_out: LeftOut, framed: bool) -> None:
        self._load_image, self._left_out, self._framed = load_image, left_out, framed
        self._built = BlockBuilder()
        self._text: list[str] = []  # since the last border of a block
        self._joint = " "
        self._marks: list[Callable[[etree._Element], str]] = []  # of the items of each list around
        self._divisions: list[int | None] = []  # level of the first heading in each division around; None before it
        self._figures: list[_Figure] = []

    def read(self, root: etree._Element) -> list[Block]:
        """The blocks of an element."""
        walk = etree.iterwalk(root, events=("start", "end"))
        for event, element in walk:
            tag = tag_of(element)
            if event == "start":
                if self._is_whole(element, tag):
                    walk.skip_subtree()
                    continue
                self._start(element, tag)
                self._text.append(element.text or "")
            else:
                if tag in BLOCKS:
                    self._end(element, tag)
                if element is not root:
                    self._text.append(element.tail or "")
        self._border()
        self._built.end_list()
        return self._built.blocks

    def _is_whole(self, element: etree._Element, tag: str) -> bool:
        """Whether an element is read as a whole or not at all; if so, it is read."""
        if tag == "iframe" and (srcdoc := element.get("srcdoc")) and not self._framed:
            self._border()
            for block in html_blocks(srcdoc, self._load_image, self._left_out, framed=True):
                self._built.add(block)
            return True
        if not is_content(element, self._left_out) or (self._figures and element is self._figures[-1].caption_element):
            return True
        if tag in HEADINGS:
            self._border()
            self._built.add(Heading(text_of(element, self._left_out).rstrip("\u00b6 "), self._level(HEADINGS[tag])))
        elif tag == "pre":
            self._border()
            self._built.add(Paragraph(text_of(element, self._left_out, is_code=True), code=True))
        elif tag == "table" and not is_layout(element):
            self._border()
            caption = self._figure_caption() or self._built.take_caption()
            self._built.add(read_table(element, caption, self._left_out))
        elif tag == "img":
            self._image(element)
        elif script := script_of(element, tag):
            self._text.append(script_text(element, script, self._text, self._left_out))
        else:
            return False
        return True

    def _start(self, element: etree._Element, tag: str) -> None:
        if tag not in BLOCKS:
            if tag == "br":
                self._text.append(" ")
            return
        self._border()
        if tag in _LISTS:
            self._built.open_list()
            self._marks.append(_marks(element) if tag == "ol" else lambda item: "-")
        elif tag == "li" and self._marks:
            self._built.item(self._marks[-1](element))
        elif tag == "dt" and self._marks:
            self._built.item()
        elif tag == "dd":
            self._joint = ": "
        elif _is_division(element, tag):
            self._divisions.append(None)
        if tag == "figure" or classes_of(element) & _FIGURES:
            self._open_figure(element)

    def _end(self, element: etree._Element, tag: str) -> None:
        self._border()
        if tag in _LISTS:
            self._marks.pop()
            self._built.close_list()
            if not self._marks:
                self._built.end_list()
        elif _is_division(element, tag):
            self._divisions.pop()
        if self._figures and self._figures[-1].element is element:
            self._built.prose(self._figures.pop().caption)

    def _border(self) -> None:
        """What was read since the last border is a paragraph."""
        text = one_line("".join(self._text))
        self._text = []
        if text:
            self._built.prose(text, self._joint)
            self._joint = " "

    def _level(self, level: int) -> int:
        """The level of a heading: below that of the division around, whatever its element."""
        above = [known for known in self._divisions[:-1] if known is not None]
        if self._divisions and self._divisions[-1] is None:
            self._divisions[-1] = level = max(level, above[-1] + 1 if above else 1)
        return level

    def _open_figure(self, element: etree._Element) -> None:
        caption = next(
            (part for part in element.iterdescendants("figcaption", "p", "div") if tag_of(part) == "figcaption"
                or classes_of(part) & _CAPTIONS),
            None,
        )  # fmt: skip
        self._figures.append(_Figure(element, caption, text_of(caption, self._left_out) if caption is not None else ""))

    def _figure_caption(self) -> str:
        """The caption of the figure around, once."""
        if not self._figures:
            return ""
        caption, self._figures[-1].caption = self._figures[-1].caption, ""
        return caption

    def _image(self, element: etree._Element) -> None:
        """An image that is read, or its description in the text.

        One without description outside of a figure is an ornament.
        """
        source, alt = (element.get("src") or "").strip(), one_line(element.get("alt") or "")
        if not alt and not self._figures:
            return
        found = linked_image(source, self._load_image)
        if found is None:
            self._left_out.append(f"image {source[:LONGEST_SOURCE]}: not read")
            self._text.append(f" {alt} ")
            return
        self._border()
        caption = self._figure_caption()
        self._built.add(Image(*found, caption or alt, alt if caption and alt != caption else ""))


def _marks(element: etree._Element) -> Callable[[etree._Element], str]:
    """The marks of the items of an `ol` element, in order: what Markdown does not have, such as "c.", behind a "-"."""
    step = 1 if element.get("reversed") is None else -1
    next_ = _whole(element.get("start"), 1 if step > 0 else sum(tag_of(child) == "li" for child in element))

    def mark(item: etree._Element) -> str:
        nonlocal next_
        number = _whole(item.get("value"), next_)
        next_ = number + step
        text = written(number, _kind(item) or _kind(element))
        return f"{text}." if text.isdecimal() else f"- {text}."

    return mark


def _whole(text: str | None, default: int) -> int:
    return int(text) if text and _WHOLE.fullmatch(text.strip()) else default


def _kind(element: etree._Element) -> str:
    """How an element says that numbers are written, by its type or style, see `written`; empty if it does not."""
    if style := _LIST_STYLE.search(element.get("style") or ""):
        return style[1].lower() + ("Roman" if style[2].lower() == "roman" else "Letter")
    return _KINDS.get(element.get("type") or "", "")


def _is_division(element: etree._Element, tag: str) -> bool:
    return tag in MAIN or (tag == "div" and bool(classes_of(element) & _DIVISIONS))
