"""Training of the extractive rewriter on rewarded choices of words: data, parts of a step, and real (tiny) runs of the command line."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from pytorch_lightning.strategies import SingleDeviceStrategy
from torch import Tensor

import train
from common.errors import DataError, UserError
from common.feedback import WordFeedback
from common.records import Question, Ranked
from common.retrieval import reciprocal_rank_fusion
from datamodules.dmqr_words_feedback import WordFeedbackData
from datamodules.examples.splits import Source
from datamodules.examples.word_feedback import WordFeedbackBatch
from datamodules.formats.feedback import read_word_feedback
from harness.feedback.rewards import GoldRecall
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.rewriters.extractive import ExtractiveRewriter
from models.dmqr.word_selector import WordSelector
from models.serving_manifest import MANIFEST
from tests.helpers import word_feedback
from tests.helpers.recorder import HARDLY, RECORDED, assert_same_steps
from tests.helpers.runs import assert_repeated, assert_same_logs, fit_in_turn, largest_difference
from tests.helpers.tolerances import model_close, model_tolerance
from tests.helpers.word_feedback import BEST_REWARD, POLICY, sampled, save_selector, write_feedback
from trainers.dmqr_words_feedback import WordFeedbackTrainer
from trainers.feedback_losses import OBJECTIVES

CONFIG = """
name: tiny
seed_everything: 0
model:
  class_path: trainers.dmqr_words_feedback.WordFeedbackTrainer
  init_args: {{pretrained: {start}, learning_rate: 1.0e-2, head_learning_rate: 1.0e-2}}
data:
  class_path: datamodules.dmqr_words_feedback.WordFeedbackData
  init_args:
    train: [{{layout: word_feedback, path: {data}}}]
    validation_fraction: 0.2
    questions_per_step: 8
    tokens_per_validation_batch: 200
trainer:
  accelerator: cpu
  max_epochs: 2
  enable_progress_bar: false
  log_every_n_steps: 1
  num_sanity_val_steps: 1
checkpoint: {{monitor: val/expected_reward}}
early_stopping: {{patience: 100}}
"""


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    """A folder with an untrained selector and with feedback that was sampled from it."""
    root = tmp_path_factory.mktemp("feedback")
    start = WordSelector.load(save_selector(root / "start", checkpoints["bert"]), "cpu", "fp32")
    write_feedback(root / "feedback", sampled(start, 60, 12))
    return root


@pytest.fixture
def workplace(tmp_path: Path, toy: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run in, with a config for a tiny run."""
    (tmp_path / "config.yaml").write_text(CONFIG.format(start=toy / "start", data=toy / "feedback"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["train.py"])  # Lightning warns of others
    return tmp_path


def fit(name: str, *extra: str) -> Path:
    train.main(["fit", "--config", "config.yaml", "--name", name, *extra])
    return Path("checkpoints", name)


def metrics(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def weights(folder: Path, name: str = "last.ckpt") -> dict[str, Tensor]:
    return torch.load(folder / name, weights_only=True)["state_dict"]


class Standin:
    """What a data module and a trainer ask of Lightning's trainer."""

    is_global_zero = True

    def __init__(self, module: WordFeedbackTrainer, rank: int, ranks: int, accumulate: int) -> None:
        self.lightning_module, self.global_rank, self.world_size = module, rank, ranks
        self.accumulate_grad_batches = accumulate
        self.strategy = SingleDeviceStrategy(torch.device("cpu"))


def data_of(
    module: WordFeedbackTrainer, folder: Path, rank: int = 0, ranks: int = 1, accumulate: int = 1, **options: Any
) -> WordFeedbackData:
    given: dict[str, Any] = {"validation_fraction": 0.2, "questions_per_step": 8, **options}
    data = WordFeedbackData([Source("word_feedback", str(folder))], **given)
    data.trainer = Standin(module, rank, ranks, accumulate)  # type: ignore[assignment]
    data.trainer.datamodule = data
    module.trainer = data.trainer
    data.setup("fit")
    return data


@pytest.fixture
def module(toy: Path) -> WordFeedbackTrainer:
    return WordFeedbackTrainer(str(toy / "start")).eval()


def greedy(serving: Path) -> tuple[float, list[WordFeedback]]:
    """Mean reward of the choices that a selector would use for new questions, and these choices."""
    rows = sampled(WordSelector.load(serving, "cpu", "fp32"), 40, 0, names=9)
    return sum(each.candidates[0].reward for each in rows) / len(rows), rows


@pytest.mark.parametrize(
    ("objective", "weights"), [("policy_gradient", "choice"), *((each, "words") for each in OBJECTIVES)]
)
def test_every_objective_learns_which_words_are_rewarded(
    workplace: Path, toy: Path, objective: str, weights: str
) -> None:
    """From random weights, on questions with other names: by the words' contexts."""
    start, _ = greedy(toy / "start")
    assert start < -0.2
    folder = fit(objective, "--model.objective", objective, "--model.weights", weights, "--trainer.max_epochs", "8", "--model.learning_rate", "3.0e-3",
                 "--model.head_learning_rate", "3.0e-3", "--trainer.check_val_every_n_epoch", "4")  # fmt: skip
    found, rows = greedy(folder / "serving")
    assert found > 0.75 * BEST_REWARD
    for each in rows[:10]:
        (choice, *_), words = each.candidates, each.question.split()
        assert "who" in [words[place] for place in choice.left_out]
        assert "born" not in choice.joins
    card = (folder / "serving/README.md").read_text()
    assert f"on the rewards of sampled choices of words, by the objective {objective}." in card


def test_the_export_says_what_it_learned_from_and_is_sampled_next(workplace: Path, toy: Path) -> None:
    folder = fit("first", "--trainer.max_steps", "2", "--trainer.val_check_interval", "2")
    manifest = json.loads((folder / "serving" / MANIFEST).read_text())
    assert manifest["round"] == 1
    assert manifest["feedback"] == [json.loads((toy / "feedback/feedback.json").read_text())]
    assert set(manifest["data"]) == {str(toy / "feedback" / name) for name in ("feedback.jsonl", "feedback.json")}
    assert largest_difference(weights(folder, "best.ckpt"), WordFeedbackTrainer(str(toy / "start")).state_dict()) > 1e-4
    write_feedback(workplace / "second", sampled(WordSelector.load(folder / "serving", "cpu", "fp32"), 20, 8), round_=2)
    again = fit("second", "--trainer.max_steps", "2", "--trainer.val_check_interval", "2", "--model.pretrained",
                str(folder / "serving"), "--data.train", f"[{{layout: word_feedback, path: {workplace / 'second'}}}]")  # fmt: skip
    assert json.loads((again / "serving" / MANIFEST).read_text())["round"] == 2


def test_a_round_starts_where_the_candidates_were_sampled(module: WordFeedbackTrainer, toy: Path) -> None:
    """Recorded log-probabilities are the model's; the loss of a policy gradient is 0 but not its gradient, which is the same with one
    importance weight for a choice and with one for each word."""
    data = data_of(module, toy / "feedback")
    module._score_reference(data.groups)
    for batch in data.train_dataloader():
        gradients = []
        for weights in ("words", "choice"):
            module.hparams.weights = weights
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
    module: WordFeedbackTrainer, toy: Path, objective: str, ranks: int, accumulate: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranks without data included."""
    if objective == "choice":
        module.hparams.weights, objective = "choice", "policy_gradient"
    module.objective = replace(module.objective, name=objective, kl_weight=0.5)
    monkeypatch.setattr(type(module), "backward_passes", 1)

    def share(batch: WordFeedbackBatch) -> float:
        return float(module.training_step(batch, 0))

    whole = list(data_of(module, toy / "feedback").train_dataloader())
    parts = [
        list(data_of(module, toy / "feedback", rank, ranks, accumulate).train_dataloader()) for rank in range(ranks)
    ]
    with torch.inference_mode():
        for number, batch in enumerate(whole):
            mine = [each[number * accumulate + n] for each in parts for n in range(accumulate)]
            assert sum(map(share, mine)) == model_close(share(batch))


def test_a_pair_is_computed_once_whatever_the_number_of_candidates(module: WordFeedbackTrainer, toy: Path) -> None:
    data = data_of(module, toy / "feedback", questions_per_step=4)
    sizes = []
    for epoch in range(2):
        drawn = sorted(row for step in data._plan(epoch) for row in step)
        assert drawn == list(range(len(data.groups)))
    for batch in data.train_dataloader():
        assert batch.examples == 2 * len(batch.rows_G)
        sizes.append(len(batch.rows_G))
    assert sum(sizes) == len(data.groups)
    assert data.largest_batch() == (max(sizes) * 2, max(each.longest for each in data.groups))
    sides = [{each.feedback.question for each in side} for side in (data.groups, data.held_out)]
    assert not sides[0] & sides[1]
    assert sum(map(len, sides)) == 60


def test_questions_without_a_lesson_and_long_ones_are_counted(
    module: WordFeedbackTrainer, toy: Path, tmp_path: Path
) -> None:
    rows = read_word_feedback(str(toy / "feedback"))
    equal = replace(rows[0], candidates=tuple(replace(each, reward=0.5) for each in rows[0].candidates))
    rows = [
        *rows, *(replace(equal, question_id=f"same{n}", question=f"{equal.question} {n}") for n in range(30)),
        *(replace(rows[1], question_id=f"long{n}", question=f"name{n} " * 40) for n in range(5)),
    ]  # fmt: skip
    data = data_of(module, write_feedback(tmp_path / "more", [cut(each) for each in rows]))
    assert data.audit["skipped_long_questions"] == 5
    held = sum(each.feedback.question_id.startswith("same") for each in data.held_out)
    assert data.audit["questions_whose_candidates_have_equal_rewards"] == 30 - held
    assert 0 < held < 30
    write_feedback(tmp_path / "nothing", [replace(equal, question_id=str(n)) for n in range(3)])
    with pytest.raises(DataError, match="0 training questions and 0 validation questions"):
        data_of(module, tmp_path / "nothing")


def cut(row: WordFeedback) -> WordFeedback:
    """Candidates that leave out no word, so that the question may be another one."""
    return replace(row, candidates=tuple(replace(each, left_out=()) for each in row.candidates))


def test_the_best_candidate_does_not_depend_on_the_order_in_the_file(
    module: WordFeedbackTrainer, toy: Path, tmp_path: Path
) -> None:
    rows = [
        replace(each, candidates=tuple(replace(one, reward=round(one.reward)) for one in each.candidates))
        for each in read_word_feedback(str(toy / "feedback"))
    ]
    turned = [replace(each, candidates=each.candidates[::-1]) for each in rows]
    here, there = (
        data_of(module, write_feedback(tmp_path / name, each)).groups for name, each in (("a", rows), ("b", turned))
    )
    assert [each.feedback for each in here] == [each.feedback for each in there]


def test_feedback_of_another_model_layout_or_policy_is_refused(
    module: WordFeedbackTrainer, toy: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="layout is 'word_labels', but this data module reads word_feedback"):
        WordFeedbackData([Source("word_labels", "labels.jsonl")])
    rows = read_word_feedback(str(toy / "feedback"))
    strange = replace(rows[0], candidates=(replace(rows[0].candidates[0], joins=("spielberg",)), *rows[0].candidates))
    with pytest.raises(DataError, match=r"question 0: 'spielberg' is not among the words .* name as model.pretrained"):
        data_of(module, write_feedback(tmp_path / "strange", [strange, *rows[1:]]))
    write_feedback(tmp_path / "hotter", rows, policy=replace(POLICY, temperature=2.0))
    both = [Source("word_feedback", str(toy / "feedback")), Source("word_feedback", str(tmp_path / "hotter"))]
    data = WordFeedbackData(both)
    data.trainer = Standin(module, 0, 1, 1)  # type: ignore[assignment]
    with pytest.raises(DataError, match=r"hotter was sampled with the policy .*'temperature': 2.0"):
        data.setup("fit")
    for options in ({"reward": GoldRecall()}, {"retriever": Bm25Retriever}, {"gold_questions": both}):
        with pytest.raises(UserError, match="give them together"):
            WordFeedbackData(both, **options)
    with pytest.raises(UserError, match=r"data.reward looks at passages: give data.retriever"):
        WordFeedbackData(both, reward=GoldRecall(), gold_questions=both)


def write_gold(folder: Path) -> list[str]:
    """Question files with gold passages, an index with more passages, and the options that search it; the lowest reward is kept, so that
    it is not the starting model's."""
    asked = word_feedback.questions(60)
    rows = [
        {
            "_id": str(number), "question": question, "answer": "x", "supporting_facts": [[passages[1].title, 0]],
            "context": [[each.title, [each.text]] for each in passages],
        }
        for number, (question, passages) in enumerate(asked)
    ]  # fmt: skip
    (folder / "gold.json").write_text(json.dumps(rows))
    build_bm25(list({each.id: each for _, passages in asked for each in passages}.values()), folder / "index")
    return [
        "--data.retriever", "harness.retrievers.bm25.Bm25Retriever", "--data.retriever.index", str(folder / "index"),
        "--data.reward", "harness.feedback.rewards.GoldRecall", "--data.reward.half_rank", "2", "--data.gold_questions",
        f"[{{layout: hotpotqa, path: {folder / 'gold.json'}}}]", "--data.rewarded_questions", "6",
        "--checkpoint.monitor", "val/reward", "--checkpoint.mode", "min", "--early_stopping.mode", "min",
    ]  # fmt: skip


def test_validation_rewards_the_queries_that_the_exported_rewriter_makes(
    workplace: Path, toy: Path, module: WordFeedbackTrainer
) -> None:
    folder = fit("rewarded", *write_gold(workplace), "--trainer.max_epochs", "3", "--trainer.callbacks",
                 "trainers.run.collapse.CollapseGuard", "--trainer.callbacks.most_reward_drop", "5")  # fmt: skip
    measured = [row for row in metrics(folder) if "val/reward" in row]
    assert [row["step"] + 1 for row in measured] == [0, 6, 12, 18]  # the starting model's first
    best = json.loads((folder / "serving" / MANIFEST).read_text())["validation"]
    assert best["reward"] == min(row["val/reward"] for row in measured)
    data = data_of(module, toy / "feedback", retriever=Bm25Retriever(workplace / "index"), reward=GoldRecall(2.0),
                   gold_questions=[Source("hotpotqa", str(workplace / "gold.json"))], rewarded_questions=6)  # fmt: skip
    assert len(data.gold) == 6
    rewriter = ExtractiveRewriter(folder / "serving", 2, POLICY.stay_probability, 0.5, POLICY.join_probability, device="cpu",
                                  precision="fp32")  # fmt: skip
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
    workplace: Path, toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = fit("far", "--trainer.callbacks", "trainers.run.collapse.CollapseGuard", "--trainer.callbacks.most_kl_nats",
                 "1.0e-6")  # fmt: skip
    assert "the rewriter has collapsed: val/kl" in capsys.readouterr().out
    assert largest_difference(weights(folder, "best.ckpt"), WordFeedbackTrainer(str(toy / "start")).state_dict()) == 0
    first, second = (row for row in metrics(folder) if "val/kl" in row)
    assert (first["val/kl"], second["step"]) == (pytest.approx(0, abs=1e-9), 5)


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
        assert_same_steps(other, one, rows=16)
        assert_same_logs(metrics(other), metrics(one))


@pytest.mark.numeric
@pytest.mark.whole_run
def test_resume_in_the_middle_of_an_epoch_is_exact(workplace: Path) -> None:
    """The reference of the resumed run is the starting model, not the checkpoint: the divergence has weight."""
    options = "--model.kl_weight", "1.0"
    whole = fit("whole", *options)
    cut = fit("cut", *options, "--checkpoint.every_n_train_steps", "1", "--checkpoint.save_top_k=-1",
              "--checkpoint.filename", "{step}", "--checkpoint.monitor", "train/loss")  # fmt: skip
    kept = workplace / "kept.ckpt"
    shutil.copy(cut / "step=3.ckpt", kept)
    assert largest_difference(weights(workplace, kept.name), weights(whole)) > 0
    assert_repeated(weights(fit("from-3", *options, "--ckpt_path", str(kept))), weights(whole))
