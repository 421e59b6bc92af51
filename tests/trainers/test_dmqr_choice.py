"""Training of the adaptive choice: data, loss, threshold, and real (tiny) runs of the command line."""

import json
import math
import random
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from huggingface_hub import ModelCard

import train
from common.errors import DataError, UserError
from common.feedback import Candidate, RewriteFeedback
from datamodules.dmqr_choice import ChoiceData
from datamodules.examples.splits import Source
from models.dmqr.choice import StrategyChooser
from tests.conftest import NAMES
from tests.helpers.feedback_files import greedy_feedback, write_feedback
from tests.helpers.recorder import HARDLY, RECORDED, assert_same_steps
from tests.helpers.runs import assert_repeated, assert_same_logs, fit_in_turn, largest_difference
from tests.helpers.tolerances import model_close
from trainers.dmqr_choice import ChoiceTrainer, choice_loss, choose_threshold, fixed_choice, kept_gains

STRATEGIES = ["kwr", "par", "cce"]
NAN = math.nan


def rows(count: int) -> list[RewriteFeedback]:
    """Learnable feedback: "who" gains by kwr, "where" by par, "film" by cce, and questions with "yes" by none."""
    rng, made = random.Random(5), []
    for number in range(count):
        words = [rng.choice(("who", "where", "yes")), "is", rng.choice(("film", "city")), rng.choice(NAMES)]
        asks = "yes" not in words
        gains = {
            "kwr": 0.5 if "who" in words else -0.1,
            "par": 0.4 if "where" in words else 0.0,
            "cce": 0.3 if "film" in words and asks else -0.05,
        }
        made += greedy_feedback(f"{' '.join(words)} {number}", gains)
    return made


CONFIG = """
name: tiny
seed_everything: 0
model:
  class_path: trainers.dmqr_choice.ChoiceTrainer
  init_args:
    {{strategies: [kwr, par, cce], pretrained: {model}, max_tokens: 24, learning_rate: 3.0e-3, head_learning_rate: 3.0e-3, dropout: 0.0}}
data:
  class_path: datamodules.dmqr_choice.ChoiceData
  init_args:
    train: [{{layout: rewrite_feedback, path: {data}}}]
    validation_fraction: 0.25
    tokens_per_step: 200
    tokens_per_validation_batch: 200
trainer:
  accelerator: cpu
  max_epochs: 2
  enable_progress_bar: false
  log_every_n_steps: 1
  num_sanity_val_steps: 1
checkpoint: {{monitor: val/average_precision}}
early_stopping: {{patience: 100}}
"""


@pytest.fixture
def workplace(tmp_path: Path, checkpoints: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run in, with data and a config for a tiny run."""
    write_feedback(tmp_path / "feedback", rows(200))
    (tmp_path / "config.yaml").write_text(CONFIG.format(model=checkpoints["bert"], data=tmp_path / "feedback"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["train.py"])  # Lightning warns of others
    return tmp_path


def fit(name: str, *extra: str) -> Path:
    train.main(["fit", "--config", "config.yaml", "--name", name, *extra])
    return Path("checkpoints", name)


def metrics(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def weights(folder: Path, name: str = "last.ckpt") -> dict[str, torch.Tensor]:
    return torch.load(folder / name, weights_only=True)["state_dict"]


@pytest.fixture
def module(checkpoints: dict[str, Path]) -> ChoiceTrainer:
    torch.manual_seed(0)
    return ChoiceTrainer(STRATEGIES, str(checkpoints["bert"]), 24, dropout=0.0).eval()


def data_of(
    module: ChoiceTrainer, *folders: Path, rank: int = 0, ranks: int = 1, accumulate: int = 1, **options: Any
) -> ChoiceData:
    given: dict[str, Any] = {"validation_fraction": 0.25, "tokens_per_step": 200, **options}
    data = ChoiceData([Source("rewrite_feedback", str(folder)) for folder in folders], **given)
    data.trainer = SimpleNamespace(  # type: ignore[assignment]  # what a data module asks of Lightning's trainer
        lightning_module=module, is_global_zero=True, global_rank=rank, world_size=ranks,
        accumulate_grad_batches=accumulate,
    )  # fmt: skip
    data.setup("fit")
    return data


def test_gains_and_targets_by_hand(module: ChoiceTrainer, tmp_path: Path) -> None:
    """Rows of a question become one example; a question of two folders has the mean of its gains."""
    made = rows(40)
    extra = greedy_feedback("who is name1", {"kwr": 0.3, "par": 0.02, "cce": -0.4}, ("where is name2",))
    one = write_feedback(tmp_path / "one", [*made, *extra])
    other = write_feedback(
        tmp_path / "other", [*made, *greedy_feedback("who  is name1", {"kwr": 0.1}, ("where is name2 ",))]
    )
    data = data_of(module, one, other, least_gain=0.02)
    every = [*data.questions, *data.held_out]
    assert len(every) == 41
    (own,) = [each for each in every if each.history]
    assert (own.question, own.history) == ("who is name1", ("where is name2",))
    assert own.gains == pytest.approx((0.2, 0.02, -0.4))
    held_out = own in data.held_out
    side = data.held_out if held_out else data.questions
    batch = data._batch(side, [side.index(own)], [side.index(own)], 1.0)
    assert batch.targets_PS.tolist() == [[1.0, 0.0, 0.0]]  # a gain of least_gain is none
    assert batch.step_targets == 3


def test_of_several_strategies_that_help_the_best_one_can_be_the_only_target(
    module: ChoiceTrainer, tmp_path: Path
) -> None:
    """By hand; of nearly equal gains the strategy that gains most over all training questions counts: here par."""
    made = write_feedback(tmp_path / "made", rows(80))
    best, each = (data_of(module, made, least_gain=0.02, targets=kind) for kind in ("best", "each"))
    means = [sum(column) for column in zip(*(own.gains for own in best.questions), strict=True)]
    assert means.index(max(means)) == 1
    for gains, alone, together in (
        ((0.31, 0.3, 0.1), [0.0, 1.0, 0.0], [1.0, 1.0, 1.0]),
        ((0.33, 0.3, 0.1), [1.0, 0.0, 0.0], [1.0, 1.0, 1.0]),
        ((0.01, 0.02, -0.1), [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
        ((0.0, 0.02, 0.03), [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]),
    ):
        assert best.targets(gains) == alone
        assert each.targets(gains) == together
    missing, *others = best.targets((NAN, 0.1, 0.3))
    assert math.isnan(missing)
    assert others == [0.0, 1.0]


def test_the_split_is_by_dialogue(module: ChoiceTrainer, tmp_path: Path) -> None:
    turns = [
        greedy_feedback(f"name{n} is {t}", {"kwr": 0.3, "par": 0.0, "cce": 0.0}, (f"who is name{n}",))
        for n in range(30)
        for t in range(1, 4)
    ]
    data = data_of(module, write_feedback(tmp_path / "turns", [row for each in turns for row in each]))
    sides = [{each.history for each in side} for side in (data.questions, data.held_out)]
    assert all(sides)
    assert not sides[0] & sides[1]
    apart = ChoiceData(
        [Source("rewrite_feedback", str(tmp_path / "turns"))],
        [
            Source(
                "rewrite_feedback", str(write_feedback(tmp_path / "some", [row for each in turns[:4] for row in each]))
            )
        ],
    )
    apart.trainer = data.trainer
    apart.setup("fit")
    assert len(apart.held_out) == 4
    assert len(apart.questions) == 90 - 6  # all turns of the two dialogues


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


def test_the_kept_gain_and_the_threshold_by_hand() -> None:
    gains_PS = np.array([[0.6, 0.2, -0.5], [-0.1, 0.3, NAN], [-0.2, 0.0, -0.3]])
    chosen_PS = np.array([[False, True, True], [True, False, True], [True, True, True]])
    np.testing.assert_allclose(kept_gains(chosen_PS, gains_PS), [0.2, 0.0, 0.0])
    probabilities_PS = np.array([[0.9, 0.8, 0.1], [0.2, 0.4, 0.95], [0.3, 0.05, 0.5]])
    # from the highest down: 0.95 keeps 0, 0.9 keeps 0.6 of 0.9, 0.4 keeps all
    assert choose_threshold(probabilities_PS, gains_PS, 0.6) == pytest.approx((0.9 + 0.8) / 2)
    assert choose_threshold(probabilities_PS, gains_PS, 2 / 3) == pytest.approx((0.9 + 0.8) / 2)
    assert choose_threshold(probabilities_PS, gains_PS, 0.7) == pytest.approx((0.4 + 0.3) / 2)
    assert choose_threshold(probabilities_PS, gains_PS, 1.0) == pytest.approx((0.4 + 0.3) / 2)
    assert choose_threshold(probabilities_PS, gains_PS, 0.0) == pytest.approx((0.95 + 0.9) / 2)
    assert fixed_choice(gains_PS, 1.0) == 2
    assert fixed_choice(gains_PS, 0.6) == 1
    assert fixed_choice(gains_PS, 0.0) == 0
    assert choose_threshold(np.full((1, 2), 0.5), np.array([[0.1, 0.0]]), 1.0) == 0.5  # everything ties


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


@pytest.mark.numeric
@pytest.mark.parametrize(("ranks", "accumulate"), [(1, 3), (2, 1), (4, 4)])
def test_the_parts_make_up_the_loss_of_the_step(
    module: ChoiceTrainer, workplace: Path, ranks: int, accumulate: int
) -> None:
    def share(batch: Any) -> float:
        log_odds_PS = module.chooser(batch.ids_PT, batch.attention_PT)
        return float(choice_loss(log_odds_PS, batch.targets_PS, batch.weights_P, batch.step_targets))

    folder = write_feedback(workplace / "gaps", rows(60)[: 60 * 3 - 10])  # some questions lack a rewrite
    whole = list(data_of(module, folder).train_dataloader())
    parts = [
        list(data_of(module, folder, rank=rank, ranks=ranks, accumulate=accumulate).train_dataloader())
        for rank in range(ranks)
    ]
    with torch.inference_mode():
        for number, batch in enumerate(whole):
            assert int((~batch.targets_PS.isnan()).sum()) == batch.step_targets
            mine = [each[number * accumulate + n] for each in parts for n in range(accumulate)]
            assert sum(map(share, mine)) == model_close(share(batch))


def test_a_run_learns_and_exports_what_it_trained(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fit(
        "tiny", "--trainer.max_epochs", "30", "--trainer.check_val_every_n_epoch", "15", "--model.kept_gain", "1.0"
    )
    found = [row for row in metrics(folder) if "val/average_precision" in row][-1]
    assert found["val/average_precision"] == 1.0
    assert found["val/auc"] == 1.0
    assert found["val/kept_gain"] == pytest.approx(1.0)
    assert found["val/fixed_rewrites"] == 2  # kwr and par
    assert found["val/rewrites"] < 1.01  # the best one suffices, and a third of the questions needs none
    chooser = StrategyChooser.load(folder / "serving", "cpu", "fp32")
    assert chooser.strategies == tuple(STRATEGIES)
    assert chooser.threshold == found["val/threshold"]
    asked = [("who is city name1", ()), ("where is film name4", ()), ("yes is film name7", ())]
    chosen = [
        [name for name, p in zip(STRATEGIES, each or (), strict=True) if p > 0.5]
        for each in chooser.probabilities(asked)
    ]
    assert chosen == [["kwr"], ["par", "cce"], []]
    manifest = json.loads((folder / "serving/serving.json").read_text())
    assert manifest["feedback"] == [{"layout": "rewrite_feedback", "round": 1}]
    assert list(manifest["data"]) == [str(workplace / "feedback" / "feedback.jsonl")]
    card = ModelCard.load(folder / "serving/README.md")
    (code,) = re.findall(r"```python\n(.*?)```", card.text, flags=re.DOTALL)
    monkeypatch.chdir(folder / "serving")
    exec(compile(code, "README.md", "exec"), found := {"__name__": "card"})
    (ours,) = chooser.probabilities([(found["question"], ())])
    assert ours is not None
    assert found["probabilities"] == pytest.approx(ours, abs=1e-6)
    assert found["chosen"] == [name for name, p in zip(STRATEGIES, ours, strict=True) if p >= chooser.threshold]


@pytest.mark.numeric
@pytest.mark.whole_run
def test_accumulation_and_two_processes_train_as_one(workplace: Path) -> None:
    options = [
        *RECORDED,
        "--model.learning_rate",
        HARDLY,
        "--model.head_learning_rate",
        HARDLY,
        "--trainer.max_steps",
        "3",
    ]
    one = fit("one", *options)
    four = fit("four", *options, "--trainer.accumulate_grad_batches", "4")
    fit_in_turn(workplace, [["--name", "two", *options]])
    for other in (four, Path("checkpoints/two")):
        assert_same_steps(other, one, rows=24)
        assert_same_logs(metrics(other), metrics(one))


@pytest.mark.numeric
@pytest.mark.whole_run
def test_resume_in_the_middle_of_an_epoch_is_exact(workplace: Path) -> None:
    whole = fit("whole")
    cut = fit("cut", "--checkpoint.every_n_train_steps", "1", "--checkpoint.save_top_k=-1",
              "--checkpoint.filename", "{step}", "--checkpoint.monitor", "train/loss_nats")  # fmt: skip
    kept = workplace / "kept.ckpt"
    shutil.copy(cut / "step=3.ckpt", kept)
    assert largest_difference(weights(workplace, kept.name), weights(whole)) > 0
    resumed = fit("from-3", "--ckpt_path", str(kept))
    assert_repeated(weights(resumed), weights(whole))
    last = [row for row in metrics(resumed) if "val/threshold" in row][-1]
    assert last["val/threshold"] == [row for row in metrics(whole) if "val/threshold" in row][-1]["val/threshold"]


def test_other_layouts_missing_strategies_and_feedback_without_gains_are_refused(
    module: ChoiceTrainer, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="layout is 'hotpotqa', but this data module reads rewrite_feedback"):
        ChoiceData([Source("hotpotqa", "questions.json")])
    lacking = write_feedback(tmp_path / "lacking", [each for each in rows(20) if each.strategy != "cce"])
    with pytest.raises(
        DataError, match=r"no rewrites by the strategy .cce., which model.strategies names; it has: kwr, par"
    ):
        data_of(module, lacking)
    useless = [row for n in range(20) for row in greedy_feedback(f"who is name{n}", dict.fromkeys(STRATEGIES, 0.0))]
    with pytest.raises(DataError, match="0 training questions and 0 validation questions"):
        data_of(module, write_feedback(tmp_path / "useless", useless))
    sampled = RewriteFeedback("q7", "who", "kwr", 0.1, (Candidate("who", 0.2),))
    with pytest.raises(DataError, match="question q7 has no greedy rewrite by kwr"):
        data_of(module, write_feedback(tmp_path / "sampled", [*rows(20), sampled]))
    with pytest.raises(UserError, match="each once"):
        ChoiceTrainer(["kwr", "kwr"])


def test_long_questions_are_skipped_and_counted(module: ChoiceTrainer, workplace: Path) -> None:
    long = [row for n in range(5) for row in greedy_feedback(f"name{n} " * 30, dict.fromkeys(STRATEGIES, 0.5))]
    folder = write_feedback(workplace / "long", [*rows(60), *long])
    assert data_of(module, folder).audit["skipped_long_questions"] == 5
