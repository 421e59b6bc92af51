"""Mistakes at `infer.py preferences`: one line, the exit code, and nothing is written."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from common.records import Question
from common.rewrites import Rewrites
from tests.harness.commands.test_preferences import REWARDS, arguments, models, place, row
from tests.helpers.commands import command, refused

__all__ = ["models", "place"]  # fixtures
TABLE = "tests.misuse.test_preferences.OneRewrite"


class OneRewrite:
    """A rewriter without samples."""

    name = "one rewrite"

    def rewrite(self, questions: Sequence[Question], strategies: Sequence[str]) -> list[Rewrites]:
        raise AssertionError("asked before it was refused")


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        ({"samples": "-1"}, 2, "samples must be at least 0, got -1"),
        ({"temperature": "0"}, 2, "temperature must be above 0, got 0.0"),
        ({"depth": "0"}, 2, "depth must be at least 1, got 0"),
        ({"limit": "0"}, 2, "limit must be at least 1, got 0"),
        ({"reward__half_rank": "0"}, 2, "half_rank must be above 0, got 0.0"),
        ({"reward": f"{REWARDS}HasAnswer", "reward__k": "0"}, 2, "k must be at least 1, got 0"),
        ({"reward": f"{REWARDS}GoldRanks"}, 2,
            "reward: harness.preferences.rewards.GoldRanks is not a class that can be used"),
        ({"reward": "harness.retrievers.bm25.Bm25Retriever"}, 2, "is not of the kind Reward"),
        ({"strategies": "[]"}, 2, "strategies is []; it must name at least one, each once"),
        ({"strategies": "[gqr, gqr]"}, 2, "it must name at least one, each once"),
        ({"strategies": "[par]"}, 2, "was not trained on the strategy 'par'"),
        ({"questions": "[]"}, 2, "questions names no file"),
        ({"questions": "nowhere.json"}, 66, "nowhere.json does not exist"),
        ({"layout": "musique"}, 65, "looks like hotpotqa"),
        ({"out": "train.json"}, 2,
            "train.json exists and is not a folder of preferences of `infer.py preferences`"),
        ({"out": "index"}, 2, "index exists and is not a folder of preferences of `infer.py preferences`"),
        ({"rewriter__serving": "nowhere"}, 66, "nowhere does not exist"),
        ({"retriever__index": "nowhere"}, 66, "nowhere: no such index"),
        ({"retriever": "", "retriever__index": ""}, 2, "Type --retriever CLASS --retriever.index FOLDER"),
        ({"rewriter": TABLE, "rewriter__serving": ""}, 2, "one rewrite cannot be sampled: type --samples 0"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_writes_nothing(place: Path, more: dict[str, str], code: int, message: str) -> None:
    before = sorted(place.rglob("*"))
    refused(command(place, "infer.py", *arguments(**more)), code, message)
    assert sorted(path for path in place.rglob("*") if path.name != "data") == before


def test_questions_for_which_the_reward_is_not_defined(place: Path) -> None:
    (place / "train.json").write_text(json.dumps([{**row("q1", "kiln"), "supporting_facts": []}]))
    ended = command(place, "infer.py", *arguments())
    refused(ended, 65, "The reward is defined for none of the 1 questions: no gold passage.")
    (place / "train.json").write_text(json.dumps([row("q1", "name1 " * 300)]))
    refused(command(place, "infer.py", *arguments()), 65, "None of the 1 questions has a rewrite: ")
    assert not (place / "data/preferences").exists()
