"""The true structure of a LaTeX document from its source: sectioning commands, tabular environments, running text.

Not a TeX engine: what macros of packages print (bibliographies, numbers of references, fill text) is not in it; display
formulas are left out, inline ones keep their letters and digits.
"""

import re
from html.entities import html5
from unicodedata import normalize

from documents.records import Document, Heading, Paragraph, Table
from tests.documents.benchmark.truth.blocks import TrueBlocks, equally_long, from_level_one

SECTIONS = ("part", "chapter", "section", "subsection", "subsubsection")  # a paragraph's run-in title is no heading
_TABLES = ("tabular", "tabular*")
_CODE = ("verbatim", "lstlisting", "vquote")
_WITH_ARGUMENT = ("minipage", "subfigure", "selectlanguage")
_DROPPED = (
    r"(equation|align|eqnarray|multline|displaymath|subequations|widetext|CCSXML|comment|thebibliography|gather)\*?"
)
_ONE_WITHOUT_TEXT = (
    "label ref pageref eqref autoref nameref cite citep citet citealt citeauthor onlinecite nocite vspace hspace color "
    "includegraphics includeclip bibliographystyle bibliography cline cmidrule selectlanguage ccsdesc lstset textcolor "
    "hypertarget orcid href received title setfloatlink"
)
_TWO_WITHOUT_TEXT = "setlength addtolength rule newcommand renewcommand"
# commands of the list's sources whose arguments print nothing: how many in braces
_WITHOUT_TEXT = dict.fromkeys(_ONE_WITHOUT_TEXT.split(), 1) | dict.fromkeys(_TWO_WITHOUT_TEXT.split(), 2)
_WITHOUT_TEXT["addcontentsline"] = 3
_ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "c": "\u0327", "v": "\u030c"}
_AS_IN_HTML = "alpha beta gamma delta epsilon kappa mu nu pi rho sigma tau phi psi omega Psi Omega times pm le ge geq"
_SYMBOLS = {name: html5[f"{name};"] for name in _AS_IN_HTML.split()} | {
    "LaTeX": "LaTeX", "LaTeXe": "LaTeX2e", "TeX": "TeX", "BibTeX": "BibTeX", "revtex": "REVTeX", "LuaTeX": "LuaTeX",
    "textbackslash": "\\", "bs": "\\", "textbullet": "•", "ldots": "…", "dots": "…", "textellipsis": "…", "cdot": "·",
    "neq": "≠", "infty": "∞", "degr": "°", "o": "ø", "O": "Ø", "AA": "Å", "textendash": "\u2013", "textemdash": "—",
    "quad": " ", "newline": " ", "linebreak": " ",
}  # fmt: skip
_SIGNS = {",": " ", "!": "", "/": "", "-": "", "@": ""}
_PLAIN = {"~": " ", "``": "“", "''": "”", "--": "\u2013", "---": "—", "{": "", "}": ""}

_GROUP = r"\{[^{}]*\}"  # braces and what is between them
for _ in range(8):
    _GROUP = rf"\{{(?:[^{{}}\\]|\\.|{_GROUP})*\}}"
_OPTION = rf"(?:[ \t]*\n?[ \t]*\[((?:[^]{{}}\\]|\\.|{_GROUP})*)\])?"
_VERBATIM = r"\\begin\{(verbatim\*?|lstlisting|Verbatim|vquote|comment)\}.*?\\end\{\2\}|\\verb\*?([^a-zA-Z\s*]).*?\3"
_COMMENT = r"(?<!\\)((?:\\\\)*)%[^\n]*(?:\n[ \t]*(?=\S))?"
_DEFINITION = (
    r"\\(?:(?:re|provide)?newcommand|DeclareRobustCommand|def)\*?\s*\{?\\([a-zA-Z]+)\}?\s*(?:\[(\d)\])?\s*"
    rf"(?:\[([^]]*)\])?\s*((?:#\d)*)\s*(?=({_GROUP}))"
)
_TOKEN = r"\\([a-zA-Z@]+)\*?|\\(.)|\$\$?|\n[ \t]*\n\s*|[{}~]|``|''|---?|[^\\${}~\n`'-]+|."
_RULES = r"\\(?:hline|toprule|midrule|bottomrule|botrule|colrule|Xhline\{[^}]*\})\b(?:\[[^]]*\])?"
_Macros = dict[str, tuple[int, str | None, str]]  # the author's: number of arguments, default of the first one, body


def latex_document(source: str, name: str) -> Document:
    """Blocks of a LaTeX source file; levels count from the highest sectioning command that it uses."""
    blanked = re.sub(r"^[ \t]*%[^\n]*", lambda match: "%" + " " * (len(match[0]) - 1), source, flags=re.MULTILINE)
    plain = re.sub(f"({_VERBATIM})|{_COMMENT}", lambda match: match[1] or match[4], blanked, flags=re.DOTALL)
    own: _Macros = {
        match[1]: (int(match[2] or len(match[4]) // 2), match[3], match[5][1:-1])
        for match in re.finditer(_DEFINITION, plain, re.DOTALL)
    }
    body = re.search(r"\\begin\s*\{document\}(.*)\\end\s*\{document\}", plain, re.DOTALL)  # quoted ones in between
    title = re.search(rf"\\title\s*(?:\[[^]]*\])?\s*({_GROUP})", plain, re.DOTALL)
    printed, reader = _Reader(title[1] if title else name, own), _Reader(body[1] if body else plain, own)
    notes = map(Paragraph, printed.notes + reader.notes)
    return Document(name, printed.line, from_level_one([*reader.blocks, *notes]))


def _parts(source: str, separator: str) -> list[str]:
    """Parts of a source between separators outside of braces, quotes and inner environments."""
    end = re.escape(separator)
    part = rf"((?:\\verb(\W).*?\2|\\begin.*?\\end|{_GROUP}|(?!{end})(?:\\.|.))*){end}"
    return [match[1] for match in re.finditer(part, source + separator, re.DOTALL)]


class _Reader(TrueBlocks):
    """Collects the blocks of a source."""

    def __init__(self, source: str, own: _Macros) -> None:
        super().__init__()
        self.notes: list[str] = []  # footnotes: they stand elsewhere on the page
        self._open: set[str] = set()  # environments
        self._source, self._own, self._at = source, own, 0
        while self._at < len(source):
            token = self._take(_TOKEN)
            if name := token[1] or token[2]:
                self._command(name)
            elif token[0].startswith("$"):
                formula = self._take(rf"(.*?){re.escape(token[0])}")[1]
                self.text.append(self._formula(formula) if token[0] == "$" else "")
            elif token[0].startswith("\n") and len(token[0]) > 1:
                self.end()
            else:
                self.text.append(_PLAIN.get(token[0], token[0]))
        self.end()

    @property
    def line(self) -> str:
        """The running text, as one line."""
        return " ".join(block.text for block in self.blocks if isinstance(block, Paragraph))

    def _inline(self, source: str) -> str:
        reader = _Reader(source, self._own)
        self.notes += reader.notes
        return reader.line

    def _take(self, pattern: str) -> re.Match[str]:
        match = re.compile(pattern, re.DOTALL).match(self._source, self._at)
        assert match, self._source[self._at : self._at + 80]
        self._at = match.end()
        return match

    def _option(self) -> str | None:
        """An argument in square brackets right here, if there is one."""
        return self._take(_OPTION)[1]

    def _argument(self) -> str:
        """A command's argument: what is between braces, or one token."""
        return re.sub(r"^\{(.*)\}$", r"\1", self._take(rf"\s*({_GROUP}|\\[a-zA-Z]+|\\.|.?)")[1], flags=re.DOTALL)

    def _command(self, name: str) -> None:
        if name == "begin":
            self._environment(self._argument())
        elif name == "end" and (ended := self._argument()) not in self._open:  # it is quoted
            self.text.append(ended)
        elif name in ("end", "par", "maketitle"):
            self.end()
        elif name == "item":
            self.end()
            label = self._option()
            self.text.append(f"- {self._inline(label)} " if label else "- ")
        elif name in SECTIONS:
            self._option()
            self.add(Heading(self._inline(self._argument()), SECTIONS.index(name)))
        elif name in ("footnote", "footnotetext", "thanks", "tablefootnote"):
            self._option()
            self.notes.append(self._inline(self._argument()))
        elif name == "caption":
            self._option()
            self.end()
            self.text.append(self._inline(self._argument()))
            self.end()
        elif name in ("verb", "lstinline"):
            self.text.append(self._take(r"(.)(.*?)\1")[2])
        elif name in ("cmd", "string", "command"):  # of classes' manuals: they print a command's name
            self.text.append(self._argument())
        elif name == "char":
            code = self._take(r"(?:\s*('?)(\d+))?")
            self.text.append(chr(int(code[2], 8 if code[1] else 10)) if code[2] else "")
        elif name == "[":
            self._take(r".*?\\\]")
        elif name == "\\":
            self._option()
            self.text.append(" ")
        elif name in self._own and name not in _SYMBOLS:
            count, default, body = self._own[name]
            first = [] if default is None else [self._option() or default]
            arguments = [*first, *(self._argument() for _ in range(count - len(first)))]
            self.text.append(self._inline(re.sub(r"#(\d)", lambda match: arguments[int(match[1]) - 1], body)))
        elif name in _ACCENTS:
            letter = self._argument().strip("\\{} ")
            self.text.append(letter and normalize("NFC", letter[0] + _ACCENTS[name] + letter[1:]))
        elif name in _SYMBOLS:
            self.text.append(_SYMBOLS[name])
            self._take(r"\s*(?:\{\})?")
        elif not name.isalpha():
            self.text.append(_SIGNS.get(name, name))
        else:
            self._option()
            for _ in range(_WITHOUT_TEXT.get(name, 0)):
                self._option()
                self._argument()
            self._take(r"[ \t]*")

    def _environment(self, name: str) -> None:
        if name in _TABLES:
            if name == "tabular*":
                self._argument()
            self._option()
            self._argument()
        begin, end = (rf"\\{word}\s*\{{{re.escape(name)}\}}" for word in ("begin", "end"))
        if re.fullmatch(_DROPPED, name):
            self._take(f".*?{end}")
            return
        self.end()
        if name in _CODE:
            lines = self._take(f"(.*?){end}")[1]
            lines = lines.partition("\n")[2] if name == "lstlisting" else lines
            self.blocks.append(Paragraph(lines.strip("\n"), code=True))
        elif name in _TABLES:
            rows = map(self._cells, _parts(self._take(f"((?:{begin}.*?{end}|.)*?){end}")[1], r"\\"))
            if filled := [row for row in rows if any(row)]:
                self.blocks.append(Table(equally_long(filled)))
        else:
            self._open.add(name)
            self._option()
            if name in _WITH_ARGUMENT:
                self._argument()

    def _cells(self, line: str) -> list[str]:
        cells = []
        for cell in _parts(re.sub(r"^\s*\[[^]]*\]", "", line), "&"):
            text = re.sub(_RULES, "", cell)
            span = re.match(rf"\s*\\multicolumn\s*\{{(\d+)\}}\s*{_GROUP}\s*({_GROUP})", text, re.DOTALL)
            cells += [self._inline(span[2] if span else text)] * int(span[1] if span else 1)
        return cells

    def _formula(self, source: str) -> str:
        """Letters, digits and signs of a formula in the order of the source."""
        return self._inline(re.sub(r"[\^_&$]|\\[,;!: ]|\\(?:left|right)\b", "", source)).replace(" ", "")
