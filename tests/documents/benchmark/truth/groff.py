"""The true structure of a groff document from its source with the macros of -ms: numbered headings, paragraphs."""

import re

from documents.records import Block, Document, Heading, Paragraph

_DROPPED = {"PS": "PE", "EQ": "EN", "de": "."}  # drawings, formulas and definitions of macros: up to this request
_ESCAPES = (
    (re.compile(r'\\".*'), ""),  # a comment
    (re.compile(r"\\[fk*](?:\((..)|\[([^]]*)\]|(.))"), ""),  # fonts, strings such as a quotation mark
    (re.compile(r"\\s[-+]?\d"), ""),
    (re.compile(r"\\\((bu|em|en|mi)"), "-"),
    (re.compile(r"\\[|^&/,%c]|\\\(.."), ""),
    (re.compile(r"\\e"), r"\\"),
    (re.compile(r"\\(.)"), r"\1"),
)
_BREAKS = (
    "PP", "LP", "IP", "QP", "TL", "AU", "AI", "AB", "AE", "FS", "FE", "KF", "KS", "KE", "RS", "RE", "br", "sp", "TE",
)  # fmt: skip


def groff_document(source: str, name: str) -> Document:
    """Blocks of a source with the macros of -ms; a table's cells are text."""
    blocks: list[Block] = []
    lines: list[str] = []
    title, level, code = name, -1, False  # level 0: the title; -1: text

    def end() -> None:
        nonlocal title, level
        text = "\n".join(lines) if code else " ".join(" ".join(lines).split())
        lines.clear()
        if text and level == 0:
            title = text
        elif text:
            blocks.append(Heading(text, level) if level > 0 else Paragraph(text, code=code))
        if text:
            level = -1

    until, table = "", False
    for line in source.splitlines():
        request, _, rest = (part.strip() for part in line.removeprefix(".").partition(" "))
        if not line.startswith("."):
            request = ""
        if until or line.startswith((".\\", "'")):
            until = "" if request == until else until
        elif request in _DROPPED:
            until = _DROPPED[request]
        elif request in ("NH", "SH", "TL"):
            end()
            level = 0 if request == "TL" else int(rest or 1) if request == "NH" else 1
        elif request in ("DS", "DE"):
            end()
            code = request == "DS"
        elif request in _BREAKS:
            end()
            if request == "IP" and rest:
                lines.append(_plain(rest.split('"')[1] if '"' in rest else rest.split()[0]))
        elif request == "TS":
            end()
            table = True  # its format ends with a full stop
        elif table:
            table = not line.endswith(".")
        elif not request:
            lines.append(_plain(line.replace("T{", "").replace("T}", "")))
    end()
    return Document(name, title, tuple(blocks))


def _plain(line: str) -> str:
    for escape, text in _ESCAPES:
        line = escape.sub(text, line)
    return line
