"""The true structure of a groff document from its source with the macros of -ms: numbered headings, paragraphs."""

import re

from documents.records import Block, Document, Heading, Paragraph

_DROPPED = re.compile(r"^(?:\.(?:PS.*?^\.PE|EQ.*?^\.EN|de.*?^\.\.|\\.*?)|'.*?)$", re.MULTILINE | re.DOTALL)
_TABLE_FORMAT = re.compile(r"^\.TS.*?\.$", re.MULTILINE | re.DOTALL)
_ESCAPES = (
    (r'\\".*|T[{}]', ""),  # a comment, the borders of a text block
    (r"\\[fk*](?:\((..)|\[([^]]*)\]|(.))|\\s[-+]?\d", ""),  # fonts, strings such as a quotation mark, sizes
    (r"\\\((bu|em|en|mi)", "-"),
    (r"\\[|^&/,%c]|\\\(..", ""),
    (r"\\e", r"\\\\"),
    (r"\\(.)", r"\1"),
)
_BREAKS = "PP|LP|IP|QP|TL|AU|AI|AB|AE|FS|FE|KF|KS|KE|RS|RE|br|sp|TE|NH|SH|DS|DE"


def groff_document(source: str, name: str) -> Document:
    """Blocks of a source with the macros of -ms; a table's cells are text."""
    blocks: list[Block] = []
    lines: list[str] = []
    title, level, code = name, -1, False  # level 0: the title; -1: text
    for line in [*_TABLE_FORMAT.sub(".br", _DROPPED.sub(".", source)).splitlines(), ".br"]:
        request, rest = re.match(r"\.?(\w*)\s*(.*)", line).groups() if line.startswith(".") else ("", "")
        if re.fullmatch(_BREAKS, request):
            text = "\n".join(lines) if code else " ".join(" ".join(lines).split())
            lines.clear()
            if text and level == 0:
                title = text
            elif text:
                blocks.append(Heading(text, level) if level > 0 else Paragraph(text, code=code))
            level = -1 if text else level
        if request in ("NH", "SH", "TL"):
            level = 0 if request == "TL" else int(rest or 1) if request == "NH" else 1
        elif request in ("DS", "DE"):
            code = request == "DS"
        elif request == "IP" and rest:
            lines.append(_plain(rest.split('"')[1] if '"' in rest else rest.split()[0]))
        elif not line.startswith("."):
            lines.append(_plain(line))
    return Document(name, title, tuple(blocks))


def _plain(line: str) -> str:
    for escape, text in _ESCAPES:
        line = re.sub(escape, text, line)
    return line
