"""A name that stands twice in a mapping is refused, in configs, in files that these name, and in typed values."""

from pathlib import Path

import pytest

from common.errors import UserError
from common.yaml_texts import load_yaml
from harness.llm.prompts import Prompt
from models.dmqr.strategies import Pool
from tests.helpers.commands import command, refused

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
