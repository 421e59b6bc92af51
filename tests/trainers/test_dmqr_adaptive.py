"""Training of the adaptive choice: loss, threshold, parts of a step, and real (tiny) runs of the command line."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from models.dmqr.strategy_classifier import StrategyClassifier
from tests.helpers.adaptive_runs import STRATEGIES
from tests.helpers.tiny_runs import (
    fit,
    metrics,
    run_card,
)
from trainers.dmqr_adaptive import choice_loss, choose_threshold, kept_gains

TRAINER = "adaptive"

NAN = math.nan


@pytest.mark.numeric
def test_the_loss_by_hand() -> None:
    log_odds_PS = torch.tensor([[0.0, 2.0], [1.0, -3.0]])
    targets_PS = torch.tensor([[1.0, 0.0], [NAN, 1.0]])
    ln2, softplus2, softplus3 = 0.6931472, 2.1269280, 3.0485874
    both = torch.ones(2)
    assert float(choice_loss(log_odds_PS, targets_PS, both, 3)) == pytest.approx((ln2 + softplus2 + softplus3) / 3)
    first = choice_loss(log_odds_PS, targets_PS, torch.tensor([1.0, 0.0]), 4)
    assert float(first) == pytest.approx((ln2 + softplus2) / 4)
    leaf = log_odds_PS.clone().requires_grad_()
    choice_loss(leaf, targets_PS, both, 3).backward()
    expected = (leaf.detach().sigmoid() - targets_PS) / 3
    expected[1, 0] = 0.0  # no rewrite: neither a target nor a gradient
    assert leaf.grad is not None
    assert torch.allclose(leaf.grad, expected, atol=1e-7)


@pytest.mark.numeric
def test_the_threshold_is_the_highest_that_keeps_the_gain() -> None:
    """Against a search over all thresholds."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        probabilities_PS = rng.random((12, 3)).round(1)
        gains_PS = rng.normal(size=(12, 3)).round(1)
        gains_PS[rng.random((12, 3)) < 0.2] = NAN
        share = float(rng.random())
        best = kept_gains(np.ones((12, 3), dtype=bool), gains_PS).sum()
        if not best:
            continue
        kept = {p: kept_gains(probabilities_PS >= p, gains_PS).sum() for p in np.unique(probabilities_PS)}
        highest = max(p for p, gain in kept.items() if gain >= share * best - 1e-9)
        chosen_PS = probabilities_PS >= choose_threshold(probabilities_PS, gains_PS, share)
        np.testing.assert_array_equal(chosen_PS, probabilities_PS >= highest)


def test_a_run_learns_and_exports_what_it_trained(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fit(
        "tiny", "--trainer.max_epochs", "30", "--trainer.check_val_every_n_epoch", "15", "--model.kept_gain", "1.0"
    )
    found = [row for row in metrics(folder) if "val/average_precision" in row][-1]
    assert found["val/average_precision"] == pytest.approx(1.0)
    assert found["val/auc"] == 1.0
    assert found["val/kept_gain"] == pytest.approx(1.0)
    assert found["val/fixed_rewrites"] == 2  # kwr and par
    assert found["val/rewrites"] < 1.01  # the best one suffices, and a third of the questions needs none
    classifier = StrategyClassifier.load(folder / "serving", "cpu", "fp32")
    assert classifier.strategies == tuple(STRATEGIES)
    assert classifier.threshold == found["val/threshold"]
    asked = [("who is city name1", ()), ("where is film name4", ()), ("yes is film name7", ())]
    chosen = [
        [name for name, p in zip(STRATEGIES, each or (), strict=True) if p > 0.5]
        for each in classifier.probabilities(asked)
    ]
    assert chosen == [["kwr"], ["par", "cce"], []]
    manifest = json.loads((folder / "serving/serving.json").read_text())
    assert manifest["preferences"] == [
        {"layout": "rewrite_preferences", "text_version": 3, "round": 1, "fused": True, "depth": 5}
    ]
    assert list(manifest["data"]) == [str(workplace / "preferences" / "preferences.jsonl")]
    _, found = run_card(folder / "serving", monkeypatch)
    (ours,) = classifier.probabilities([(found["question"], ())])
    assert ours is not None
    assert found["probabilities"] == pytest.approx(ours, abs=1e-6)
    assert found["chosen"] == [name for name, p in zip(STRATEGIES, ours, strict=True) if p >= classifier.threshold]
