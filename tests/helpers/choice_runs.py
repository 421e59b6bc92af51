"""Data and configuration of tiny runs of `trainers.dmqr_choice.ChoiceTrainer`."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from common.preferences import RewritePreferences
from datamodules.dmqr_choice import ChoiceData
from datamodules.examples.splits import Source
from tests.conftest import NAMES
from tests.helpers.preference_files import greedy_preferences, write_preferences
from tests.helpers.tiny_runs import TRAINER, set_up, use
from trainers.dmqr_choice import ChoiceTrainer

STRATEGIES = ["kwr", "par", "cce"]


def rows(count: int) -> list[RewritePreferences]:
    """Learnable preferences: "who" gains by kwr, "where" by par, "film" by cce, and questions with "yes" by none."""
    rng, made = random.Random(5), []
    for number in range(count):
        words = [rng.choice(("who", "where", "yes")), "is", rng.choice(("film", "city")), rng.choice(NAMES)]
        asks = "yes" not in words
        gains = {
            "kwr": 0.5 if "who" in words else -0.1,
            "par": 0.4 if "where" in words else 0.0,
            "cce": 0.3 if "film" in words and asks else -0.05,
        }
        made += greedy_preferences(f"{' '.join(words)} {number}", gains)
    return made


CONFIG = """
name: tiny
seed_everything: 0
model:
  class_path: trainers.dmqr_choice.ChoiceTrainer
  init_args:
    {{strategies: [kwr, par, cce], pretrained: {model}, max_tokens: 24, dropout: 0.0,
     optimizer: {{learning_rate: 3.0e-3, head_learning_rate: 3.0e-3}}}}
data:
  class_path: datamodules.dmqr_choice.ChoiceData
  init_args:
    train: [{{layout: rewrite_preferences, path: {data}}}]
    validation_fraction: 0.25
    tokens_per_step: 200
    tokens_per_validation_batch: 200
checkpoint: {{monitor: val/average_precision}}
early_stopping: {{patience: 100}}
"""


def prepare(folder: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, with data and the configuration of a tiny run; it becomes the present one."""
    write_preferences(folder / "preferences", rows(200))
    (folder / "config.yaml").write_text(CONFIG.format(model=model, data=folder / "preferences") + TRAINER)
    return use(folder, monkeypatch)


def data_of(module: ChoiceTrainer, *folders: Path, place: Sequence[int] = (), **options: Any) -> ChoiceData:
    """The data of a rank, set up; `place` as in `tests.helpers.tiny_runs.set_up`."""
    given: dict[str, Any] = {"validation_fraction": 0.25, "tokens_per_step": 200, **options}
    return set_up(ChoiceData([Source("rewrite_preferences", str(each)) for each in folders], **given), module, *place)
