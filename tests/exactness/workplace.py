"""The folder in which values are computed: a small world, tiny models to train, and files to learn from."""

import json
import zlib
from collections.abc import Sequence
from pathlib import Path

from common.preferences import Candidate, RewritePreferences
from common.records import TEXT_VERSION
from datamodules.formats.preferences import LAYOUT, MANIFEST, ROWS, preference_lines
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
    """A folder with `world/`, `models/` to start trainings from, and `preferences/` to learn from."""
    write_world(WORLD, folder / "world")
    for name, save in {"bert": save_bert, "big_bird": save_big_bird, "t5": save_t5, "qwen": save_qwen}.items():
        (folder / "models" / name).mkdir(parents=True)
        save(folder / "models" / name, words_of_the_world(folder))
    rewrites = _by_question(rows(folder / "world/rewrites_train.jsonl"))
    _write_preferences(folder / "preferences", [_sampled(question, made) for question, made in rewrites.items()])
    return folder


def words_of_the_world(folder: Path) -> list[str]:
    """Words of the tokenizers: the most frequent ones of the world's corpus."""
    return common_words(row["contents"] for row in rows(folder / "world/corpus.jsonl"))


def _by_question(found: Sequence[dict]) -> dict[str, dict[str, str]]:
    """Question -> strategy -> rewrite."""
    grouped: dict[str, dict[str, str]] = {}
    for row in found:
        grouped.setdefault(row["question"], {})[row["strategy"]] = row["rewrite"]
    return grouped


def _reward(text: str) -> float:
    """A reward in tenths that the text determines."""
    return zlib.crc32(text.encode()) % 11 / 10


def _sampled(question: str, made: dict[str, str]) -> RewritePreferences:
    """The rewrites by all strategies as samples of one strategy."""
    texts = list(dict.fromkeys(made.values()))
    candidates = [
        Candidate(text, _reward(text), -float(len(text.split())), 2, place == 0) for place, text in enumerate(texts)
    ]
    return RewritePreferences(question, question, "gqr", 0.5, tuple(candidates))


def _write_preferences(folder: Path, found: Sequence[RewritePreferences]) -> None:
    folder.mkdir()
    (folder / ROWS).write_text("".join(preference_lines(found)), encoding="utf-8")
    manifest = {"layout": LAYOUT, "text_version": TEXT_VERSION, "round": 1, "fused": True, "depth": 5}
    (folder / MANIFEST).write_text(json.dumps(manifest))
