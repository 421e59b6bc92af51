"""Pieces of LaTeX source: comments removed, arguments taken, the author's macros expanded, symbols as Unicode."""

import re
import unicodedata
from dataclasses import dataclass
from html.entities import html5

_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)%[^\n]*(?:\n[ \t]*(?=\S))?")
_VERBATIM = re.compile(
    r"\\begin\{(verbatim\*?|lstlisting|Verbatim|vquote|comment)\}.*?\\end\{\1\}|\\verb\*?([^a-zA-Z\s*]).*?\2", re.DOTALL
)
_DEFINITION = re.compile(
    r"\\(?:(?:re|provide)?newcommand|DeclareRobustCommand)\*?\s*\{?\\([a-zA-Z]+)\}?\s*(?:\[(\d)\])?\s*(\[[^]]*\])?\s*(?=\{)"
    r"|\\def\s*\\([a-zA-Z]+)\s*((?:#\d)*)\s*(?=\{)"
)
_ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307"}
_ACCENTS |= {"c": "\u0327", "v": "\u030c", "u": "\u0306", "H": "\u030b", "r": "\u030a", "k": "\u0328"}
_AS_IN_HTML = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi "
    "omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega times pm le leq ge geq dagger bullet"
)
SYMBOLS = {name: html5[f"{name};"] for name in _AS_IN_HTML.split()} | {
    "LaTeX": "LaTeX", "LaTeXe": "LaTeX2e", "TeX": "TeX", "BibTeX": "BibTeX", "revtex": "REVTeX", "LuaTeX": "LuaTeX",
    "textbackslash": "\\", "bs": "\\", "textbullet": "•", "ldots": "…", "dots": "…", "textellipsis": "…", "cdot": "·",
    "neq": "≠", "infty": "∞", "degr": "°", "o": "ø", "O": "Ø", "AA": "Å", "textendash": "\u2013", "textemdash": "—",
    "quad": " ", "newline": " ", "linebreak": " ",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Macro:
    """A command that the author defined."""

    arguments: int
    default: str | None  # of the first argument, which may then be left out
    body: str


def without_comments(source: str) -> str:
    """Source without its comments; verbatim text keeps its per cent signs."""
    out, start = [], 0
    for match in _VERBATIM.finditer(_unused_verbatim_in_comments(source)):
        out += [_COMMENT.sub(r"\1", source[start : match.start()]), "" if match[1] == "comment" else match[0]]
        start = match.end()
    return "".join([*out, _COMMENT.sub(r"\1", source[start:])])


def _unused_verbatim_in_comments(source: str) -> str:
    """The same length of source, with verbatim commands inside of whole commented lines made harmless."""
    return re.sub(r"^[ \t]*%[^\n]*", lambda match: "%" + " " * (len(match[0]) - 1), source, flags=re.MULTILINE)


def macros(source: str) -> dict[str, Macro]:
    """The commands that a source defines with a body in braces."""
    found = {}
    for match in _DEFINITION.finditer(source):
        body, _ = argument(source, match.end())
        if match[1]:
            found[match[1]] = Macro(int(match[2] or 0), match[3] and match[3][1:-1], body)
        else:
            found[match[4]] = Macro(len(match[5]) // 2, None, body)
    return found


def argument(source: str, start: int) -> tuple[str, int]:
    """A command's argument and the place behind it: braces and what is between them, or one token."""
    while start < len(source) and source[start].isspace():
        start += 1
    if start >= len(source):
        return "", start
    if source[start] != "{":
        match = re.compile(r"\\[a-zA-Z]+|\\.|.", re.DOTALL).match(source, start)
        return (match[0], match.end()) if match else ("", start)
    end = _closing(source, start, "{", "}")
    return source[start + 1 : end], end + 1


def optional_argument(source: str, start: int) -> tuple[str | None, int]:
    """An argument in square brackets right here (blanks before it allowed) and the place behind it.

    None without one.
    """
    match = re.compile(r"[ \t]*\n?[ \t]*\[").match(source, start)
    if not match:
        return None, start
    end = _closing(source, match.end() - 1, "[", "]")
    return source[match.end() : end], end + 1


def _closing(source: str, start: int, opening: str, closing: str) -> int:
    """Place of the bracket that closes the one at `start`, or the source's end; braces nest in both kinds."""
    depth = braces = 0
    position = start
    while position < len(source):
        character = source[position]
        if character == "\\":
            position += 1
        elif character == opening and (opening == "{" or not braces):
            depth += 1
        elif character == closing and (closing == "}" or not braces):
            depth -= 1
            if not depth:
                return position
        elif opening != "{" and character in "{}":
            braces += 1 if character == "{" else -1
        position += 1
    return len(source)


def split(source: str, separator: str) -> list[str]:
    """Parts of a source between separators outside of braces and inner environments."""
    parts, depth, start, position = [], 0, 0, 0
    while position < len(source):
        if source.startswith("\\verb", position) and not source[position + 5 : position + 6].isalpha():
            quote = source[position + 5 : position + 6]
            position = max(source.find(quote, position + 6), position + 5)
        elif source.startswith(separator, position) and not depth:
            parts.append(source[start:position])
            position += len(separator) - 1
            start = position + 1
        elif source.startswith(("\\begin", "{"), position):
            depth += 1
        elif source.startswith(("\\end", "}"), position):
            depth -= 1
        elif source[position] == "\\":
            position += 1
        position += 1
    return [*parts, source[start:]]


def accented(command: str, letter: str) -> str | None:
    r"""The letter that an accent's command gives (`'` and `e` for `\'e`), or None if the command is no accent."""
    if command not in _ACCENTS:
        return None
    plain = letter.replace("\\i", "i").replace("\\j", "j").strip("{} ")
    return unicodedata.normalize("NFC", plain[:1] + _ACCENTS[command]) + plain[1:] if plain else ""
