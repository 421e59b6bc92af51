"""The true structure of a LaTeX document from its source: sectioning commands, tabular environments, running text.

Not a TeX engine: what macros of packages print (bibliographies, numbers of references, fill text) is not in it; display
formulas are left out, inline ones keep their letters and digits.
"""

import re

from documents.records import Document, Heading, Paragraph, Table
from tests.documents.benchmark.truth.blocks import TrueBlocks, equally_long, from_level_one
from tests.documents.benchmark.truth.latex_source import (
    SYMBOLS,
    Macro,
    accented,
    argument,
    macros,
    optional_argument,
    split,
    without_comments,
)

SECTIONS = ("part", "chapter", "section", "subsection", "subsubsection")  # a paragraph's run-in title is no heading
_TOKEN = re.compile(r"\\([a-zA-Z@]+)\*?|\\(.)|\$\$?|\n[ \t]*\n\s*|[{}~]|``|''|---?|[^\\${}~\n`'-]+|.", re.DOTALL)
_BLANKS = re.compile(r"[ \t]*")
_RULES = re.compile(r"\\(?:hline|toprule|midrule|bottomrule|botrule|colrule|Xhline\{[^}]*\})\b(?:\[[^]]*\])?")
_TABLES = ("tabular", "tabular*", "tabularx", "longtable", "supertabular", "tabulary")
_CODE = ("verbatim", "verbatim*", "lstlisting", "Verbatim", "vquote")
_DROPPED = (
    "equation", "align", "eqnarray", "gather", "multline", "displaymath", "alignat", "flalign", "subequations",
    "widetext", "CCSXML", "comment", "filecontents", "tikzpicture", "picture", "thebibliography",
)  # fmt: skip
_WITHOUT_TEXT = {  # commands of the list's sources whose arguments print nothing: how many in braces
    "label": 1, "ref": 1, "pageref": 1, "eqref": 1, "autoref": 1, "nameref": 1, "cite": 1, "citep": 1, "citet": 1,
    "citealt": 1, "citeauthor": 1, "onlinecite": 1, "nocite": 1, "vspace": 1, "hspace": 1, "includegraphics": 1,
    "includeclip": 1, "setlength": 2, "addtolength": 2, "rule": 2, "bibliographystyle": 1, "bibliography": 1,
    "color": 1, "cline": 1, "cmidrule": 1, "newcommand": 2, "renewcommand": 2, "selectlanguage": 1, "ccsdesc": 1,
    "lstset": 1, "hypertarget": 1, "addcontentsline": 3, "orcid": 1, "href": 1, "textcolor": 1,
    "received": 1, "title": 1, "setfloatlink": 1,
}  # fmt: skip


def latex_document(source: str, name: str) -> Document:
    """Blocks of a LaTeX source file; levels count from the highest sectioning command that it uses."""
    plain = without_comments(source)
    body = re.search(r"\\begin\s*\{document\}(.*)\\end\s*\{document\}", plain, re.DOTALL)  # quoted ones in between
    reader = _Reader(macros(plain))
    title = re.search(r"\\title\s*(?:\[[^]]*\])?\s*(?=\{)", plain)
    title_text = reader.inline(argument(plain, title.end())[0]) if title else name
    reader.read(body[1] if body else plain)
    return Document(name, title_text, from_level_one([*reader.blocks, *map(Paragraph, reader.notes)]))


class _Reader(TrueBlocks):
    """Collects blocks while it goes through a source."""

    def __init__(self, own: dict[str, Macro]) -> None:
        super().__init__()
        self.notes: list[str] = []  # footnotes: they stand elsewhere on the page
        self._own = own

    def inline(self, source: str) -> str:
        """The running text of a piece of source, as one line."""
        reader = _Reader(self._own)
        reader.read(source)
        self.notes += reader.notes
        return " ".join(block.text for block in reader.blocks if isinstance(block, Paragraph))

    def read(self, source: str) -> None:
        """Add the blocks of a source."""
        position = 0
        while match := _TOKEN.match(source, position):
            token, command, symbol = match[0], match[1], match[2]
            position = match.end()
            if command is not None:
                position = self._command(command, source, position)
            elif symbol is not None:
                position = self._symbol(symbol, source, position)
            elif token.startswith("$"):
                end = source.index(token, position)
                if token == "$":
                    self.text.append(self._formula(source[position:end]))
                position = end + len(token)
            elif token.startswith("\n") and len(token) > 1:
                self.end()
            elif token not in "{}":
                self.text.append({"~": " ", "``": "“", "''": "”", "--": "\u2013", "---": "—"}.get(token, token))
        self.end()

    def _symbol(self, symbol: str, source: str, position: int) -> int:
        if symbol in "([":
            end = source.index("\\)" if symbol == "(" else "\\]", position)
            if symbol == "(":
                self.text.append(self._formula(source[position:end]))
            return end + 2
        if symbol == "\\":
            self.text.append(" ")
            return optional_argument(source, position)[1]
        letter, end = argument(source, position)
        accent = accented(symbol, letter)
        if accent is not None:
            self.text.append(accent)
            return end
        self.text.append({",": " ", ";": " ", ":": " ", "!": "", "/": "", "-": "", "@": ""}.get(symbol, symbol))
        return position

    def _command(self, command: str, source: str, position: int) -> int:
        if command == "begin":
            return self._environment(source, position)
        if command in SECTIONS:
            _, position = optional_argument(source, position)
            title, position = argument(source, position)
            self.add(Heading(self.inline(title), SECTIONS.index(command)))
            return position
        if command in ("verb", "lstinline"):
            end = source.index(source[position], position + 1)
            self.text.append(source[position + 1 : end])
            return end + 1
        if command in ("cmd", "string", "command"):  # of classes' manuals: they print a command's name
            name, position = argument(source, position)
            self.text.append(name)
            return position
        if command == "char":
            code = re.compile(r"\s*(?:'([0-7]+)|(\d+))").match(source, position)
            self.text.append(chr(int(code[1], 8) if code[1] else int(code[2])) if code else "")
            return code.end() if code else position
        if command in ("par", "item", "maketitle", "bibitem"):
            self.end()
            if command == "item":
                label, position = optional_argument(source, position)
                self.text.append(f"- {self.inline(label)} " if label else "- ")
            return position
        if command in ("footnote", "footnotetext", "thanks", "tablefootnote"):
            _, position = optional_argument(source, position)
            note, position = argument(source, position)
            self.notes.append(self.inline(note))
            return position
        if command == "caption":
            _, position = optional_argument(source, position)
            caption, position = argument(source, position)
            self.end()
            self.text.append(self.inline(caption))
            self.end()
            return position
        if command in self._own and command not in SYMBOLS:
            return self._macro(self._own[command], source, position)
        if accented(command, "a") is not None:
            letter, end = argument(source, position)
            self.text.append(accented(command, letter) or "")
            return end
        if command in SYMBOLS:
            self.text.append(SYMBOLS[command])
            return re.compile(r"\s*(?:\{\})?").match(source, position).end()  # type: ignore[union-attr]
        _, position = optional_argument(source, position)
        for _ in range(_WITHOUT_TEXT.get(command, 0)):
            _, position = optional_argument(source, position)
            _, position = argument(source, position)
        return _BLANKS.match(source, position).end()  # type: ignore[union-attr]

    def _macro(self, macro: Macro, source: str, position: int) -> int:
        arguments = []
        for number in range(macro.arguments):
            if number == 0 and macro.default is not None:
                chosen, position = optional_argument(source, position)
                arguments.append(macro.default if chosen is None else chosen)
            else:
                given, position = argument(source, position)
                arguments.append(given)
        body = re.sub(r"#(\d)", lambda match: (["", *arguments, *[""] * 9])[int(match[1])], macro.body)
        self.text.append(self.inline(body))
        return position

    def _environment(self, source: str, position: int) -> int:
        name, position = argument(source, position)
        ending = re.compile(rf"\\(begin|end)\s*\{{{re.escape(name)}\}}")
        depth, start = 1, position
        content, after = source[start:], len(source)
        for match in ending.finditer(source, position):
            depth += 1 if match[1] == "begin" and name not in _CODE else -1 if match[1] == "end" else 0
            if depth == 0:
                content, after = source[start : match.start()], match.end()
                break
        if name.rstrip("*") in _DROPPED:
            return after
        self.end()
        if name in _CODE:
            lines = content.partition("\n")[2] if name == "lstlisting" else content
            self.blocks.append(Paragraph(lines.strip("\n"), code=True))
        elif name in _TABLES:
            if rows := self._rows(content, wide=name in ("tabular*", "tabularx", "tabulary")):
                self.blocks.append(Table(rows))
        else:
            _, skipped = optional_argument(content, 0)
            if name in ("minipage", "multicols", "subfigure", "selectlanguage", "tabbing", "adjustwidth"):
                _, skipped = argument(content, skipped)
            self.read(content[skipped:])
        return after

    def _rows(self, content: str, wide: bool) -> tuple[tuple[str, ...], ...]:
        start = 0
        if wide:
            _, start = argument(content, start)
        _, start = optional_argument(content, start)
        _, start = argument(content, start)
        rows = []
        for line in split(content[start:], r"\\"):
            cells: list[str] = []
            for cell in split(re.sub(r"^\s*\[[^]]*\]", "", line), "&"):
                cell = _RULES.sub("", cell)
                span = re.match(r"\s*\\multicolumn\s*\{(\d+)\}", cell)
                width = int(span[1]) if span else 1
                if span:
                    _, end = argument(cell, span.end())
                    cell = argument(cell, end)[0]
                cells += [self.inline(cell)] * width
            if any(cells):
                rows.append(cells)
        return equally_long(rows)

    def _formula(self, source: str) -> str:
        """Letters, digits and signs of a formula in the order of the source."""
        return self.inline(re.sub(r"[\^_&$]|\\[,;!: ]|\\(?:left|right)\b", "", source)).replace(" ", "")
