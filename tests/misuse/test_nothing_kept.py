"""Commands that write training data: where nothing can be kept, one line says why, and nothing is written."""

from collections.abc import Callable
from pathlib import Path

import yaml

from tests.helpers.commands import command, refused
from tests.helpers.fake_server import chat_server
from tests.misuse.places import DEAD


def test_distill(made: Callable[[str], Path], tmp_path: Path) -> None:
    """No reply can be used."""
    with chat_server({"*": {"text": "I cannot do that."}}, key="") as server:
        model = DEAD | {"init_args": {**DEAD["init_args"], "base_url": server.base_url}}
        (tmp_path / "llm.yaml").write_text(yaml.safe_dump(model))
        options = ("--questions", "questions.json", "--out", str(tmp_path / "out"), "--llm", str(tmp_path / "llm.yaml"))
        ended = command(made("asking"), "infer.py", "distill", *options)
    parts = ("no valid line in the reply after the repairs", "it has no valid line for", "model calls 4")
    refused(ended, 65, "No rewrite was kept", *parts)
    assert not (tmp_path / "out").exists()
