"""Training of the extractive rewriter on rewarded choices of words.

Parts of a step, and real (tiny) runs of the command line.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from common.feedback import WordFeedback
from common.records import Question, Ranked
from common.retrieval import reciprocal_rank_fusion
from datamodules.examples.splits import Source
from datamodules.examples.word_feedback import WordFeedbackBatch
from harness.feedback.rewards import GoldRecall
from harness.retrievers.bm25 import Bm25Retriever
from harness.rewriters.extractive import ExtractiveRewriter
from models.dmqr.word_selector import WordSelector
from models.serving_manifest import MANIFEST
from tests.helpers.runs import largest_difference
from tests.helpers.tiny_runs import (
    assert_accumulation_trains_as_one,
    assert_resumes_exactly,
    assert_two_processes_train_as_one,
    divided_steps,
    fit,
    metrics,
    three_hardly_moving_steps,
    weights,
)
from tests.helpers.tolerances import model_close, model_tolerance
from tests.helpers.word_feedback import BEST_REWARD, POLICY, sampled, write_feedback
from tests.helpers.word_feedback_runs import data_of, prepare, write_gold
from trainers.dmqr_words_feedback import WordFeedbackTrainer
from trainers.feedback_losses import OBJECTIVES


@pytest.fixture
def workplace(tmp_path: Path, word_toy: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run in, with a config for a tiny run."""
    return prepare(tmp_path, word_toy, monkeypatch)


@pytest.fixture
def module(word_toy: Path) -> WordFeedbackTrainer:
    return WordFeedbackTrainer(str(word_toy / "start")).eval()


def greedy(serving: Path) -> tuple[float, list[WordFeedback]]:
    """Mean reward of the choices that a selector would use for new questions, and these choices."""
    rows = sampled(WordSelector.load(serving, "cpu", "fp32"), 40, 0, names=9)
    return sum(each.candidates[0].reward for each in rows) / len(rows), rows


@pytest.mark.parametrize(
    ("objective", "weights"), [("policy_gradient", "choice"), *((each, "words") for each in OBJECTIVES)]
)
def test_every_objective_learns_which_words_are_rewarded(
    workplace: Path, word_toy: Path, objective: str, weights: str
) -> None:
    """From random weights, on questions with other names: by the words' contexts."""
    start, _ = greedy(word_toy / "start")
    assert start < -0.2
    folder = fit(objective, "--model.objective", objective, "--model.weights", weights, "--trainer.max_epochs", "8",
                 "--model.learning_rate", "3.0e-3", "--model.head_learning_rate", "3.0e-3",
                 "--trainer.check_val_every_n_epoch", "4")  # fmt: skip
    found, rows = greedy(folder / "serving")
    assert found > 0.75 * BEST_REWARD
    for each in rows[:10]:
        (choice, *_), words = each.candidates, each.question.split()
        assert "who" in [words[place] for place in choice.left_out]
        assert "born" not in choice.joins
    card = (folder / "serving/README.md").read_text()
    assert f"on the rewards of sampled choices of words, by the objective {objective}." in card


def test_the_export_says_what_it_learned_from_and_is_sampled_next(workplace: Path, word_toy: Path) -> None:
    folder = fit("first", "--trainer.max_steps", "2", "--trainer.val_check_interval", "2")
    manifest = json.loads((folder / "serving" / MANIFEST).read_text())
    assert manifest["round"] == 1
    assert manifest["feedback"] == [json.loads((word_toy / "feedback/feedback.json").read_text())]
    assert set(manifest["data"]) == {str(word_toy / "feedback" / name) for name in ("feedback.jsonl", "feedback.json")}
    assert (
        largest_difference(weights(folder, "best.ckpt"), WordFeedbackTrainer(str(word_toy / "start")).state_dict())
        > 1e-4
    )
    write_feedback(workplace / "second", sampled(WordSelector.load(folder / "serving", "cpu", "fp32"), 20, 8), round_=2)
    again = fit("second", "--trainer.max_steps", "2", "--trainer.val_check_interval", "2", "--model.pretrained",
                str(folder / "serving"), "--data.train",
                f"[{{layout: word_feedback, path: {workplace / 'second'}}}]")  # fmt: skip
    assert json.loads((again / "serving" / MANIFEST).read_text())["round"] == 2


def test_a_round_starts_where_the_candidates_were_sampled(module: WordFeedbackTrainer, word_toy: Path) -> None:
    """Recorded log-probabilities are the model's.

    The loss of a policy gradient is 0 but not its gradient, which is the same with one importance weight for a choice
    and with one for each word.
    """
    data = data_of(module, word_toy / "feedback")
    module._score_reference(data.groups)
    for group in data.groups:
        assert group.reference_logp(data.policy) == [model_close(e.log_probability) for e in group.feedback.candidates]
    for batch in data.train_dataloader():
        gradients = []
        for kind in ("words", "choice"):
            module.hparams.weights = kind
            parts = module.policies(batch, module(batch))
            known_GN = batch.candidates.known_GN
            assert (parts.logp_GN - batch.candidates.sampled_GN)[known_GN].abs().max() < 1e-4
            loss = module.objective(parts.logp_GN, parts.groups, len(known_GN), None, parts.ratio_GND)
            assert abs(float(loss.detach())) < 1e-4
            module.zero_grad()
            loss.backward()
            gradients.append(module.selector.network.classifier.weight.grad.clone())
        assert gradients[0].abs().max() > 1e-3
        torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-3, atol=model_tolerance())


@pytest.mark.numeric
@pytest.mark.parametrize("objective", [*OBJECTIVES, "choice"])
@pytest.mark.parametrize(("ranks", "accumulate"), [(1, 3), (2, 1), (4, 4)])
def test_the_parts_make_up_the_loss_of_the_step(
    module: WordFeedbackTrainer,
    word_toy: Path,
    objective: str,
    ranks: int,
    accumulate: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ranks without data included."""
    if objective == "choice":
        module.hparams.weights, objective = "choice", "policy_gradient"
    module.objective = replace(module.objective, name=objective, kl_weight=0.5)
    monkeypatch.setattr(type(module), "backward_passes", 1)

    def share(batch: WordFeedbackBatch) -> float:
        return float(module.training_step(batch, 0))

    with torch.inference_mode():
        for batch, mine in divided_steps(
            lambda *place: data_of(module, word_toy / "feedback", *place), ranks, accumulate
        ):
            assert sum(map(share, mine)) == model_close(share(batch))


def test_validation_rewards_the_queries_that_the_exported_rewriter_makes(
    workplace: Path, word_toy: Path, module: WordFeedbackTrainer
) -> None:
    folder = fit("rewarded", *write_gold(workplace), "--trainer.max_epochs", "3", "--trainer.callbacks",
                 "trainers.run.collapse.CollapseGuard", "--trainer.callbacks.most_reward_drop", "5")  # fmt: skip
    measured = [row for row in metrics(folder) if "val/reward" in row]
    assert [row["step"] + 1 for row in measured] == [0, 6, 12, 18]  # the starting model's first
    best = json.loads((folder / "serving" / MANIFEST).read_text())["validation"]
    assert best["reward"] == min(row["val/reward"] for row in measured)
    data = data_of(module, word_toy / "feedback", retriever=Bm25Retriever(workplace / "index"), reward=GoldRecall(2.0),
                   gold_questions=[Source("hotpotqa", str(workplace / "gold.json"))], rewarded_questions=6)  # fmt: skip
    assert len(data.gold) == 6
    rewriter = ExtractiveRewriter(folder / "serving", 2, POLICY.stay_probability, 0.5, POLICY.join_probability,
                                  device="cpu", precision="fp32")  # fmt: skip
    assert best["reward"] < measured[0]["val/reward"]
    rewards = [rewarded(rewriter, data.held_out[row].feedback, data.gold[row], data.retriever) for row in data.gold]
    assert len(set(rewards)) > 1
    mean = sum(rewards) / 6
    assert best["reward"] == pytest.approx(mean)
    assert best["reward_variance"] == pytest.approx(sum((each - mean) ** 2 for each in rewards) / 6)
    alone = [data.held_out[row].feedback.question_reward for row in data.gold]
    assert best["reward_question"] == pytest.approx(sum(alone) / 6)


def rewarded(rewriter: ExtractiveRewriter, row: WordFeedback, gold: Question, retriever: Any) -> float:
    """The reward of the queries that a rewriter makes, fused with the question's, as a system searches."""
    found = [Ranked(passage, 1.0) for passage in row.passages]
    (made,) = rewriter.rewrite([Question("", row.question)], POLICY.strategies, [found])
    lists: Sequence[Sequence[Ranked]] = retriever.search(list(made.distinct(row.question)), 100)
    fused = reciprocal_rank_fusion(lists, [1.0] * len(lists)) if len(lists) > 1 else lists[0]
    (value,) = GoldRecall(2.0)([gold], [()], [fused])
    return value


def test_a_run_that_leaves_the_starting_model_too_far_ends_and_keeps_its_best(
    workplace: Path, word_toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = fit("far", "--trainer.callbacks", "trainers.run.collapse.CollapseGuard",
                 "--trainer.callbacks.most_kl_nats", "1.0e-6")  # fmt: skip
    assert "the rewriter has collapsed: val/kl" in capsys.readouterr().out
    assert (
        largest_difference(weights(folder, "best.ckpt"), WordFeedbackTrainer(str(word_toy / "start")).state_dict()) == 0
    )
    first, second = (row for row in metrics(folder) if "val/kl" in row)
    assert (first["val/kl"], second["step"]) == (pytest.approx(0, abs=1e-9), 5)


@pytest.mark.numeric
@pytest.mark.whole_run
def test_accumulation_and_two_processes_train_as_one(workplace: Path) -> None:
    options = three_hardly_moving_steps("head_learning_rate")
    alone = assert_two_processes_train_as_one(workplace, 16, options, {"two": ()})
    assert_accumulation_trains_as_one(alone["two"], 16, options)


@pytest.mark.numeric
@pytest.mark.whole_run
def test_resume_in_the_middle_of_an_epoch_is_exact(workplace: Path) -> None:
    """The reference of the resumed run is the starting model, not the checkpoint: the divergence has weight."""
    assert_resumes_exactly(workplace, [3], "--model.kl_weight", "1.0", loss="train/loss")
