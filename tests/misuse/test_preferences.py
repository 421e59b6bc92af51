"""Mistakes at `infer.py preferences`: one line, the exit code, and nothing is written."""

import json
from pathlib import Path

from tests.harness.commands.test_preferences import arguments, models, place, row
from tests.helpers.commands import command, refused

__all__ = ["models", "place"]  # fixtures
TABLE = "tests.misuse.test_preferences.OneRewrite"


def test_questions_for_which_the_reward_is_not_defined(place: Path) -> None:
    (place / "train.json").write_text(json.dumps([{**row("q1", "kiln"), "supporting_facts": []}]))
    ended = command(place, "infer.py", *arguments())
    refused(ended, 65, "The reward is defined for none of the 1 questions: no gold passage.")
    (place / "train.json").write_text(json.dumps([row("q1", "name1 " * 300)]))
    refused(command(place, "infer.py", *arguments()), 65, "None of the 1 questions has a rewrite: ")
    assert not (place / "data/preferences").exists()
