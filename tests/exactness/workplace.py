"""The folder in which values are computed: a small world, and tiny models to train."""

import json
from pathlib import Path

from datamodules.world.world import WorldConfig
from datamodules.world.writing import write_world
from tests.exactness.tiny_models import common_words, save_bert, save_big_bird, save_qwen, save_t5

WORLD = WorldConfig(
    seed=3, questions=200, singles=240, open_singles=60, web_questions=20, manuals=7, rephrased=200, msrag=110
)
QUESTIONS = 50  # that each system answers
STRATEGIES = ("gqr", "kwr", "par", "cce")  # the paper's


def rows(path: Path) -> list[dict]:
    """The rows of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_workplace(folder: Path) -> Path:
    """A folder with `world/`, and `models/` to start trainings from."""
    write_world(WORLD, folder / "world")
    for name, save in {"bert": save_bert, "big_bird": save_big_bird, "t5": save_t5, "qwen": save_qwen}.items():
        (folder / "models" / name).mkdir(parents=True)
        save(folder / "models" / name, words_of_the_world(folder))
    return folder


def words_of_the_world(folder: Path) -> list[str]:
    """Words of the tokenizers: the most frequent ones of the world's corpus."""
    return common_words(row["contents"] for row in rows(folder / "world/corpus.jsonl"))
