"""A mistake of the user is one line, also where a parser wraps it; a bug that comes while one is handled is shown."""

from pathlib import Path

import pytest

from tests.helpers.commands import command, refused

OWN = """
from collections.abc import Sequence

from common.errors import UserError
from common.records import Answer, Question

class Wrong:
    def __init__(self, bug: bool = False) -> None:
        try:
            raise UserError("k is 0: give a larger one")
        except UserError as error:
            if bug:
                raise undefined
            raise ValueError("no system") from error

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        return []
"""


@pytest.mark.parametrize("bug", [False, True])
def test_a_bug_is_a_traceback_also_while_a_mistake_is_handled(
    bug: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"own_system_{bug}"
    (tmp_path / f"{name}.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    typed = ("ask", "--system", f"{name}.Wrong", "--system.bug", str(bug).lower(), "--question", "x")
    if not bug:
        refused(command(tmp_path, "infer.py", *typed), 2, "k is 0: give a larger one")
        return
    with pytest.raises(NameError, match="undefined"):
        command(tmp_path, "infer.py", *typed)
