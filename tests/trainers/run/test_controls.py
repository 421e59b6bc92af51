"""Whether a run has learned: rules by brute force, and what its part finds with another question's text."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import expit
from torch import nn

from common.other_questions import FEWEST
from common.records import Passage, Question
from datamodules.examples.context_sets import ContextSet
from datamodules.examples.lazy_sequence import LazySequence
from datamodules.examples.triples import Triple
from tests.conftest import hotpot_rows
from tests.helpers.rerag_data import fid_rows
from tests.helpers.runs import assert_repeated, fit_in_turn
from tests.helpers.tiny_runs import Bench, checkpoint_of, fit, metrics, use
from tests.trainers import test_drrag, test_rerag_training
from trainers.drrag import DrRagTrainer
from trainers.rerag import ReRagTrainer
from trainers.rerag_options import Loss
from trainers.run.callbacks import RandomState
from trainers.run.controls import MOST
from trainers.run.learning import CHANCE_NATS, RULES, doubts, explained
from trainers.run.module import RunModule

COUNT = 40
RERAG, DRRAG = "other_recall_1", "other_auc"


class Scorer(nn.Module):
    """An estimator and a classifier that scores a text and passages by a function, and notes what it was asked."""

    inference_dtype: torch.dtype | None = None

    def __init__(self, score: Callable[..., float]) -> None:
        super().__init__()
        self.network, self.score = SimpleNamespace(device=torch.device("cpu")), score
        self.asked: list[tuple[Any, ...]] = []
        self.states: list[tuple[bool, torch.dtype | None]] = []

    def scores(self, rows: Sequence[tuple[Any, ...]], tokens: int | None) -> list[float]:
        """One score per row."""
        self.asked += rows
        self.states.append((self.training, self.inference_dtype))
        return [self.score(*row) for row in rows]

    probabilities = scores


def words(_: str, *passages: Passage) -> int:
    return sum(len(passage.text.split()) for passage in passages)


def named(text: str, *passages: Passage) -> int:
    """How many of the passages hold the name that the question ends with."""
    return sum(text.split()[-1] in passage.text.split() for passage in passages)


def question(number: int) -> Question:
    """A question with two gold passages, of five words in three of four questions and else of three, and one more of
    four words; only the gold ones name what is asked."""
    name, filler = f"name{number}", "was born in" if number % 4 else "was"
    gold = [Passage.of("", f"{side} {name} {filler}") for side in ("director", "film")]
    other = Passage.of("", f"the city number{number} is")
    return Question(f"q{number}", f"where is {name}", (name,), (other, *gold), tuple(each.id for each in gold))


def contexts(of: Question) -> ContextSet:
    return ContextSet(of, of.passages, (False, True, True), of.answers[0])


def triples(of: Question) -> list[Triple]:
    """A positive one, of ten words or of six, and two of eight words on average: of nine and of seven."""
    other, *gold = of.passages
    return [Triple(of, *gold, "gold_gold"), Triple(of, gold[0], other, "gold_noise")]


def bench(module: RunModule, precision: str = "32-true", **data: Any) -> None:
    module.trainer = bench = Bench(module)
    bench.precision, bench.datamodule = precision, SimpleNamespace(**data)


def estimator_run(scorer: nn.Module, count: int = COUNT, precision: str = "32-true") -> ReRagTrainer:
    """A trainer of an estimator, with validation sets that are drawn on request."""
    module = ReRagTrainer("model", None, loss=Loss(label_weight=1.0))
    module.estimator, module.generator = scorer, None
    asked = [question(number) for number in range(count)]
    sets = LazySequence(count, lambda place: contexts(asked[place]))
    bench(module, precision, validation_questions=asked, validation_sets=sets, tokens_per_bucket=None)
    return module


def classifier_run(scorer: nn.Module, count: int = COUNT, precision: str = "32-true") -> DrRagTrainer:
    """A trainer of a pair classifier."""
    module = DrRagTrainer("model")
    module.classifier = scorer
    drawn = [triple for number in range(count) for triple in triples(question(number))]
    bench(module, precision, validation_triples=drawn, tokens_per_validation_batch=4096)
    return module


RUNS = {RERAG: estimator_run, DRRAG: classifier_run}


def test_a_style_finds_as_much_for_another_question_as_for_its_own_and_relevance_does_not() -> None:
    # The longest context is relevant for three of four questions, whatever is asked.
    assert estimator_run(Scorer(words)).controls() == {RERAG: 0.75}
    # No context names what another question asks for: all scores tie, which counts as not found.
    assert estimator_run(Scorer(named)).controls() == {RERAG: 0}
    # Of 40 positives 30 have ten words and 10 have six; of 40 negatives 30 have nine words and 10 have seven.
    by_hand = (30 * 40) / (40 * 40)
    assert classifier_run(Scorer(words)).controls() == {DRRAG: by_hand}
    assert classifier_run(Scorer(named)).controls() == {DRRAG: 0.5}  # all tie
    own = contexts(question(3))
    assert tuple(named(own.question.text, passage) for passage in own.passages) == own.labels
    assert all(named(one.question.text, *one.texts[1:]) == 1 + one.positive for one in triples(question(3)))


@pytest.mark.parametrize(("name", "rows"), [(RERAG, 3), (DRRAG, 2)])
@pytest.mark.parametrize(("precision", "dtype"), [("32-true", torch.float32), ("bf16-mixed", torch.bfloat16)])
def test_only_the_text_is_another_question_s_scored_as_in_validation_of_at_most_200_questions(
    name, rows, precision, dtype
) -> None:
    scorer = Scorer(named)
    module = RUNS[name](scorer, MOST + 50, precision)
    module.controls()
    own = {p.id: one.text for one in map(question, range(MOST + 50)) for p in one.passages}
    texts = {own[passages[0].id]: text for text, *passages in scorer.asked}
    assert len(texts) == MOST
    assert all(text in own.values() and text != asked for asked, text in texts.items())
    assert len(scorer.asked) == MOST * rows
    assert scorer.states == [(False, dtype)]
    assert (scorer.training, scorer.inference_dtype) == (True, None)  # as before
    assert name not in module.metric_names  # so that it chooses no checkpoint


@pytest.mark.parametrize("name", RUNS)
def test_with_too_few_questions_or_no_estimator_nothing_is_measured(name, capsys) -> None:
    scorer = Scorer(named)
    assert RUNS[name](scorer, FEWEST - 1).controls() == {}
    assert capsys.readouterr().out.startswith(f"val/{name}: not measured, {FEWEST - 1} ")
    assert scorer.asked == []
    assert name in RUNS[name](scorer, FEWEST).controls()
    module = ReRagTrainer(None, "model")
    module.estimator = None
    assert module.controls() == {} == RunModule.controls(module)


@pytest.mark.parametrize("name", RUNS)
def test_neither_weights_nor_random_states_change(name, checkpoints) -> None:
    if name == RERAG:
        options = {"max_tokens": 48, "dropout": 0.5, "loss": Loss(label_weight=1.0)}
        part = ReRagTrainer(str(checkpoints["bert"]), None, **options).load().estimator
    else:
        part = DrRagTrainer(str(checkpoints["big_bird"]), 64, dropout=0.5).load().classifier
    module = RUNS[name](part)
    before = {key: value.clone() for key, value in part.state_dict().items()}
    drawn = json.dumps(RandomState.capture(), default=torch.Tensor.tolist)
    assert module.controls() == module.controls()
    assert json.dumps(RandomState.capture(), default=torch.Tensor.tolist) == drawn
    assert all(each.training for each in part.modules())
    assert_repeated(dict(part.state_dict()), before)


def write_run(system: str, place: Path, checkpoints: dict[str, Path]) -> list[str]:
    """The config and data of a tiny run with enough validation questions; its options."""
    if system == "drrag":
        layout, rows = "hotpotqa", hotpot_rows(COUNT, seed=1)
        (place / "train.json").write_text(json.dumps(hotpot_rows(12)))
        test_drrag.write_config(place, checkpoints["bert"], place / "train.json")
        options = ["--data.train", "train.json"]
    else:
        layout, rows = "fid", fid_rows(COUNT, seed=1)
        rows = [{**row, "question": f"{row['question']} {number}"} for number, row in enumerate(rows)]  # each once
        test_rerag_training.write_config(place, checkpoints["t5"])
        options = ["--model.generator", "null", "--model.loss.label_weight", "1", "--checkpoint.monitor", "val/mrr"]
    (place / "validation.json").write_text(json.dumps(rows))
    return [*options, "--data.validation", json.dumps([{"layout": layout, "path": "validation.json"}])]


@pytest.mark.whole_run
@pytest.mark.parametrize(("system", "name"), [("drrag", DRRAG), ("rerag", RERAG)])
def test_a_run_logs_and_exports_it_once_also_when_it_ends_again(
    system, name, tmp_path, checkpoints, monkeypatch
) -> None:
    options = write_run(system, use(tmp_path, monkeypatch), checkpoints)

    def ended(*extra: str) -> float:
        folder = fit("tiny", *options, *extra)
        steps = checkpoint_of(folder, "last.ckpt")["global_step"]
        ((step, value),) = [(row["step"], row[f"val/{name}"]) for row in metrics(folder) if f"val/{name}" in row]
        assert step == steps  # after the last step: no other row has it
        exported = json.loads((folder / "serving/serving.json").read_text())["validation"]
        assert exported[name] == value
        assert f"{name} {value:.4g}" in (folder / "serving/README.md").read_text().replace("\\", "")
        for file in ("best.ckpt", "last.ckpt"):
            assert name not in checkpoint_of(folder, file)["validation_facts"]
        return value

    steps = ("--trainer.val_check_interval", "1", "--trainer.max_steps")
    first = ended(*steps, "2")
    shutil.rmtree("checkpoints/tiny/serving")
    assert ended(*steps, "2", "--resume", "auto") == first  # which trains nothing
    ended(*steps, "4", "--resume", "auto")


@pytest.mark.whole_run
def test_several_processes_measure_the_same_as_one(tmp_path, checkpoints, monkeypatch) -> None:
    options = write_run("drrag", use(tmp_path, monkeypatch), checkpoints)
    options += ["--model.dropout", "0", "--trainer.max_epochs", "1"]
    strategies = [["--name", "ddp"], ["--name", "fsdp2", "--trainer.strategy", "fsdp2"]]
    fit_in_turn(tmp_path, [[*options, *each] for each in strategies])
    folders = [fit("alone", *options), Path("checkpoints/ddp"), Path("checkpoints/fsdp2")]
    alone, *others = (json.loads((each / "serving/serving.json").read_text())["validation"][DRRAG] for each in folders)
    assert others == pytest.approx([alone, alone], abs=1e-3)  # of 40 questions' triples: a rounding may swap two


RNG = np.random.default_rng(0)
LABELS = np.arange(400) % 5 == 0  # one in five, as in DR-RAG's validation
ENTROPY = 400 * -(0.2 * np.log(0.2) + 0.8 * np.log(0.8))


def scores(separation: float) -> np.ndarray:
    """Log-odds whose means differ by so many standard deviations between the labels, at the scale of P(label)."""
    return separation * (RNG.normal(size=400) + separation * LABELS)


@pytest.mark.parametrize("separation", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("level", [-4.0, 0.0, 9.0])
@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_the_share_of_the_labels_that_scores_explain_by_brute_force(separation, level, scale) -> None:
    given = scale * scores(separation) + level

    def nats(weights: np.ndarray) -> float:
        return -np.log(expit(np.where(LABELS, 1, -1) * (weights[0] * given + weights[1]))).sum()

    best = minimize(nats, [0.1 / scale, -level / scale], bounds=[(0, 1), (None, None)], tol=1e-12).fun
    gain = explained([(given, LABELS)]) * ENTROPY + CHANCE_NATS
    assert 0.95 * (ENTROPY - best) - 1e-6 <= gain <= ENTROPY - best + 1e-6  # the scales that are tried lie apart


def test_what_explains_nothing() -> None:
    ranked = LABELS * 0.01  # a perfect order, but hardly a difference: what a network gives whose features have died
    for nothing in (np.zeros(400), np.full(400, 7.0), RNG.normal(size=400), -5.0 * LABELS, ranked):
        assert doubts({"explained": explained([(nothing, LABELS)])})
    assert not doubts({"explained": explained([(2000.0 * LABELS - 1000, LABELS)])})
    assert explained([(300.0 * LABELS, LABELS)]) == pytest.approx(1 - CHANCE_NATS / ENTROPY, abs=1e-3)


def test_groups_have_their_own_constants_and_one_without_both_labels_is_left_out() -> None:
    other = ~LABELS  # a strategy that helps four of five: a constant for both would explain nothing of it
    together = explained([(100.0 * LABELS, LABELS), (np.zeros(400), other), (np.zeros(9), np.ones(9))])
    assert together == pytest.approx((1 - 2 * CHANCE_NATS / ENTROPY) / 2, abs=0.01)
    assert np.isnan(explained([(np.zeros(9), np.ones(9)), ([], [])]))


DOUBTED = [
    {"explained": 0.0021, "auc": 0.56},
    {"explained": float("nan")},
    {"loss_drop": 0.004, "f1": 0.3},
    {"loss_drop": -0.2},
    {"unchanged": 0.97},
    {"empty": 1.0},
    {"refused_answerable": 1.0, "explained": 0.3},
]
GOOD = [{"explained": 0.02}, {"loss_drop": 0.5}, {"unchanged": 0.9, "empty": 0.1}, {"refused_answerable": 0.04}, {}]


def test_what_is_told_of_a_validation() -> None:
    for figures in DOUBTED:
        (told,) = doubts(figures)
        assert f"val/{next(iter(figures))} " in told
    assert not any(map(doubts, GOOD))
    assert len(doubts(dict.fromkeys(RULES, float("nan")))) == len(RULES)  # every rule that is broken
