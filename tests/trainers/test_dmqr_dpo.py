"""Training of generative rewriters on rewarded rewrites: parts of a step, and real (tiny) runs of the command line."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from common.records import Question
from datamodules.formats.preferences import read_rewrite_preferences
from harness.rewriters.trained import TrainedRewriter
from models.serving_manifest import MANIFEST
from tests.helpers.dpo_runs import GUARD, data_of
from tests.helpers.rewrite_preferences import BEST, model_of, questions
from tests.helpers.tiny_runs import (
    fit,
    metrics,
    weights,
)
from tests.helpers.tolerances import model_close
from trainers.dmqr_dpo import DpoTrainer

TRAINER = "dpo"


def greedy(serving: Path) -> list[float]:
    """For new questions whether the greedy rewrite is the best one."""
    rewriter = TrainedRewriter(serving, "cpu", "fp32")
    asked = [Question(str(n), text) for n, text in enumerate(questions(20, seed=11))]
    made = rewriter.rewrite(asked, ["gqr"])
    return [
        float(each.queries["gqr"] == (BEST[q.text.split()[0]],)) for q, each in zip(asked, made, strict=True)
    ]  # fmt: skip


def test_it_learns_to_write_the_rewarded_rewrite(workplace: Path, rewrite_toy: Path) -> None:
    """From a model that writes any of four texts: which is best depends on the question."""
    assert sum(greedy(rewrite_toy / "start")) <= 10
    slower = "--model.optimizer.learning_rate", "5.0e-3"  # at a greater rate it favours texts that were not recorded
    folder = fit("dpo", *slower, "--model.loss.imitation_weight", "0.1", "--trainer.max_epochs", "12",
                 "--trainer.check_val_every_n_epoch", "6", *GUARD)  # fmt: skip
    found = [row for row in metrics(folder) if "val/expected_reward" in row]
    assert next(row["step"] for row in found) == -1  # before the first step
    assert found[0]["val/expected_reward"] == pytest.approx(0.5, abs=0.03)
    assert found[0]["val/kl"] == pytest.approx(0.0, abs=1e-4)
    assert found[-1]["val/expected_reward"] > 0.9
    assert found[-1]["val/kl"] > 0.1
    assert sum(greedy(folder / "serving")) >= 17
    manifest = json.loads((folder / "serving" / MANIFEST).read_text())
    assert manifest["round"] == 1
    assert manifest["preferences"][0]["layout"] == "rewrite_preferences"
    card = (folder / "serving/README.md").read_text()
    assert "on the rewards of sampled rewrites, by direct preference optimization." in card


def test_the_reference_is_the_starting_model_also_of_a_resumed_run(
    workplace: Path, rewrite_toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    references: list[list[list[float]]] = []
    score = DpoTrainer._score_reference

    def kept(self: DpoTrainer, groups: Sequence[Any]) -> None:
        score(self, groups)
        references.append([list(each.reference) for each in groups])

    monkeypatch.setattr(DpoTrainer, "_score_reference", kept)
    folder = fit("first", "--trainer.max_epochs", "1")
    fit("first", "--resume", "auto")
    assert references[1] == references[0]
    rows = {(each.question, each.strategy): each for each in read_rewrite_preferences(str(rewrite_toy / "preferences"))}
    module = DpoTrainer(model_of(rewrite_toy / "start"), max_tokens=40, max_rewrite_tokens=8).load()
    groups = [*(data := data_of(module, rewrite_toy / "preferences")).groups, *data.held_out]
    for group, reference in zip(groups, references[0], strict=True):
        known = {
            each.rewrite: each.log_probability
            for each in rows[group.example.question, group.example.strategy].candidates
        }
        assert reference == [model_close(known[each.rewrite]) for each in group.example.candidates]
    assert any((each != 0).any() for name, each in weights(folder).items() if "lora_B" in name)


def test_a_causal_language_model_is_trained_at_the_defaults(plain_lm: Path) -> None:
    """Dropout 0, which keeps a T5's reference exact, is what a causal language model has."""
    network = DpoTrainer(str(plain_lm), max_tokens=40, max_rewrite_tokens=8).load().rewriter.network
    trained = {name for name, each in network.named_parameters() if each.requires_grad}
    assert trained
    assert all("lora_" in name for name in trained)
