"""Markdown files (CommonMark with pipe tables, by markdown-it-py) as documents: our own, corrected by hand or not, and users' own."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.common.utils import unescapeAll
from markdown_it.token import Token

from common.documents import Block, Document, Heading, Image, Paragraph, Table
from harness.documents.image_files import data_of_uri, image_of
from harness.documents.markdown_writing import TABLE_CAPTION
from harness.documents.normal_form import normalized, one_line, title_of

ImageLoader = Callable[[str], bytes | None]  # the file that a link names, or None if it is not to be read

_LONGEST_SOURCE = 80  # characters of an image's address in a report
_MOST_BRACKETS = 2000  # in one paragraph or cell
_MOST_NESTING = 60  # quotations and lists in each other; what is deeper is left out
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_COMMENT = re.compile(r"<!--\s*(.*?)\s*-->\s*", re.DOTALL)
_MARK = re.compile(r"(pages|page|level|header rows)(?: (\d{1,9}))?")


def parse_markdown(text: str, name: str, load_image: ImageLoader | None = None) -> Document:
    """A document from Markdown, in normal form.

    Its title is the only first-level heading, or `title` in the front matter, or else the file's name; the highest headings below the
    title have level 1.  An image that is not read stays as its caption and text.

    Args:
        text: As `markdown_writing.to_markdown` writes it, or any other Markdown.
        name: The document's name.
        load_image: Reads images.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    front = _FRONT_MATTER.match(text)
    titles: list[str] = []
    if front and ":" in front[1]:
        titles = re.findall(r"^title:[ \t]*(.+)$", front[1], re.MULTILINE)
        text = text[front.end() :]
    reader = _Reader(load_image)
    reader.read(text)
    title, blocks = _titled(reader.blocks, one_line(titles[0]).strip("\"'") if titles else "")
    document = Document(name, title or title_of(name), tuple(blocks), reader.pages, tuple(reader.left_out))
    return normalized(document)


def _titled(blocks: Sequence[Block], title: str) -> tuple[str, list[Block]]:
    """Title and blocks: the only first-level heading is taken as the title, and the levels begin at 1."""
    first = [block for block in blocks if isinstance(block, Heading) and block.level == 1]
    left = list(blocks)
    if len(first) == 1 and title in ("", first[0].text):
        title = first[0].text
        left.remove(first[0])
        shift = 1
    else:
        shift = min((block.level for block in blocks if isinstance(block, Heading)), default=1) - 1
    return title, [
        replace(block, level=max(block.level - shift, 1)) if isinstance(block, Heading) else block for block in left
    ]


class _Reader:
    """Blocks of the tokens of a Markdown file.

    Args:
        load_image: See `parse_markdown`.
    """

    def __init__(self, load_image: ImageLoader | None) -> None:
        self.blocks: list[Block] = []
        self.pages: int | None = None
        self.left_out: list[str] = []
        self._load_image = load_image
        self._parser = MarkdownIt("commonmark", {"maxNesting": _MOST_NESTING}).enable(["table", "strikethrough"])
        self._parser.core.ruler.disable("inline")  # see `_children`
        self._references: dict[str, object] = {}  # addresses of links that stand elsewhere in the file
        self._page: int | None = None
        self._level: int | None = None  # of the next heading, if a mark says it
        self._header_rows: int | None = None  # of the next table, if a mark says it
        self._caption = False  # whether the last block may be the caption of a table
        self._lists: list[Token] = []  # the lists around
        self._items: list[str] = []  # lines of the list that is being read
        self._item_open = False  # whether the last of these lines belongs to the item that is being read
        self._images: list[Image] = []  # in the text that is being read

    def read(self, text: str) -> None:
        """Add the blocks of a text."""
        tokens = iter(self._parser.parse(text, self._references))
        deepest = 0
        for token in tokens:
            deepest = max(deepest, token.level)
            self._read(token, tokens)
        self._end_list()
        if deepest >= _MOST_NESTING - 1:
            self.left_out.append(f"what is nested more than {_MOST_NESTING // 2} levels deep")

    def _read(self, token: Token, tokens: Iterator[Token]) -> None:
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                self._lists.append(token)
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
            case "list_item_open":
                marker = f"{token.info}." if token.info else "-"
                self._items.append(f"{'  ' * (len(self._lists) - 1)}{marker} ")
                self._item_open = True
            case "paragraph_open":
                self._paragraph(next(tokens))
            case "heading_open":
                self._heading(int(token.tag[1:]), next(tokens))
            case "fence" | "code_block":
                self._add(Paragraph(token.content, self._page, code=True))
            case "table_open":
                self._table(tokens)
            case "html_block":
                self._html(token.content)

    def _add(self, block: Block) -> None:
        """Add a block; what a list around has so far comes before it."""
        self._end_list()
        self._caption = False
        self.blocks.append(block)

    def _end_list(self) -> None:
        self._item_open = False
        if self._items:
            self.blocks.append(Paragraph("\n".join(self._items), self._page))
            self._items = []
            self._caption = False

    def _paragraph(self, inline: Token) -> None:
        text = self._text(inline)
        if self._item_open and self._lists:
            self._items[-1] += text if self._items[-1].endswith(" ") else f" {text}"
        elif text:
            self._add(Paragraph(text, self._page))
            self._caption = _is_bold(self._children(inline)) or TABLE_CAPTION.match(text) is not None
        self._add_images()

    def _heading(self, level: int, inline: Token) -> None:
        text = self._text(inline)
        self._add(Heading(text, level if self._level is None else self._level + 1, self._page))
        self._level = None
        self._add_images()

    def _table(self, tokens: Iterator[Token]) -> None:
        rows: list[tuple[str, ...]] = []
        row: list[str] = []
        header_rows = 0
        for token in tokens:
            if token.type == "table_close":
                break
            if token.type == "inline":
                row.append(self._text(token))
            elif token.type == "tr_close":
                rows.append(tuple(row))
                row = []
            elif token.type == "thead_close":
                header_rows = len(rows)
        if self._header_rows is not None:
            header_rows = self._header_rows
        elif not any(rows[0]):
            header_rows = 0
        caption = ""
        before = self.blocks[-1] if self._caption and not self._items else None
        if isinstance(before, Paragraph):
            caption = before.text
            self.blocks.pop()
        if not header_rows and not any(rows[0]):
            rows = rows[1:]
        self._add(Table(tuple(rows), header_rows, caption, self._page))
        self._header_rows = None
        self._add_images()

    def _html(self, content: str) -> None:
        """HTML between the blocks: our own marks in comments; other comments are left out."""
        for comment in _COMMENT.findall(content):
            if not comment:
                self._end_list()
                self._caption = False
            elif match := _MARK.fullmatch(comment):
                self._mark(match[1], int(match[2]) if match[2] else None)
        text = one_line(re.sub(r"<[^>]*>", " ", _COMMENT.sub("", content)))
        if text:
            self._add(Paragraph(text, self._page))

    def _mark(self, kind: str, number: int | None) -> None:
        if kind == "page":
            self._end_list()
            self._page, self._caption = number, False
        elif kind == "pages":
            self.pages = number
        elif kind == "level":
            self._level = number
        else:
            self._header_rows = number

    def _text(self, inline: Token) -> str:
        """The text of a block without its marks; its images are kept for `_add_images`."""
        return one_line("".join(self._pieces(self._children(inline))))

    def _children(self, inline: Token) -> list[Token]:
        """What stands in a block.  Brackets take a time that grows with their square: a text with many stays as it is."""
        if not inline.children:
            inline.children = []
            if inline.content.count("[") > _MOST_BRACKETS:
                inline.children = [Token("text", "", 0, content=unescapeAll(inline.content))]
            else:
                self._parser.inline.parse(inline.content, self._parser, self._references, inline.children)
        return inline.children

    def _pieces(self, tokens: Sequence[Token]) -> Iterator[str]:
        for token in tokens:
            match token.type:
                case "text" | "text_special" | "code_inline":
                    yield token.content
                case "softbreak" | "hardbreak":
                    yield " "
                case "html_inline" if re.match(r"<br\b", token.content, re.IGNORECASE):
                    yield " "
                case "image":
                    yield from self._image(token)

    def _image(self, token: Token) -> Iterator[str]:
        source, title = str(token.attrs["src"]), str(token.attrs.get("title", ""))
        caption = "".join(self._pieces(token.children or []))
        data = data_of_uri(source) if source.startswith("data:") else None
        if data is None and self._load_image is not None:
            data = self._load_image(unquote(source))
        if found := image_of(data or b""):
            self._images.append(Image(*found, caption, title, self._page))
            return
        self.left_out.append(f"image {source[:_LONGEST_SOURCE]}: not read")
        yield f" {caption} {title} "

    def _add_images(self) -> None:
        for image in self._images:
            self._add(image)
        self._images = []


def _is_bold(tokens: Sequence[Token]) -> bool:
    """Whether all of a paragraph is bold."""
    tokens = [token for token in tokens if token.type != "text" or token.content]
    closing = [place for place, token in enumerate(tokens) if token.type == "strong_close" and token.level == 0]
    return bool(tokens) and tokens[0].type == "strong_open" and closing == [len(tokens) - 1]
