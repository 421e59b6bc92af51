"""A mistake of the user is one line, also where a parser wraps it; a bug that comes while one is handled is shown."""

from pathlib import Path

import pytest

from tests.helpers.commands import command, refused

OWN = """
from collections.abc import Sequence
from common.errors import UserError
from common.records import Answer, Question

class Wrong:
    def __init__(self, bug: bool) -> None:
        try:
            raise UserError("k is 0: give a larger one")
        except UserError as error:
            raise undefined if bug else ValueError("no system") from error

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        return []
"""


def test_a_bug_is_a_traceback_also_while_a_mistake_is_handled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_mistake.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    typed = ("ask", "--system", "own_mistake.Wrong", "--question", "x", "--system.bug")
    refused(command(tmp_path, "infer.py", *typed, "false"), 2, "k is 0: give a larger one")
    with pytest.raises(NameError, match="undefined"):
        command(tmp_path, "infer.py", *typed, "true")
