"""`make size`: lines of code, worked out by hand, and the table of a small checkout."""

import pytest

from scripts.code_size import code_lines

CODE = '''"""What it is.

More of it.
"""

# a comment
TEXT = """one

# three, no comment
"""  # 1 to 4: a string is code, a blank line in it too


class Thing:  # 5
    """One line."""

    """No docstring."""  # 6

    async def name(self) -> str:  # 7
        """Two
        lines."""
        first = 1; second = 2  # 8
        return (  # 9

            # a comment between brackets
            TEXT[first:second]  # 10
        )  # 11
'''


@pytest.mark.parametrize(("source", "lines"), [(CODE, 11), ("", 0), ("# alone\n\n", 0), ("x = 1\n", 1)])
def test_lines_of_code(source: str, lines: int) -> None:
    assert code_lines(source) == lines
