"""The true structure of documents from sources that mark headings by plain characters.

Info, reStructuredText, AsciiDoc. The first heading is the document's title.
"""

import re
from collections.abc import Callable

from documents.records import Document, Heading, Paragraph
from tests.documents.benchmark.truth.blocks import TrueBlocks, from_level_one

# What is no running text: headings (group `marked` or `underlined`), code, and what is not printed (none of these).
_INFO = re.compile(
    r"^(?P<underlined>\S.*)\n(?P<mark>[*=.-])(?P=mark){3,}$|^\* Menu:(?:.*\n)*?(?=\S.*\n[*=.-]{4}|\Z)", re.MULTILINE
)
_RST = re.compile(
    r"""^(?P<border>(?P<over>[^\w\s])(?P=over){2,})\n[ ]*(?P<marked>\S.*)\n(?P=border)$
      | (?<=\n\n)(?P<underlined>\S.*)\n(?P<mark>[^\w\s])(?P=mark){2,}$
      | ^[ ]*\.\.[ ](?!\[)(?![\w-]+::).*\n(?:[ ]{3}.*\n)*  # a comment, target or substitution""",
    re.MULTILINE | re.VERBOSE,
)
_ASCIIDOC = re.compile(
    r"""^(?P<fence>-{4,}|\.{4,})\n(?P<code>(?:.*\n)*?)(?P=fence)$
      | ^(?P<level>={1,6})[ ](?P<marked>\S.*)
      | ^(?:\[\[.*\]\]$|\[[\w,\ ="-]*\]$|:\w+:|//|ifdef|endif|include::).*\n""",
    re.MULTILINE | re.VERBOSE,
)
_RST_BORDER = re.compile(r"[\s=+|-]*|([^\w\s])\1{2,}\s*")
_RST_MARK = re.compile(
    r"^\s*\.\. [\w-]+::|^\s*:(?:class|name|width|align|widths|scale|local|depth|backlinks):.*"
    r"|:[\w:+-]+:`|`__?\b|``?|\|(?=\S)|(?<=\S)\|_?|\*\*|\\ "
)
_RST_LINK = re.compile(r"\s*<[^<>`]+>(?=`_)")


def info_document(source: str, name: str) -> Document:
    """A document in Info format: nodes with headings underlined by `*`, `=`, `-` and `.`.

    Menus and the index left out.
    """
    nodes = (node.partition("\n") for node in source.split("\n\x1f\n")[1:])
    text = "\n\n".join(text.partition("\x00\x08[index")[0] for head, _, text in nodes if head.startswith("File:"))
    return _document(text, name, _INFO, lambda heading: "*=-.".index(heading["mark"]) + 1)


def rst_document(source: str, name: str) -> Document:
    """A document in reStructuredText: levels of headings by the order in which their marks first appear;
    tables as running text."""
    marks: dict[object, int] = {}
    text = "\n".join(["", "", *map(str.rstrip, source.expandtabs(8).splitlines())])

    def level(heading: re.Match[str]) -> int:
        return marks.setdefault(heading.group("over", "mark"), len(marks) + 1)

    return _document(text, name, _RST, level, _rst_text)


def asciidoc_document(source: str, name: str) -> Document:
    """A document in AsciiDoc: headings `== Like this`, blocks between lines of `-` or `.` as code."""
    return _document(source, name, _ASCIIDOC, lambda heading: len(heading["level"]), _asciidoc_text)


def _document(
    source: str,
    name: str,
    special: re.Pattern[str],
    level: Callable[[re.Match[str]], int],
    plain: Callable[[str], str] = str,
) -> Document:
    """A document of a source.

    Args:
        source: The source.
        name: The document's name.
        special: What is no running text.
        level: Of a heading, from 1.
        plain: The text of a line.
    """
    found = TrueBlocks()

    def read(text: str) -> None:
        for line in text.splitlines():
            if line.strip() in ("", "+"):  # a line with + goes on with an item of AsciiDoc
                found.end()
            else:
                found.text.append(f"{plain(line)}\n")

    end = 0
    for match in special.finditer(source):
        read(source[end : match.start()])
        end = match.end()
        groups = match.groupdict()
        if heading := groups.get("marked") or groups.get("underlined"):
            found.add(Heading(plain(heading).strip(), level(match)))
        elif groups.get("code"):
            found.add(Paragraph(groups["code"].removesuffix("\n"), code=True))
    read(source[end:])
    found.end()
    title = next((block for block in found.blocks if isinstance(block, Heading)), Heading(name, 1))
    return Document(name, title.text, from_level_one(block for block in found.blocks if block is not title))


def _rst_text(line: str) -> str:
    return "" if _RST_BORDER.fullmatch(line) else _RST_MARK.sub("", _RST_LINK.sub("", line))


def _asciidoc_text(text: str) -> str:
    text = re.sub(r"<<[^,>]*,([^>]*)>>|<<([^>]*)>>", r"\1\2", text)
    text = re.sub(r"(?:https?|link|linkgit|mailto)[:\w./#~+-]*\[([^\]]*)\]", r"\1", text)
    return re.sub(r"[`_*]+(?=\S)|(?<=\S)[`_*]+|::$", "", text)
