"""Markdown files (CommonMark with pipe tables, by markdown-it-py) as documents.

Our own, corrected by hand or not, and users' own.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.common.utils import unescapeAll
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.reference import reference
from markdown_it.rules_block.table import escapedSplit
from markdown_it.token import Token

from documents.left_out import LeftOut
from documents.markdown_writing import HEADING_ATTRIBUTES, LOWERED, NOTE, RAISED
from documents.normal_form import normalized, one_line, title_of
from documents.raised import lowered, note_mark, raised
from documents.reading.block_builder import BlockBuilder
from documents.reading.html_reading import html_blocks, html_text
from documents.reading.image_files import LONGEST_SOURCE, ImageLoader, linked_image
from documents.reading.markdown_tags import is_markup, with_text
from documents.reading.outline import titled
from documents.records import Block, Document, Heading, Image, Paragraph, Table

_MAX_BRACKETS = 2000  # in one paragraph or cell
_MAX_NESTING = 60  # quotations and lists in each other; what is deeper is left out
_MAX_BETWEEN = 200  # parts of a text between a tag and its partner
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_SCRIPT = re.compile(rf"(?<=[\w)\]]){RAISED}|(?<=\w){LOWERED}|{NOTE}")
_NOTE_TEXT = re.compile(rf"^[> ]*{NOTE}:[ \t]*", re.MULTILINE)
_COMMENT = re.compile(r"<!--((?:(?!<!--|-->).)*)-->", re.DOTALL)
_MARK = re.compile(r"<!--[ \t]*(?:(pages|page|level|header rows)(?: (\d{1,9}))?[ \t]*)?-->")


def parse_markdown(
    text: str, name: str, load_image: ImageLoader | None = None, left_out: LeftOut | None = None
) -> Document:
    """A document from Markdown, in normal form.

    Its title is the only first-level heading, or `title` in the front matter, or else the file's name; the highest
    headings below the title have level 1. An image that is not read stays as its caption and text.

    Args:
        text: As `markdown_writing.to_markdown` writes it, or any other Markdown.
        name: The document's name.
        load_image: Reads images.
        left_out: What was left out already.
    """
    left_out = left_out or LeftOut()
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    front = _FRONT_MATTER.match(text)
    titles: list[str] = []
    if front and ":" in front[1]:
        titles = re.findall(r"^title:[ \t]*(.+)$", front[1], re.MULTILINE)
        left_out.text("front matter left out", re.sub(r"^title:.*$", "", front[1], flags=re.MULTILINE))
        text = text[front.end() :]
    reader = _Reader(load_image, left_out)
    reader.read(text)
    title, blocks = titled(reader.built.blocks, one_line(titles[0]).strip("\"'") if titles else "")
    document = Document(name, title or title_of(name), tuple(blocks), reader.pages, left_out.lines)
    return normalized(document)


def parse_blocks(text: str, load_image: ImageLoader | None = None) -> tuple[Block, ...]:
    """The blocks of a piece of Markdown in normal form, headings with the levels of their marks."""
    reader = _Reader(load_image, LeftOut())
    reader.read(text)
    return normalized(Document("", "", tuple(reader.built.blocks))).blocks


class _Parser(MarkdownIt):
    def normalizeLink(self, url: str) -> str:  # noqa: N802
        """An address as it is written: only those of images are used, and to encode all takes a tenth of the time."""
        return url


class _Reader:
    """Reads the tokens of a Markdown file.

    Args:
        load_image, left_out: See `parse_markdown`.
    """

    def __init__(self, load_image: ImageLoader | None, left_out: LeftOut) -> None:
        self.built = BlockBuilder()
        self.pages: int | None = None
        self._load_image, self._left_out = load_image, left_out
        self._parser = _Parser("commonmark", {"maxNesting": _MAX_NESTING}).enable(["table", "strikethrough"])
        self._parser.core.ruler.disable("inline")  # see `_children`
        self._parser.block.ruler.at("reference", _reference)
        self._references: dict[str, object] = {}  # addresses of links that stand elsewhere in the file
        self._notes: set[str] = set()  # that the file has; of another, [^x] is no mark
        self._lines: list[str] = []  # of the text that is being read
        self._level: int | None = None  # of the next heading, if a mark says it
        self._header_rows: int | None = None  # of the next table, if a mark says it
        self._images: list[Image] = []  # in the text that is being read

    def read(self, text: str) -> None:
        """Add the blocks of a text."""
        self._notes.update(match["note"] for match in _NOTE_TEXT.finditer(text))
        self._lines = text.split("\n")
        tokens = iter(self._parser.parse(text, self._references))
        deepest = 0
        for token in tokens:
            deepest = max(deepest, token.level)
            self._read(token, tokens)
        self.built.end_list()
        if deepest >= _MAX_NESTING - 1:
            self._left_out.append(f"what is nested more than {_MAX_NESTING // 2} levels deep")

    def _read(self, token: Token, tokens: Iterator[Token]) -> None:
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                self.built.open_list()
            case "bullet_list_close" | "ordered_list_close":
                self.built.close_list()
            case "list_item_open":
                self.built.item(f"{token.info}." if token.info else "-")
            case "paragraph_open":
                inline = next(tokens)
                self.built.prose(self._text(inline), is_caption=_is_bold(self._children(inline)))
            case "heading_open":
                level = int(token.tag[1:]) if self._level is None else self._level + 1
                self._level = None
                inline = next(tokens)
                inline.content = HEADING_ATTRIBUTES.sub("", inline.content)
                self.built.add(Heading(self._text(inline), level, self.built.page))
            case "fence" | "code_block":
                self.built.add(Paragraph(token.content, self.built.page, code=True))
            case "table_open":
                self._table(tokens)
            case "html_block":
                self._html(token.content)
        for image in self._images:
            self.built.add(image)
        self._images = []

    def _table(self, tokens: Iterator[Token]) -> None:
        rows: list[tuple[str, ...]] = []
        row: list[str] = []
        header_rows, line = 0, ""
        for token in tokens:
            if token.type == "table_close":
                break
            if token.type == "inline":
                row.append(self._text(token))
            elif token.type == "tr_open" and token.map:
                line = self._lines[token.map[0]]
            elif token.type == "tr_close":
                row += self._surplus(line, len(row))
                rows.append(tuple(row))
                row = []
            elif token.type == "thead_close":
                header_rows = len(rows)
        if self._header_rows is not None:
            header_rows = self._header_rows
        elif not any(rows[0]):
            rows, header_rows = rows[1:], 0
        self._header_rows = None
        self.built.add(Table(tuple(rows), header_rows, self.built.take_caption(), self.built.page))

    def _surplus(self, line: str, width: int) -> list[str]:
        """The texts of the cells of a row that are more than the header has, which the parser does not give."""
        cells = escapedSplit(line.strip("> \t"))
        cells = [cell.strip() for cell in cells[not cells[0] : len(cells) - (not cells[-1])]]
        return [self._text(Token("inline", "", 0, content=cell)) for cell in cells[width:]]

    def _html(self, content: str) -> None:
        """HTML between the blocks: our own marks in comments; other comments are left out."""
        for match in _MARK.finditer(content):
            self._mark(match[1] or "", int(match[2]) if match[2] else None)
        markup = _MARK.sub("", content).strip()
        for comment in _COMMENT.findall(markup):
            self._left_out.text("comments left out", comment)
        if markup:
            markup = with_text(markup)
            for block in html_blocks(markup, self._load_image, self._left_out):
                self.built.add(replace(block, page=self.built.page))

    def _mark(self, kind: str, number: int | None) -> None:
        match kind:
            case "":
                self.built.end_list()
                self.built.end_caption()
            case "page":
                self.built.end_list()
                self.built.end_caption()
                self.built.page = number
            case "pages":
                self.pages = number
            case "level":
                self._level = number
            case "header rows":
                self._header_rows = number

    def _text(self, inline: Token) -> str:
        """The text of a block without its marks; its images are kept for `_read`."""
        tokens = self._children(inline)
        for at, token in enumerate(tokens):
            after = tokens[at + 1 : at + 1 + _MAX_BETWEEN] if token.type == "html_inline" else ()
            if token.type == "html_inline" and not is_markup(token.content, "".join(each.content for each in after)):
                token.type = "text_special"
        if not any(token.type in ("html_inline", "s_open") for token in tokens):
            return one_line("".join(self._pieces(tokens)))
        for comment in _COMMENT.findall("".join(token.content for token in tokens if token.type == "html_inline")):
            self._left_out.text("comments left out", comment)
        tokens = [
            replace(token, type="text", content="".join(self._pieces([token])))
            if token.type in ("text", "text_special", "image")
            else token
            for token in tokens
        ]
        return html_text(self._parser.renderer.render(tokens, self._parser.options, {}), self._left_out)

    def _children(self, inline: Token) -> list[Token]:
        """The inline content of a block.

        Brackets take a time that grows with their square: a text with many stays as it is.
        """
        if not inline.children:
            inline.children = []
            if inline.content.count("[") > _MAX_BRACKETS:
                inline.children = [Token("text_special", "", 0, content=unescapeAll(inline.content))]
            else:
                self._parser.inline.parse(inline.content, self._parser, self._references, inline.children)
        return inline.children

    def _pieces(self, tokens: Sequence[Token]) -> Iterator[str]:
        for token in tokens:
            match token.type:
                case "text":
                    text = _NOTE_TEXT.sub(lambda found: f"[{found['note']}] ", token.content, count=1)
                    yield _SCRIPT.sub(self._in_place, text)
                case "text_special" | "code_inline":
                    yield token.content
                case "softbreak" | "hardbreak":
                    yield " "
                case "image":
                    yield from self._image(token)

    def _in_place(self, found: re.Match[str]) -> str:
        """A raised or lowered text, or the mark of a note."""
        if found["raised"]:
            return raised(found["raised"], found.string[: found.start()])
        if found["lowered"]:
            return lowered(found["lowered"])
        return note_mark(found["note"]) if found["note"] in self._notes else found[0]

    def _image(self, token: Token) -> Iterator[str]:
        source, title = str(token.attrs["src"]), str(token.attrs.get("title", ""))
        caption = "".join(self._pieces(token.children or []))
        if found := linked_image(unquote(source), self._load_image):
            self._images.append(Image(*found, caption, title, self.built.page))
            return
        self._left_out.append(f"image {source[:LONGEST_SOURCE]}: not read")
        yield f" {caption} {title} "


def _reference(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The rule of markdown-it for addresses of links, which "[^1]: Text" is not: it is a note."""
    first = state.bMarks[start] + state.tShift[start]
    return not state.src.startswith("[^", first) and reference(state, start, end, silent)


def _is_bold(tokens: Sequence[Token]) -> bool:
    """Whether all of a paragraph is bold."""
    tokens = [token for token in tokens if token.type != "text" or token.content]
    closing = [place for place, token in enumerate(tokens) if token.type == "strong_close" and token.level == 0]
    return bool(tokens) and tokens[0].type == "strong_open" and closing == [len(tokens) - 1]
