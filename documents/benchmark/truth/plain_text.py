"""The true structure of documents from sources that mark headings by plain characters.

Info, reStructuredText, AsciiDoc.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from documents.records import Block, Document, Heading, Paragraph

_UNDERLINE = re.compile(r"([^\w\s])\1{2,}\s*")
_BORDER = re.compile(r"[\s=+|-]*|([^\w\s])\1{2,}\s*")
_ROLE = re.compile(r":[\w:+-]+:`|`__?\b|``?|\|(?=\S)|(?<=\S)\|_?")
_LINK = re.compile(r"\s*<[^<>`]+>(?=`_)")
_INFO_MARKS = "*=-."  # of chapters, sections, subsections, subsubsections


def info_document(source: str, name: str) -> Document:
    """A document in Info format: nodes with headings underlined by `*`, `=`, `-` and `.`.

    Menus and the index left out.
    """
    blocks: list[Block] = []
    for node in re.split(r"\n\x1f\n", source)[1:]:
        head, _, text = node.partition("\n")
        if not head.startswith("File:"):  # a table of the file itself
            continue
        text = text.partition("\x00\x08[index")[0]
        text = re.sub(r"^\* Menu:.*?(?=^\S[^\n]*\n[*=.-]{3,}$|\Z)", "", text, flags=re.MULTILINE | re.DOTALL)
        blocks += _underlined(text.splitlines(), lambda mark: _INFO_MARKS.find(mark) + 1)
    title = next((block for block in blocks if isinstance(block, Heading)), None)
    rest = [block for block in blocks if block is not title]
    return Document(name, title.text if title else name, tuple(_from_level_one(rest)))


def _underlined(lines: Sequence[str], level_of: Callable[[str], int]) -> Iterator[Block]:
    paragraph: list[str] = []
    skip = False
    for position, line in enumerate(lines):
        following = lines[position + 1] if position + 1 < len(lines) else ""
        if skip:
            skip = False
            continue
        mark = _UNDERLINE.fullmatch(following)
        if (
            line.strip()
            and not line.startswith(" ")
            and mark
            and level_of(mark[1])
            and abs(len(following) - len(line)) < 3
        ):
            yield from _paragraph(paragraph)
            paragraph, skip = [], True
            yield Heading(line.strip(), level_of(mark[1]))
        elif line.strip():
            paragraph.append(line)
        else:
            yield from _paragraph(paragraph)
            paragraph = []
    yield from _paragraph(paragraph)


def _paragraph(lines: Iterable[str]) -> Iterator[Paragraph]:
    text = " ".join(" ".join(lines).split())
    if text:
        yield Paragraph(text)


def rst_document(source: str, name: str) -> Document:
    """A document in reStructuredText: levels of headings by the order in which their marks first appear;
    tables as running text."""
    lines = source.expandtabs(8).splitlines()
    blocks: list[Block] = []
    marks: list[str] = []
    paragraph: list[str] = []
    position = 0
    while position < len(lines):
        line = lines[position]
        following = lines[position + 1] if position + 1 < len(lines) else ""
        after = lines[position + 2] if position + 2 < len(lines) else ""
        above = _UNDERLINE.fullmatch(line) and following.strip() and after.strip() == line.strip()
        below = line.strip() and not line[0].isspace() and _UNDERLINE.fullmatch(following) and not paragraph
        if above or (below and len(following.rstrip()) >= len(line.rstrip())):
            mark = line[0] * 2 if above else following[0]
            if mark not in marks:
                marks.append(mark)
            blocks += _rst_paragraph(paragraph)
            paragraph = []
            blocks.append(Heading(_rst_text((following if above else line).strip()), marks.index(mark) + 1))
            position += 3 if above else 2
            continue
        if re.match(r"\s*\.\. (?!\[)", line) and not re.match(
            r"\s*\.\. [\w-]+::", line
        ):  # a comment, target or substitution
            position += 1
            while position < len(lines) and lines[position].startswith("   "):
                position += 1
            continue
        if line.strip():
            paragraph.append(line)
        else:
            blocks += _rst_paragraph(paragraph)
            paragraph = []
        position += 1
    blocks += _rst_paragraph(paragraph)
    title = name
    tops = [block for block in blocks if isinstance(block, Heading) and block.level == 1]
    if len(tops) == 1:
        title = tops[0].text
        blocks.remove(tops[0])
    return Document(name, title, tuple(_from_level_one(blocks)))


def _rst_text(text: str) -> str:
    text = _LINK.sub("", text)
    return _ROLE.sub("", text).replace("**", "").replace("\\ ", "").replace("`_", "").replace("`", "")


def _rst_paragraph(lines: Iterable[str]) -> Iterator[Paragraph]:
    kept = [
        re.sub(r"^\s*\.\. [\w-]+::|^\s*:(?:class|name|width|align|widths|scale|local|depth|backlinks):.*", "", line)
        for line in lines
    ]
    yield from _paragraph([_rst_text(line) for line in kept if not _BORDER.fullmatch(line)])


def asciidoc_document(source: str, name: str) -> Document:
    """A document in AsciiDoc: headings `== Like this` or underlined, blocks between lines of `-` or `.` as code."""
    blocks: list[Block] = []
    title, code = name, ""
    paragraph: list[str] = []
    lines = source.splitlines()
    skip = False
    for position, line in enumerate(lines):
        following = lines[position + 1] if position + 1 < len(lines) else ""
        if skip:
            skip = False
            continue
        if re.fullmatch(r"(-{4,}|\.{4,})", line.rstrip()) and (not code or line.rstrip() == code):
            if code:
                blocks.append(Paragraph("\n".join(paragraph), code=True))
            else:
                blocks += _paragraph(map(_asciidoc_text, paragraph))
            code, paragraph = "" if code else line.rstrip(), []
            continue
        marked = re.match(r"(={1,6}) (\S.*)", line)
        underlined = not paragraph and re.fullmatch(r"[=~^+-]{3,}", following) and abs(len(following) - len(line)) < 3
        if code:
            paragraph.append(line)
        elif marked or underlined:
            level = len(marked[1]) - 1 if marked else "=-~^+".index(following[0])
            text = _asciidoc_text((marked[2] if marked else line).strip())
            skip = not marked
            if level:
                blocks.append(Heading(text, level))
            else:
                title = text
        elif re.match(r"\[\[.*\]\]$|\[[\w, =\"-]*\]$|:\w+:|//|ifdef|endif|include::", line):
            continue
        elif line.strip() and line.strip() != "+":
            paragraph.append(line)
        else:
            blocks += _paragraph(map(_asciidoc_text, paragraph))
            paragraph = []
    blocks += _paragraph(map(_asciidoc_text, paragraph))
    return Document(name, title, tuple(_from_level_one(blocks)))


def _asciidoc_text(text: str) -> str:
    text = re.sub(r"<<[^,>]*,([^>]*)>>|<<([^>]*)>>", r"\1\2", text)
    text = re.sub(r"(?:https?|link|linkgit|mailto)[:\w./#~+-]*\[([^\]]*)\]", r"\1", text)
    return re.sub(r"[`_*]+(?=\S)|(?<=\S)[`_*]+|::$", "", text)


def _from_level_one(blocks: Sequence[Block]) -> list[Block]:
    highest = min((block.level for block in blocks if isinstance(block, Heading)), default=1) - 1
    return [Heading(block.text, block.level - highest) if isinstance(block, Heading) else block for block in blocks]
