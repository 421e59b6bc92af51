"""Training of generative rewriters on rewarded rewrites: data, parts of a step, and real (tiny) runs of the command line."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import train
from common.errors import DataError, UserError
from common.feedback import RewriteFeedback
from common.records import Passage, Question
from datamodules.dmqr_feedback import RewriteFeedbackData
from datamodules.examples.splits import Source
from datamodules.formats.feedback import read_rewrite_feedback
from harness.feedback.collecting import Collector
from harness.feedback.drafts import Greedy
from harness.feedback.rewards import GoldRecall
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.rewriters.trained import TrainedRewriter
from models.dmqr.rewriter import Rewriter
from models.dmqr.strategies import Pool
from models.serving_manifest import MANIFEST
from tests.conftest import NAMES
from tests.helpers.recorder import HARDLY, RECORDED, assert_same_steps
from tests.helpers.rewrite_feedback import BEST, TEXTS, model_of, questions, sampled, save_start, write_feedback
from tests.helpers.runs import assert_repeated, assert_same_logs, fit_in_turn, largest_difference
from tests.helpers.tolerances import model_close
from trainers.dmqr_feedback import RewriterFeedbackTrainer
from trainers.dmqr_feedback_validation import Validated, Written, summary
from trainers.feedback_losses import OBJECTIVES

CONFIG = """
name: tiny
seed_everything: 0
model:
  class_path: trainers.dmqr_feedback.RewriterFeedbackTrainer
  init_args:
    {{pretrained: {start}, max_tokens: 40, max_rewrite_tokens: 8, lora_rank: 8, lora_alpha: 16, learning_rate: 2.0e-2, clip: 20.0,
     schedule: constant}}
data:
  class_path: datamodules.dmqr_feedback.RewriteFeedbackData
  init_args:
    train: [{{layout: rewrite_feedback, path: {data}}}]
    validation_fraction: 0.2
    groups_per_step: 12
    groups_per_validation_batch: 5
    generated_rewrites: 7
trainer:
  accelerator: cpu
  max_epochs: 2
  enable_progress_bar: false
  log_every_n_steps: 1
  num_sanity_val_steps: 1
  gradient_clip_val: 1.0
checkpoint: {{monitor: val/expected_reward}}
early_stopping: {{patience: 100}}
"""
GUARD = ("--trainer.callbacks+=trainers.run.collapse.CollapseGuard",)


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    """A folder with a rewriter that writes any of four texts, and with feedback on them."""
    root = tmp_path_factory.mktemp("feedback")
    write_feedback(root / "feedback", sampled(save_start(root / "start", checkpoints["t5"]), 40))
    return root


@pytest.fixture
def workplace(tmp_path: Path, toy: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run in, with a config for a tiny run."""
    (tmp_path / "config.yaml").write_text(CONFIG.format(start=model_of(toy / "start"), data=toy / "feedback"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["train.py"])  # Lightning warns of others
    return tmp_path


def fit(name: str, *extra: str) -> Path:
    """Run the command line in this process; the run's folder."""
    train.main(["fit", "--config", "config.yaml", "--name", name, *extra])
    return Path("checkpoints", name)


def metrics(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def weights(folder: Path, name: str = "last.ckpt") -> dict[str, Tensor]:
    return torch.load(folder / name, weights_only=True)["state_dict"]


class Bench:
    """What the data module asks of Lightning's trainer."""

    is_global_zero = False

    def __init__(self, module: RewriterFeedbackTrainer, rank: int, ranks: int, accumulate: int) -> None:
        self.lightning_module, self.global_rank, self.world_size = module, rank, ranks
        self.accumulate_grad_batches = accumulate


def data_of(
    module: RewriterFeedbackTrainer, folder: Path, rank: int = 0, ranks: int = 1, accumulate: int = 1, **options: Any
) -> RewriteFeedbackData:
    given: dict[str, Any] = {"validation_fraction": 0.2, "groups_per_step": 12, **options}
    data = RewriteFeedbackData([Source("rewrite_feedback", str(folder))], **given)
    data.trainer = Bench(module, rank, ranks, accumulate)  # type: ignore[assignment]
    data.trainer.datamodule = data
    module.trainer = data.trainer
    data.setup("fit")
    return data


@pytest.fixture
def module(toy: Path) -> RewriterFeedbackTrainer:
    return RewriterFeedbackTrainer(model_of(toy / "start"), max_tokens=40, max_rewrite_tokens=8).eval()


def greedy(serving: Path) -> list[float]:
    """For new questions whether the greedy rewrite is the best one."""
    rewriter = TrainedRewriter(serving, "cpu", "fp32")
    asked = [Question(str(n), text) for n, text in enumerate(questions(20, seed=11))]
    made = rewriter.rewrite(asked, ["gqr"])
    return [
        float(each.queries["gqr"] == (BEST[q.text.split()[0]],)) for q, each in zip(asked, made, strict=True)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "objective",
    [
        pytest.param(each, marks=pytest.mark.whole_run if each in ("best_of_n", "ranking") else ())
        for each in OBJECTIVES
    ],
)
def test_every_objective_learns_to_write_the_rewarded_rewrite(workplace: Path, toy: Path, objective: str) -> None:
    """From a model that writes any of four texts: which is best depends on the question."""
    assert sum(greedy(toy / "start")) <= 10
    slower = ("--model.learning_rate", "5.0e-3", "--model.margin", "0.2", "--model.imitation_weight", "0.1")
    options = (
        slower if objective in ("dpo", "ranking") else ()
    )  # at a greater rate they favour texts that were not recorded
    folder = fit(objective, "--model.objective", objective, *options, "--trainer.max_epochs", "12",
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
    assert manifest["feedback"][0]["layout"] == "rewrite_feedback"
    card = (folder / "serving/README.md").read_text()
    assert f"on the rewards of sampled rewrites, by the objective {objective}." in card


@pytest.mark.numeric
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("ranks", "accumulate"), [(2, 1), (1, 4), (4, 4)])  # 16 parts exceed the 12 groups of a step
def test_the_parts_make_up_the_loss_of_the_step(
    toy: Path, module: RewriterFeedbackTrainer, ranks: int, accumulate: int, objective: str
) -> None:
    module.objective = replace(module.objective, name=objective, kl_weight=0.5)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "lora_B" in name:
                parameter.normal_(0, 0.1, generator=torch.Generator().manual_seed(len(name)))  # no longer the reference
    shares: list[float] = []
    module.add_shares = lambda found: shares.append(float(found["train/loss"]))  # type: ignore[method-assign]
    module._scaled = lambda share, *_: share  # type: ignore[method-assign]

    def step_of(data: RewriteFeedbackData, number: int) -> float:
        shares.clear()
        for group in data.groups:
            group.reference = [each.log_probability or 0.0 for each in group.example.candidates]
        for batch in list(data.train_dataloader())[number * accumulate : (number + 1) * accumulate]:
            module.training_step(batch, 0)
        return sum(shares)

    data = RewriteFeedbackData([Source("rewrite_feedback", str(toy / "feedback"))], groups_per_step=12)
    data.trainer = Bench(module, 0, 1, 1)  # type: ignore[assignment]
    data.setup("fit")
    parts = [
        RewriteFeedbackData([Source("rewrite_feedback", str(toy / "feedback"))], groups_per_step=12)
        for _ in range(ranks)
    ]
    for rank, part in enumerate(parts):
        part.trainer = Bench(module, rank, ranks, accumulate)  # type: ignore[assignment]
        part.setup("fit")
    with torch.inference_mode():
        batch = next(iter(data.train_dataloader()))
        for group in data.groups:
            group.reference = [each.log_probability or 0.0 for each in group.example.candidates]
        shares.clear()
        module.training_step(data._collate(0, batch.rows_G.tolist(), batch.rows_G.tolist()), 0)
        whole = sum(shares)
        assert sum(step_of(part, 0) for part in parts) == model_close(whole)
    assert whole != 0


def test_questions_are_on_one_side_and_what_does_not_fit_is_counted(
    toy: Path, module: RewriterFeedbackTrainer, tmp_path: Path
) -> None:
    made = read_rewrite_feedback(str(toy / "feedback"))
    one = made[0].candidates[0]
    equal = replace(made[1], question="who is name1 equal", candidates=(one, replace(one, rewrite="other")))
    long = replace(made[2], question="name1 " * 50)
    wordy = replace(
        made[3], question="who is name2 wordy", candidates=(*made[3].candidates, replace(one, rewrite="city " * 9))
    )
    data = data_of(module, write_feedback(tmp_path / "more", [*made, equal, long, wordy]))
    sides = [{each.example.question for each in side} for side in (data.groups, data.held_out)]
    assert not sides[0] & sides[1]
    assert len(data.groups) + len(data.held_out) == len(made) + 1 + ("who is name1 equal" in sides[1])
    counted = data.audit["skipped"]
    assert counted["long_questions"] == 1
    assert counted["long_rewrites"] == 1
    assert counted.get("groups_of_equal_rewards", 0) == 1 - ("who is name1 equal" in sides[1])
    separate = data_of(
        module, toy / "feedback", validation=[Source("rewrite_feedback", str(write_feedback(tmp_path / "v", made[:6])))]
    )
    assert len(separate.held_out) == 6
    assert len(separate.groups) == len(made) - 6
    assert data.strategies == ["gqr", "kwr"]


def test_the_reference_is_the_starting_model_also_of_a_resumed_run(
    workplace: Path, toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    references: list[list[list[float]]] = []
    score = RewriterFeedbackTrainer._score_reference

    def kept(self: RewriterFeedbackTrainer, groups: Sequence[Any]) -> None:
        score(self, groups)
        references.append([list(each.reference) for each in groups])

    monkeypatch.setattr(RewriterFeedbackTrainer, "_score_reference", kept)
    folder = fit("first", "--trainer.max_epochs", "1")
    fit("first", "--resume", "auto")
    assert references[1] == references[0]
    rows = {(each.question, each.strategy): each for each in read_rewrite_feedback(str(toy / "feedback"))}
    module = RewriterFeedbackTrainer(model_of(toy / "start"), max_tokens=40, max_rewrite_tokens=8)
    groups = [*(data := data_of(module, toy / "feedback")).groups, *data.held_out]
    for group, reference in zip(groups, references[0], strict=True):
        known = {
            each.rewrite: each.log_probability
            for each in rows[group.example.question, group.example.strategy].candidates
        }
        assert reference == [model_close(known[each.rewrite]) for each in group.example.candidates]
    assert any((each != 0).any() for name, each in weights(folder).items() if "lora_B" in name)


def write_gold(folder: Path, count: int = 40) -> tuple[str, ...]:
    """Gold passages, an index whose passages depend on the rewrite, and the options that search it."""
    rows = [
        {"_id": str(n), "question": text, "answer": "x", "supporting_facts": [[name, 0]], "context": [[name, [f"{name} was born in"]]]}
        for n, text in enumerate(questions(count)) for name in [next(w for w in text.split() if w.startswith("name"))]
    ]  # fmt: skip
    (folder / "gold.json").write_text(json.dumps(rows))
    passages = [Passage.of(n, f"{n} was born in") for n in NAMES]
    noise = [
        Passage.of(f"{n} film", f"{n} is a film director of the city no {i}") for n in NAMES[::2] for i in range(2)
    ]
    build_bm25([*passages, *noise], folder / "index")
    return (
        "--data.retriever", "harness.retrievers.bm25.Bm25Retriever", "--data.retriever.index", str(folder / "index"),
        "--data.reward", "harness.feedback.rewards.GoldRecall", "--data.reward.half_rank", "2", "--data.reward.depth", "5",
        "--data.gold_questions", f"[{{layout: hotpotqa, path: {folder / 'gold.json'}}}]",
    )  # fmt: skip


@pytest.mark.parametrize("fused", [True, False])
def test_validation_rewards_greedy_rewrites_as_the_command_does(
    workplace: Path, toy: Path, module: RewriterFeedbackTrainer, fused: bool
) -> None:
    write_gold(workplace)
    folder = write_feedback(workplace / "here", read_rewrite_feedback(str(toy / "feedback")))
    (folder / "feedback.json").write_text(
        json.dumps({"layout": "rewrite_feedback", "round": 1, "fused": fused, "depth": 7})
    )
    retriever, reward = Bm25Retriever(workplace / "index"), GoldRecall(half_rank=2.0, depth=5)
    gold = [Source("hotpotqa", "gold.json")]
    data = data_of(module, folder, retriever=retriever, reward=reward, gold_questions=gold, generated_rewrites=9)
    assert len(data.gold) == 9
    with torch.inference_mode():
        for number, batch in enumerate(data.val_dataloader()):
            module.validation_step(batch, number)
    rewriter = TrainedRewriter(toy / "start", "cpu", "fp32")
    for row, question in data.gold.items():
        strategy = data.held_out[row].example.strategy
        collected = Collector(Greedy(rewriter, [strategy]), reward, retriever, fused, 7, 0)([question])
        (feedback,) = collected.rows
        written = module.validated[row].written
        assert written.reward == pytest.approx(feedback.candidates[0].reward, abs=1e-6)
    found = module.summarize(list(module.validated.values()))
    assert found["reward_question"] == pytest.approx(0.2)
    assert module.metric_names[0] == "reward"


def test_the_measures_of_a_validation_by_hand() -> None:
    found = summary(
        [
            Validated(4.0, 2.0, 0.5, 1.0, Written(3, True, False, 0.2, 0.1)),
            Validated(2.0, 1.0, 1.0, 0.0, Written(5, False, False, 0.8, 0.3)),
            Validated(0.0, 0.0, 0.0, 0.5, Written(1, False, True, None, 0.0)),
            Validated(0.0, 1.0, 0.5, 0.5, None),
        ]
    )
    assert found == pytest.approx(
        {
            "expected_reward": 0.5, "loss": 1.5, "kl": 0.5, "length": 3.0, "unchanged_share": 1 / 3, "empty_share": 1 / 3,
            "reward": 0.5, "reward_variance": 0.09, "reward_question": 0.2,
        }
    )  # fmt: skip


def test_a_rewriter_that_collapses_is_stopped_and_the_start_is_exported(
    workplace: Path, toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rewards are turned round: what training raises falls by the validation's rewards."""
    made = read_rewrite_feedback(str(toy / "feedback"))
    turned = [
        replace(each, candidates=tuple(replace(one, reward=1 - one.reward) for one in each.candidates)) for each in made
    ]
    held = [replace(each, question=f"{each.question} name7") for each in made[:6]]
    write_feedback(workplace / "turned", turned)
    write_feedback(workplace / "held", held)
    folder = fit("lost", *GUARD, "--data.train", f"[{{layout: rewrite_feedback, path: {workplace / 'turned'}}}]",
                 "--data.validation", f"[{{layout: rewrite_feedback, path: {workplace / 'held'}}}]",
                 "--trainer.max_epochs", "20", "--model.objective", "best_of_n")  # fmt: skip
    assert "the rewriter has collapsed: val/expected_reward" in capsys.readouterr().out
    best = torch.load(folder / "best.ckpt", weights_only=True)
    assert best["global_step"] == 0
    assert all((value == 0).all() for name, value in best["state_dict"].items() if "lora_B" in name)
    assert (folder / "serving" / MANIFEST).is_file()


@pytest.mark.numeric
@pytest.mark.whole_run
def test_accumulation_and_two_processes_train_as_one(workplace: Path) -> None:
    options = (*RECORDED, "--model.learning_rate", HARDLY, "--trainer.max_steps", "3", *write_gold(workplace))
    variants = {
        "dpo": (), "ranking": ("--model.objective", "ranking", "--model.lora_rank", "null"),
        "policy": ("--model.objective", "policy_gradient", "--model.adapters", "per_strategy", "--data.groups_per_step", "2"),
    }  # fmt: skip
    fit_in_turn(workplace, [["--name", name, *extra, *options] for name, extra in variants.items()])
    for name, extra in variants.items():
        two, alone = Path("checkpoints", name), fit(f"{name}-alone", *options, *extra)
        assert_same_steps(two, alone, rows=12 * len(TEXTS))
        assert_same_logs(metrics(two), metrics(alone), relative=1e-4)
        ours, theirs = ([row for row in metrics(each) if "val/reward" in row] for each in (two, alone))
        for mine, other in zip(ours, theirs, strict=True):
            assert mine == model_close(other)
    four = fit("four", *options, "--trainer.accumulate_grad_batches", "4")
    assert_same_steps(four, Path("checkpoints/dpo-alone"), rows=12 * len(TEXTS))


@pytest.mark.numeric
@pytest.mark.whole_run
def test_resume_in_the_middle_of_an_epoch_is_exact(workplace: Path) -> None:
    whole = fit("whole", *GUARD, *write_gold(workplace))
    cut = fit("cut", *GUARD, *write_gold(workplace), "--checkpoint.every_n_train_steps", "1", "--checkpoint.save_top_k=-1",
              "--checkpoint.filename", "{step}", "--checkpoint.monitor", "train/loss")  # fmt: skip
    for step in (2, 7):
        kept = workplace / f"kept-{step}.ckpt"
        shutil.copy(cut / f"step={step}.ckpt", kept)
        assert largest_difference(weights(workplace, kept.name), weights(whole)) > 0
        resumed = fit(f"from-{step}", *GUARD, *write_gold(workplace), "--ckpt_path", str(kept))
        assert_repeated(weights(resumed), weights(whole))


def refused(options: Sequence[str], message: str) -> None:
    """A run with these options ends with this line."""
    with pytest.raises(Exception, match=message) as caught:
        fit("refused", *options)
    chain: BaseException | None = caught.value
    while chain is not None and not isinstance(chain, UserError):
        chain = chain.__cause__ or chain.__context__
    assert chain is not None
    assert "\n" not in str(chain)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model.beta", "0"), "beta must be above 0"),
        (("--data.candidates", "2"), "candidates must be at least 3: the best, the worst and the greedy one"),
        (
            ("--data.train", "[{layout: word_feedback, path: x}]"),
            "layout is 'word_feedback', but this data module reads",
        ),
        (("--data.train", "[{layout: rewrite_feedback, path: none}]"), "write it with `python infer.py feedback"),
        (("--data.gold_questions", "[{layout: hotpotqa, path: x}]"), "data.reward needs data.gold_questions"),
        (("--checkpoint.monitor", "val/reward"), "type --checkpoint.monitor val/expected_reward"),
    ],
)
def test_mistakes_are_refused(options: tuple[str, ...], message: str, workplace: Path) -> None:
    refused(options, message)


def test_policy_gradient_needs_log_probabilities(workplace: Path, toy: Path) -> None:
    made: list[RewriteFeedback] = read_rewrite_feedback(str(toy / "feedback"))
    bare = [
        replace(each, candidates=tuple(replace(one, log_probability=None) for one in each.candidates)) for each in made
    ]
    write_feedback(workplace / "bare", bare)
    train_on = ("--data.train", f"[{{layout: rewrite_feedback, path: {workplace / 'bare'}}}]")
    refused((*train_on, "--model.objective", "policy_gradient"), "policy_gradient needs the log-probabilities")
    fit("dpo", *train_on, "--trainer.max_steps", "1")


def test_the_base_of_adapters_for_each_strategy_is_no_start(toy: Path, tmp_path: Path) -> None:
    rewriter = Rewriter.build(model_of(toy / "start"), 40, 8, Pool.load(None).strategies)
    rewriter.add_adapters(["gqr", "kwr"], model_of(toy / "start"), 4, 8, 0.0, None)
    (tmp_path / "own").mkdir()
    rewriter.save(tmp_path / "own", ["gqr", "kwr"], {})
    with pytest.raises(UserError, match="is the base model of adapters for each strategy"):
        RewriterFeedbackTrainer(model_of(tmp_path / "own"), max_tokens=40, max_rewrite_tokens=8)


def test_questions_without_gold_data_are_refused(workplace: Path, toy: Path, module: RewriterFeedbackTrainer) -> None:
    write_gold(workplace, 1)
    options = {"retriever": Bm25Retriever(workplace / "index"), "reward": GoldRecall(depth=5)}
    with pytest.raises(DataError, match=r"has none of the .* validation questions, such as"):
        data_of(module, toy / "feedback", gold_questions=[Source("hotpotqa", "gold.json")], **options)
