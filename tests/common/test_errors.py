"""Mistakes in one line: of the user, of a name that stands twice in a mapping, of a missing package; a bug is shown."""

import sys
import tomllib
from pathlib import Path

import pytest

from common.errors import UserError
from common.packages import EXTRAS, require
from common.yaml_texts import load_yaml
from harness.llm.prompts import Prompt
from models.dmqr.strategies import Pool
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


RIGHT = """
system:
  class_path: harness.systems.retrieve_read.RetrieveRead
  init_args:
    retriever: {class_path: harness.retrievers.bm25.Bm25Retriever, init_args: {index: a}}
"""


def test_every_way_to_write_it_is_found_and_pools_and_prompts_are_read_alike(tmp_path: Path) -> None:
    for text in ("a: 1\n'a': 2", "- {b: 1, b: 1}", "a:\n  - b:\n      c: 1\n      c: 2"):
        with pytest.raises(UserError, match="stands twice"):
            load_yaml(text)
    (tmp_path / "a.yaml").write_text("user: a\nuser: b\n")
    for load in (Pool.load, Prompt.load):
        with pytest.raises(UserError, match=r"a\.yaml, line 2: 'user' stands twice"):
            load(tmp_path / "a.yaml")


def test_a_question_that_looks_like_a_mapping_is_a_question(tmp_path: Path) -> None:
    (tmp_path / "right.yaml").write_text(RIGHT)
    ended = command(tmp_path, "infer.py", "ask", "--config", "right.yaml", "--question", "A: who?\nA: where?")
    refused(ended, 66, "a: no such index")


def test_names_in_different_mappings_and_merged_ones_are_right() -> None:
    assert load_yaml("x: &x {a: 1, b: 2}\ny: {<<: *x, <<: *x, a: 3}\nz: [*x, *x]") == {
        "x": {"a": 1, "b": 2}, "y": {"a": 3, "b": 2}, "z": [{"a": 1, "b": 2}, {"a": 1, "b": 2}],
    }  # fmt: skip
    assert load_yaml("") is None


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
