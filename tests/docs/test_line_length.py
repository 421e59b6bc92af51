"""Configs and pages keep to 120 columns, as Python does by ruff's E501; tables, JSON rows and such lines aside."""

import re
from pathlib import Path

import pytest

from tests.docs.documents import CONFIGS, ROOT

COLUMNS = 120
FILES = [*CONFIGS, ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")


def too_long(text: str) -> list[int]:
    """The numbers of lines that are too long and could be broken at a blank, outside quotes, tables and JSON rows."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = QUOTED.sub(lambda match: "x" * len(match[0]), line).lstrip("# ")
        start = len(line) - len(words)
        if len(line) > COLUMNS and not line.lstrip().startswith(("|", "{")) and " " in words[: COLUMNS - start]:
            found.append(number)
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_line_is_too_long(file: Path) -> None:
    assert not too_long(file.read_text(encoding="utf-8"))


def test_tables_addresses_and_quoted_arguments_are_no_prose() -> None:
    word = "x" * COLUMNS
    kept = ["a " * 60, f"| {word} | {word} |", f"# https://{word}", f"    '[{word}, {word}]'", f"#       '{word} a'"]
    assert not too_long("\n".join(kept))
    assert too_long(f"{'a ' * 60}a\n# an address https://{word}\npython train.py {word}") == [1, 2, 3]
