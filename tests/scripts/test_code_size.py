"""`make size`: lines of code, worked out by hand, and the table of a small checkout."""

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.code_size import code_lines

ROOT = Path(__file__).parents[2]
CODE = '''"""What it is.

More of it.
"""

import os  # 1

# a comment
TEXT = """one

# three, no comment
"""  # 2 to 5: a string is code, a blank line in it too


class Thing:  # 6
    """One line."""

    """No docstring."""  # 7

    def name(self) -> str:  # 8
        """Two
        lines."""
        first = 1; second = 2  # 9
        return (  # 10

            # a comment between brackets
            TEXT[first:second]  # 11
        )  # 12


async def wait() -> None:  # 13
    """Alone."""
'''


@pytest.mark.parametrize(("source", "lines"), [(CODE, 13), ("", 0), ("# alone\n\n", 0), ("x = 1\n", 1)])
def test_lines_of_code(source: str, lines: int) -> None:
    assert code_lines(source) == lines


def test_table_of_what_git_tracks(tmp_path: Path) -> None:
    files = {
        "run.py": "x = 1\n",
        "read me.md": "é" * 750,
        "models/part/thing.py": CODE,
        "models/a.bin": b"\xff\xfe",
        "tests/test_thing.py": "# none\ny = 1\n",
        "documents/a.txt": "a" * 2000,
        "untracked.py": "z = 1\n",
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    subprocess.run(
        ["git", "-C", tmp_path, "add", "--", *(name for name in files if name != "untracked.py")], check=True
    )
    command = [sys.executable, ROOT / "scripts/code_size.py", tmp_path]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    lines = CODE.count("\n")
    assert [line.split() for line in printed[1:]] == [
        [".", "1", "1", "2"],
        ["documents", "0", "0", "2"],
        ["models", "13", str(lines), "0"],
        ["tests", "1", "2", "0"],
        ["total", "15", str(lines + 3), "4"],
        ["outside", "tests", "14", str(lines + 1), "4"],
    ]
