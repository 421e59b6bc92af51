"""Data and configuration of tiny runs of `trainers.dmqr_adaptive.StrategyClassifierTrainer`."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.preferences import RewritePreferences
from datamodules.dmqr_adaptive import StrategyClassifierData
from datamodules.examples.data_files import DataFile
from tests.conftest import NAMES
from tests.helpers.preference_files import greedy_preferences, write_preferences
from tests.helpers.tiny_runs import set_up, write_config
from trainers.dmqr_adaptive import StrategyClassifierTrainer

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


def write(folder: Path, model: Path) -> None:
    """Data and the configuration of a tiny run."""
    write_preferences(folder / "preferences", rows(200))
    rates = {"learning_rate": 3e-3, "head_learning_rate": 3e-3}
    options = {"strategies": STRATEGIES, "pretrained": str(model), "max_tokens": 24, "dropout": 0.0, "optimizer": rates}
    train = [{"layout": "rewrite_preferences", "path": str(folder / "preferences")}]
    data = {"train": train, "validation_fraction": 0.25, "tokens_per_step": 200, "tokens_per_validation_batch": 200}
    write_config(
        folder,
        "dmqr_adaptive.StrategyClassifierTrainer",
        options,
        "dmqr_adaptive.StrategyClassifierData",
        data,
        "val/average_precision",
    )


def data_of(
    module: StrategyClassifierTrainer, *folders: Path, place: Sequence[int] = (), **options: Any
) -> StrategyClassifierData:
    """The data of a rank, set up; `place` as in `tests.helpers.tiny_runs.set_up`."""
    given: dict[str, Any] = {"validation_fraction": 0.25, "tokens_per_step": 200, **options}
    return set_up(
        StrategyClassifierData([DataFile(str(each), "rewrite_preferences") for each in folders], **given),
        module,
        *place,
    )
