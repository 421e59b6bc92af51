"""Packages of extras: what is missing is named with its extra."""

import sys
import tomllib
from pathlib import Path

import pytest

from common.errors import UserError
from common.packages import EXTRAS, require

PYPROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())


def test_extras_have_as_many_packages_as_modules() -> None:
    declared = PYPROJECT["project"]["optional-dependencies"]
    assert {extra: len(declared[extra]) for extra in EXTRAS} == {extra: len(EXTRAS[extra]) for extra in EXTRAS}


def test_only_what_is_missing_and_needed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("docx", "PIL", "trafilatura"):
        monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    require("documents", "reading", modules=["lxml"])
    with pytest.raises(UserError, match=r"^reading Word files needs docx, PIL, .*\.\[documents\]"):
        require("documents", "reading Word files", modules=["lxml", "docx", "PIL"])
    with pytest.raises(UserError, match=r"\.\[web\]', or set read_pages to false"):
        require("web", "read_pages", "set read_pages to false")
