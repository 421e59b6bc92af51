"""An epoch in bf16 and the export of every trainer: whole, with LoRA, and from each family of models.

What they learn is tested elsewhere, `tests/trainers/test_bf16.py` also compares three of them with fp32.
"""

import json
import math
from collections.abc import Callable

import pytest
import yaml

from tests.helpers import every_trainer, rewrite_runs
from tests.helpers.devices import cpu_and_gpu, training_options
from tests.helpers.every_trainer import PREPARE, Place
from tests.helpers.runs import fit_here, metrics

LORA = ["--model.lora.rank", "4"]


def encoder_estimator(place: Place) -> list[str]:
    PREPARE["rerag"](place)
    return ["--model.estimator", str(place.model("bert"))]


def causal_rewriter(place: Place) -> list[str]:
    rewrite_runs.write_rewrites(place.folder, rewrite_runs.rows(60))
    rewrite_runs.write_config(place.folder, place.made("chat_lm"))
    return ["--model.dropout", "null", "--model.max_tokens", "64", "--model.optimizer.warmup_steps", "0"]


TRAINERS: dict[str, Callable[[Place], list[str] | None]] = {
    **PREPARE,
    "drrag": lambda place: every_trainer.drrag(place, "big_bird"),
    "drrag-lora": lambda place: every_trainer.drrag(place, "big_bird") or LORA,
    "rerag-encoder": encoder_estimator,
    "rewriter-causal": causal_rewriter,
}


@cpu_and_gpu("bf16 training and export of every trainer", pytest.mark.whole_run)
@pytest.mark.parametrize("name", TRAINERS)
def test_it_trains_in_bf16_and_exports(
    name: str, device: str, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    options = [*(TRAINERS[name](place) or ()), *training_options(device)]
    tmp_path = place.folder
    fit_here(tmp_path, "--trainer.precision", "bf16-mixed", "--trainer.max_epochs", "1", *options)
    (said,) = [line for line in capsys.readouterr().out.splitlines() if "largest difference to the module" in line]
    assert float(said.rsplit("module", 1)[1].split()[0].strip(" :,")) < 1e-4, said
    folder = tmp_path / "checkpoints/tiny"
    losses = [row[key] for row in metrics(tmp_path) for key in row if key.startswith("train/loss")]
    assert len(losses) > 1
    assert all(map(math.isfinite, losses))
    assert yaml.safe_load((folder / "config.yaml").read_text())["trainer"]["precision"] == "bf16-mixed"
    assert json.loads((folder / "serving/serving.json").read_text())["sha256"]
