"""What the optimizers do to every weight.

Its learning rate, its decay and the schedule, replayed by AdamW's formula.
"""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from common.errors import UserError
from tests.helpers import rewrite_runs
from tests.helpers.recorder import RECORDED, adamw, recorded
from tests.helpers.runs import fit_here, metrics, trained
from tests.helpers.tolerances import fp32_tolerance
from tests.trainers import test_drrag, test_rerag_training
from trainers.run.optimizers import total_steps

pytestmark = pytest.mark.numeric

DECAY = 5.0  # so great that a step without it would show
DECAYS = ("--model.optimizer.weight_decay", str(DECAY))


def is_vector(name: str) -> bool:
    """Biases and norms, by their names in transformers; T5's relative_attention_bias.weight is a table."""
    return name.endswith(".bias") or "norm" in name.lower()


def assert_trained_as(folder: Path, factors: list[float], rate_of: Callable[[str], float | None]) -> None:
    """Every weight of a run moved as AdamW moves it at its own rate.

    Args:
        folder: Of the run.
        factors: What the schedule multiplies the rate by, step by step.
        rate_of: A weight's rate by its name; None where it is frozen or has no part in the loss.
    """
    steps = recorded(folder)
    assert len(steps) == len(factors)
    rates_seen = {rate for step in steps for rate in step["rates"]}
    peaks = {rate_of(name) for name in steps[0]["weights"]} - {None}
    allowed = [factor * peak for factor in factors for peak in peaks]
    assert all(min(abs(rate - each) for each in allowed) <= 1e-12 for rate in rates_seen)
    for name, start in steps[0]["weights"].items():
        rate = rate_of(name)
        if rate is None:
            assert all(name not in step["gradients"] for step in steps)
            assert all(torch.equal(step["weights"][name], start) for step in steps)
            continue
        expected = adamw(steps, name, [rate * factor for factor in factors], 0.0 if is_vector(name) else DECAY)
        largest = max(weight.abs().max().item() for weight in expected)
        moved = (expected[-1] - start).abs().max()
        tolerance = fp32_tolerance(16 * len(steps), largest)  # some ten operations a step
        assert moved > 20 * tolerance, f"{name} hardly moves, so that nothing is compared"
        for step, weight in zip(steps, expected, strict=True):
            torch.testing.assert_close(step["weights"][name].double(), weight, rtol=0, atol=tolerance, msg=name)


def assert_rates_logged(folder: Path, factors: list[float], **peaks: float) -> None:
    """Every step's line of metrics.jsonl has these rates, and no other."""
    rows = trained(metrics(folder))
    found = [{name: rate for name, rate in row.items() if name.endswith("learning_rate")} for row in rows]
    assert [row["step"] for row in rows] == list(range(len(factors)))
    expected = [{f"train/{name}": peak * factor for name, peak in peaks.items()} for factor in factors]
    assert found == [pytest.approx(each) for each in expected]


def test_dr_rags_head_and_body_have_their_own_rates(tmp_path, checkpoints, hotpot_file) -> None:
    test_drrag.write_config(tmp_path, checkpoints["bert"], hotpot_file)
    fit_here(tmp_path, *RECORDED, *DECAYS, "--model.optimizer.learning_rate", "1.0e-3",
             "--model.optimizer.head_learning_rate", "8.0e-3", "--model.optimizer.warmup_fraction", "0.25",
             "--trainer.max_steps", "8")  # fmt: skip
    factors = [0, 1 / 2, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6]  # a quarter of 8 steps up, then down to 0 after the last
    head = ("classifier.network.classifier.",)  # BigBird's head: dense, out_proj

    def rate_of(name: str) -> float | None:
        if ".pooler." in name:  # BigBird's head reads the first token itself
            return None
        return 8e-3 if name.startswith(head) else 1e-3

    assert_trained_as(tmp_path / "checkpoints/tiny", factors, rate_of)
    assert_rates_logged(tmp_path, factors, learning_rate=1e-3, head_learning_rate=8e-3)
    names = [name for name in recorded(tmp_path / "checkpoints/tiny")[0]["weights"] if name.startswith(head)]
    assert len(names) == 4


def test_re_rags_estimator_has_its_own_rate_and_frozen_embeddings_stay(tmp_path, checkpoints) -> None:
    test_rerag_training.write_config(tmp_path, checkpoints["t5"])
    fit_here(tmp_path, *RECORDED, *DECAYS, "--model.optimizer.learning_rate", "1.0e-3",
             "--model.optimizer.estimator_learning_rate", "4.0e-3", "--model.optimizer.warmup_steps", "3",
             "--model.optimizer.schedule", "constant", "--model.freeze_embeddings", "true",
             "--trainer.max_steps", "6")  # fmt: skip

    def rate_of(name: str) -> float | None:
        if name.endswith("shared.weight"):
            return None
        return 4e-3 if name.startswith("estimator.") else 1e-3

    factors = [0, 1 / 3, 2 / 3, 1, 1, 1]
    assert_trained_as(tmp_path / "checkpoints/tiny", factors, rate_of)
    assert_rates_logged(tmp_path, factors, learning_rate=1e-3, estimator_learning_rate=4e-3)


def test_a_t5_warms_up_and_decays(tmp_path, checkpoints) -> None:
    rewrite_runs.write_run(tmp_path, checkpoints["t5"])
    fit_here(tmp_path, *RECORDED, *DECAYS, "--model.optimizer.learning_rate", "2.0e-3",
             "--model.optimizer.warmup_steps", "2", "--model.optimizer.schedule", "inverse_sqrt",
             "--trainer.max_steps", "6")  # fmt: skip
    factors = [0, 1 / 2, 1, (2 / 3) ** 0.5, (2 / 4) ** 0.5, (2 / 5) ** 0.5]
    assert_trained_as(tmp_path / "checkpoints/tiny", factors, lambda name: 2e-3)
    assert_rates_logged(tmp_path, factors, learning_rate=2e-3)


def test_a_run_that_is_made_longer_follows_the_schedule_of_its_new_length(tmp_path, checkpoints) -> None:
    rewrite_runs.write_run(tmp_path, checkpoints["t5"])
    fit_here(tmp_path, "--name", "whole", *RECORDED)  # two epochs of four steps, linear decay
    fit_here(tmp_path, "--name", "longer", "--trainer.max_epochs", "1")
    fit_here(tmp_path, "--name", "longer", *RECORDED, "--trainer.val_check_interval", "2", "--resume", "auto")
    whole, longer = ([step["rates"] for step in recorded(tmp_path / "checkpoints" / n)] for n in ("whole", "longer"))
    assert longer == whole[4:]
    assert [min(rates) for rates in whole] == pytest.approx(
        [0, 5e-3 / 3, 2 * 5e-3 / 3, *(n * 1e-3 for n in (5, 4, 3, 2, 1))]
    )
    assert [row["step"] for row in metrics(tmp_path, "longer") if "val/loss_nats" in row] == [3, 5, 7]


def test_a_run_ends_at_its_first_limit_and_a_schedule_needs_an_end() -> None:
    def steps(max_steps: int, max_epochs: int | None, warmup: int) -> int:
        data = SimpleNamespace(steps_per_epoch=7)
        return total_steps(SimpleNamespace(max_steps=max_steps, max_epochs=max_epochs, datamodule=data), warmup)

    limits = {(-1, 3, 0): 21, (10, 3, 0): 10, (30, 3, 0): 21, (10, -1, 0): 10, (10, None, 0): 10, (-1, 1, 6): 7}
    assert {limit: steps(*limit) for limit in limits} == limits
    for limit, named in (((-1, -1, 0), "trainer.max_epochs"), ((-1, 1, 7), "warmup_steps 7")):
        with pytest.raises(UserError, match=named):
            steps(*limit)
