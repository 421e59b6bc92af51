"""A name that stands twice in a mapping is refused, in configs, in files that these name, and in typed values."""

from pathlib import Path

import pytest

from common.errors import UserError
from common.yaml_texts import load_yaml
from harness.llm.prompts import Prompt
from models.dmqr.strategies import Pool
from tests.helpers.commands import command, refused

SYSTEM = "system:\n  class_path: harness.systems.retrieve_read.RetrieveRead\n  init_args:\n    k: 2\n"
PART = "class_path: harness.retrievers.bm25.Bm25Retriever\ninit_args:\n  index: a\n"
LLM = "class_path: harness.llm.endpoint.ChatEndpoint\ninit_args:\n  model: a\n"
FILES = {
    "right.yaml": f"{SYSTEM}    retriever: part.yaml\n", "part.yaml": PART,
    "twice.yaml": f"{SYSTEM}    retriever: x\n    k: 3\n",
    "inner.yaml": f"{SYSTEM}    retriever: twice_part.yaml\n", "twice_part.yaml": f"{PART}  index: b\n",
    "list.yaml": f"{SYSTEM}    retriever:\n      class_path: harness.retrievers.fusion.FusedRetriever\n"
    "      init_args: {method: reciprocal_rank, retrievers: [part.yaml, twice_part.yaml]}\n",
    "systems.yaml": "systems:\n  a: --config right.yaml\n  b: --config right.yaml\n  a: --config inner.yaml\n",
    "llm.yaml": f"{LLM}  model: b\n", "train.yaml": "name: a\ntrainer: {max_epochs: 1}\nname: b\n",
    "pool.yaml": "strategies: []\ndemonstrations: []\nstrategies: []\n", "prompt.yaml": "user: a\nuser: b\n",
}  # fmt: skip
EVALUATE = "infer.py evaluate --questions q --out o"
INDEX = "{class_path: harness.retrievers.bm25.Bm25Retriever, init_args: {index: a, index: b}}"
LINES = [
    ("infer.py ask --question x --config twice.yaml", "twice.yaml, line 6: 'k' stands twice in one mapping (first in"),
    ("infer.py ask --question x --config inner.yaml", "twice_part.yaml, line 4: 'index' stands twice"),
    ("infer.py ask --question x --config list.yaml", "twice_part.yaml, line 4: 'index' stands twice"),
    ("infer.py ask --question x --config right.yaml --llm llm.yaml", "llm.yaml, line 4: 'model' stands twice"),
    (f"{EVALUATE} --config systems.yaml", "systems.yaml, line 4: 'a' stands twice"),
    (f"{EVALUATE} --config right.yaml --config twice.yaml", "twice.yaml, line 6: 'k' stands twice"),
    ("train.py fit --config train.yaml", "train.yaml, line 3: 'name' stands twice"),
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(("typed", "said"), LINES)
def test_it_is_refused_with_file_and_line(place: Path, typed: str, said: str) -> None:
    refused(command(place, *typed.split()), 2, said)


def test_it_is_refused_where_it_is_typed(place: Path) -> None:
    given = ("infer.py", "ask", "--config", "right.yaml", "--question", "x", "--system.retriever", INDEX)
    assert refused(command(place, *given), 2) == "infer.py: 'index' stands twice in one mapping: keep one of them."


def test_pools_and_prompts_are_read_alike(place: Path) -> None:
    with pytest.raises(UserError, match=r"pool\.yaml, line 3: 'strategies' stands twice"):
        Pool.load(place / "pool.yaml")
    with pytest.raises(UserError, match=r"prompt\.yaml, line 2: 'user' stands twice"):
        Prompt.load(str(place / "prompt.yaml"))


def test_a_question_that_looks_like_a_mapping_is_a_question(place: Path) -> None:
    ended = command(place, "infer.py", "ask", "--config", "right.yaml", "--question", "A: who?\nA: where?")
    refused(ended, 66, "a: no such index")


@pytest.mark.parametrize("text", ["a: 1\n'a': 2", "- {b: 1, b: 1}", "a:\n  - b:\n      c: 1\n      c: 2"])
def test_every_way_to_write_it_is_found(text: str) -> None:
    with pytest.raises(UserError, match="stands twice"):
        load_yaml(text)


def test_names_in_different_mappings_and_merged_ones_are_right() -> None:
    assert load_yaml("x: &x {a: 1, b: 2}\ny: {<<: *x, <<: *x, a: 3}\nz: [*x, *x]") == {
        "x": {"a": 1, "b": 2}, "y": {"a": 3, "b": 2}, "z": [{"a": 1, "b": 2}, {"a": 1, "b": 2}],
    }  # fmt: skip
    assert load_yaml("") is None
