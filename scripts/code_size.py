"""Prints how large the project is, by top-level folder: lines of code, lines of Python, kilobytes of other text.

    python scripts/code_size.py [FOLDER]

Code is Python without docstrings, comments and blank lines. Counted are the files that git tracks in FOLDER, a
checkout; those at its top are the row `.`. Files that are not UTF-8 text are left out.
"""

import ast
import io
import subprocess
import sys
import tokenize
from collections import defaultdict
from pathlib import Path

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER
}  # fmt: skip
COLUMNS = ("code lines", "Python lines", "other text, kB")


def code_lines(source: str) -> int:
    """Lines of Python that hold more than a docstring or a comment."""
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            held.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            held.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(held)


def sizes(checkout: Path) -> dict[str, tuple[int, int, int]]:
    """Lines of code, lines of Python, and bytes of other text of each top-level folder, by its name."""
    listed = subprocess.run(["git", "-C", checkout, "ls-files", "-z"], capture_output=True, check=True).stdout
    found: dict[str, tuple[int, int, int]] = defaultdict(lambda: (0, 0, 0))
    for name in filter(None, listed.decode().split("\0")):
        path = checkout / name
        try:
            text = path.read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError):  # a link, a file that was removed; an image
            continue
        python = path.suffix == ".py"
        counts = (code_lines(text), text.count("\n"), 0) if python else (0, 0, path.stat().st_size)
        top = Path(name).parts[0] if "/" in name else "."
        found[top] = _sum([found[top], counts])
    return dict(sorted(found.items()))


def _sum(rows: list[tuple[int, int, int]]) -> tuple[int, int, int]:
    code, python, other = (sum(column) for column in zip((0, 0, 0), *rows, strict=True))
    return code, python, other


def main() -> None:
    """Print the table."""
    found = sizes(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    outside = [row for folder, row in found.items() if folder != "tests"]
    found |= {"total": _sum([*found.values()]), "outside tests": _sum(outside)}
    print(f"{'':<16}" + "".join(f"{column:>16}" for column in COLUMNS))
    for folder, (code, python, other) in found.items():
        print(f"{folder:<16}{code:>16,}{python:>16,}{other / 1000:>16,.0f}")


if __name__ == "__main__":
    main()
