"""`infer.py distill` refuses in one line what it cannot do, and leaves everything as it was."""

import json
from pathlib import Path

import pytest
import yaml

from common.locks import exclusive
from tests.conftest import hotpot_rows
from tests.helpers.commands import command, refused
from tests.helpers.llm_servers import fault_server

DEAD = {
    "class_path": "harness.llm.endpoint.ChatEndpoint",
    "init_args": {"model": "tiny", "base_url": "http://127.0.0.1:9/v1", "key_variable": None, "max_retries": 2,
        "cache": None},
}  # fmt: skip
GIVEN = {"--questions": "train.json", "--out": "out", "--llm": "dead.yaml"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.json").write_text(json.dumps(hotpot_rows(2)))
    (tmp_path / "broken.json").write_text(json.dumps([*hotpot_rows(2), {"_id": "x"}]))
    (tmp_path / "corpus.jsonl").write_text('{"title": "a", "text": "b"}\n')
    (tmp_path / "pool.yaml").write_text("strategies: [{name: a, title: 'A: B', description: d, guideline: g}]")
    (tmp_path / "empty.json").touch()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/thesis.tex").write_text("the only copy")
    (tmp_path / "dead.yaml").write_text(yaml.safe_dump(DEAD))
    return tmp_path


def test_a_folder_in_use_is_left_alone(folder: Path) -> None:
    words = [word for pair in GIVEN.items() for word in pair]
    with exclusive(folder / "out"):
        refused(command(folder, "infer.py", "distill", *words), 2, "out is in use by process")


def test_replies_that_are_all_unusable_write_nothing(folder: Path) -> None:
    reply = {"text": "I cannot do that.", "finish": "stop", "prompt_tokens": 9, "logprobs": [0.0]}
    with fault_server(folder / "plan.json", {"*": reply}, key="") as server:
        model = DEAD | {"init_args": {**DEAD["init_args"], "base_url": server.base_url}}
        (folder / "llm.yaml").write_text(yaml.safe_dump(model))
        words = [word for pair in (GIVEN | {"--llm": "llm.yaml"}).items() for word in pair]
        ended = command(folder, "infer.py", "distill", *words)
    parts = (
        "No rewrite was kept",
        "no valid line in the reply after the repairs",
        "it has no valid line for",
        "4 calls",
    )
    refused(ended, 65, *parts)
    assert not (folder / "out").exists()
