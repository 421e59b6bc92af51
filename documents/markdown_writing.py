"""Documents as Markdown (CommonMark with pipe tables) that any viewer shows and a person can correct.

# Title                     the only first-level heading; chapters are second-level headings
<!-- pages 12 -->           number of pages, if the format has pages
<!-- page 3 -->             the page of what follows, up to the next mark
<!-- level 6 -->            before a heading that is deeper than Markdown's levels can say
**Table 3: Ratings**        a bold line before a table: its caption
<!-- header rows 2 -->      before a table that has several (without any, its first line is empty)
![caption](images/FILE "text in the image")
<!-- -->                    between blocks that Markdown would join
"""

import re

from documents.normal_form import LIST_ITEM, normalized
from documents.records import MAX_LEVELS, Block, Document, Heading, Image, Paragraph, Table

TABLE_CAPTION = re.compile(r"(?:Table|Tab\.|Tabelle|Tableau|Tabla|Tabella|表)\s*[A-Z]?[\d.\-]+\b", re.IGNORECASE)
HEADING_ATTRIBUTES = re.compile(
    r"(?<!\\)\{:?[ \t]*[#.][^{}]*\}[ \t]*$"
)  # of pandoc, kramdown and others: {#anchor .class}
# Of pandoc and others: 10^6^ (but no part of a^2b^2), H~2~O, [^1]
RAISED = r"\^(?P<raised>[+\-\u2212]?\d{1,4}|[A-Za-z]{1,3})\^(?!\w)"
LOWERED = r"~(?P<lowered>\d{1,3})~(?!~)"
NOTE = r"\[\^(?P<note>[^\]\s]{1,40})\]"
_SPECIAL = re.compile(
    r"""\\(?=[!-/:-@\[-`{-~]|$)    # a backslash that would escape the next character, or what is written after the text
      | [`*] | ~(?=~)
      | (?<![^\W_])_ | _(?![^\W_])  # an underscore within a word is none
      | \](?=[(:\[])                # [12] is no link, [12](x) is one
      | <(?=[A-Za-z/!?])
      | &(?=\#?\w+;)
      | """
    + rf"(?={RAISED}|{LOWERED}|{NOTE})[\^~\[]",
    re.VERBOSE,
)
_SPECIAL_IN_LINK = re.compile(rf"{_SPECIAL.pattern} | [\[\]]", re.VERBOSE)
_LINE_START = re.compile(r"(?P<digits>\d{1,9}(?=[.)](?: |$)))|(?=\#{1,6}(?: |$)|>|[-+](?: |$)|[-= ]+$)")


def to_markdown(document: Document, image_folder: str = "images") -> str:
    """A document as Markdown; `markdown_reading.parse_markdown` gives the same blocks.

    What was left out is not written.

    Args:
        document: Its images are written as links to their files, which the caller saves.
        image_folder: Where, relative to the Markdown file.
    """
    document = normalized(document)
    parts = [f"# {_heading_text(document.title)}"]
    if document.pages is not None:
        parts.append(f"<!-- pages {document.pages} -->")
    before: Block | None = None
    page: int | None = None
    for block in document.blocks:
        if block.page != page:
            page = block.page
            parts.append(f"<!-- page {page} -->" if page is not None else "<!-- page -->")
        elif _would_join(before, block):
            parts.append("<!-- -->")
        parts.append(block_markdown(block, image_folder))
        before = block
    return "\n\n".join(parts) + "\n"


def block_markdown(block: Block, image_folder: str = "images") -> str:
    """One block of a document in normal form as Markdown; a heading's level counts from the document's title."""
    match block:
        case Heading():
            marks = "#" * min(block.level + 1, MAX_LEVELS)
            note = f"<!-- level {block.level} -->\n" if block.level + 1 > MAX_LEVELS else ""
            return f"{note}{marks} {_heading_text(block.text)}"
        case Paragraph():
            return _fenced(block.text) if block.code else _list(block.text) if _is_list(block) else _line(block.text)
        case Table():
            caption = f"**{escaped(block.caption)}**\n\n" if block.caption else ""
            shown = not block.header_rows or (block.header_rows == 1 and any(block.rows[0]))  # by the lines themselves
            note = "" if shown else f"<!-- header rows {block.header_rows} -->\n"
            return caption + note + table_markdown(block)
        case Image():
            caption = _SPECIAL_IN_LINK.sub(r"\\\g<0>", block.caption)
            text = re.sub(r'[\\"&]', r"\\\g<0>", block.text)
            return f"![{caption}]({image_folder}/{block.file}" + (f' "{text}")' if text else ")")


def table_markdown(table: Table) -> str:
    """The rows as a Markdown table; without a header row the first line is empty."""
    rows = [tuple(cell_markdown(cell) for cell in row) for row in table.rows]
    width = len(rows[0])
    if not table.header_rows:
        rows.insert(0, ("",) * width)
    rows.insert(1, ("---",) * width)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def cell_markdown(cell: str) -> str:
    """A cell's text as Markdown."""
    return escaped(cell).replace("|", "\\|")


def escaped(text: str) -> str:
    """A line of text so that Markdown shows it as it is, where it does not stand at the start of a line."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def _would_join(before: Block | None, block: Block) -> bool:
    """Whether Markdown takes two blocks for one."""
    if not isinstance(before, Paragraph) or before.code:
        return False
    if isinstance(block, Table):
        return not block.caption and TABLE_CAPTION.match(before.text) is not None
    return isinstance(block, Paragraph) and _is_list(before) and _is_list(block)


def _is_list(paragraph: Paragraph) -> bool:
    return not paragraph.code and LIST_ITEM.fullmatch(paragraph.text.split("\n", 1)[0]) is not None


def _heading_text(text: str) -> str:
    """A heading's text; a mark at its end would be taken for the closing one, and braces for attributes."""
    return HEADING_ATTRIBUTES.sub(r"\\\g<0>", re.sub(r"(?:(?<= )|^)(#+)$", r"\\\1", escaped(text)))


def _line(text: str) -> str:
    """Prose, which must not begin like a heading, quotation, list or rule."""
    text = escaped(text)
    if match := _LINE_START.match(text):
        return f"{match['digits'] or ''}\\{text[match.end() :]}"
    return text


def _list(text: str) -> str:
    lines: list[str] = []
    starts: list[int] = []  # columns where the text of the items around begins
    for line in text.split("\n"):
        match = LIST_ITEM.fullmatch(line)
        assert match is not None  # normal form
        level = len(match[1]) // 2
        if level == len(starts) and match[2] not in ("-", "1."):
            lines += [""] * bool(lines)  # only a list from 1 may begin without an empty line
        starts = starts[:level]
        column = starts[-1] if starts else 0
        lines.append(f"{' ' * column}{match[2]} {_line(match[3])}")
        starts.append(column + len(match[2]) + 1)
    return "\n".join(lines)


def _fenced(code: str) -> str:
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{code}\n{fence}"
