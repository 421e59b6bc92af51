"""`make size`: lines of code, worked out by hand, and the table of a small checkout."""

import pytest

from scripts.code_size import code_lines

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
