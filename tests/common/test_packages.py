"""Packages of extras: what is missing is named with its extra, as pyproject.toml has it."""

import sys
import tomllib
from pathlib import Path

import pytest

from common.errors import UserError
from common.packages import EXTRAS, require

PYPROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())


@pytest.mark.parametrize("extra", EXTRAS)
def test_versions_are_those_of_the_extra(extra: str) -> None:
    assert list(EXTRAS[extra].values()) == PYPROJECT["project"]["optional-dependencies"][extra]


def test_only_what_is_missing_and_needed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("docx", "PIL", "trafilatura"):
        monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    require("documents", "reading", modules=["lxml"])
    with pytest.raises(UserError) as raised:
        require("documents", "reading Word files", modules=["lxml", "docx", "PIL"])
    assert str(raised.value) == (
        "reading Word files needs python-docx, pillow, not installed here: pip install 'python-docx>=1.2,<2' "
        "'pillow>=12,<14' (the extra documents)."
    )
    with pytest.raises(UserError, match=r"\(the extra web\), or set read_pages to false\.$"):
        require("web", "read_pages", "set read_pages to false")
