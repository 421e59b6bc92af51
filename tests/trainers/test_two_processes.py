"""Two processes (DDP over gloo) train every kind of model, with every checkpointing option, as one process does."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from models.cross_encoder import RelevanceEstimator
from models.drrag.triple_classifier import TripleClassifier
from tests.helpers.recorder import HARDLY, RECORDED, assert_same_steps
from tests.helpers.runs import assert_same_logs, fit_here, fit_in_turn, metrics
from tests.trainers import test_drrag, test_rerag_training

ESTIMATORS = ("t5", "bert", "big_bird", "roberta", "longformer")
CLASSIFIERS = ("bert", "roberta", "big_bird", "longformer")
ALIKE = (
    *RECORDED, "--trainer.max_steps", "3", "--trainer.limit_val_batches", "0", "--model.optimizer.learning_rate",
    HARDLY,
)  # fmt: skip
CHECKPOINTING = ("none", "gradient_checkpointing", "bucket_checkpointing")


def untrained(network: torch.nn.Module, loss: Tensor) -> list[str]:
    """Parameters that are to be trained and get no gradient: DDP waits for it and fails at the second step."""
    loss.backward()
    return [name for name, p in network.named_parameters() if p.requires_grad and p.grad is None]


@pytest.mark.parametrize("family", ESTIMATORS)
def test_every_trained_parameter_of_an_estimator_gets_a_gradient(checkpoints, family) -> None:
    estimator = RelevanceEstimator.build(str(checkpoints[family]), 48).train()
    ids, ones = torch.full((2, 32), 6), torch.ones(2, 32, dtype=torch.long)
    assert untrained(estimator, estimator(ids, ones).score_P.sum()) == []


@pytest.mark.parametrize("attention", ["fused", "full", "block_sparse"])
@pytest.mark.parametrize("family", CLASSIFIERS)
def test_every_trained_parameter_of_a_classifier_gets_a_gradient(checkpoints, family, attention) -> None:
    if attention == "block_sparse" and family in ("big_bird", "longformer"):
        pytest.skip("too few positions for block-sparse attention, or another kind of attention")
    classifier = TripleClassifier.build(str(checkpoints[family]), 48, attention).train()
    ids, ones = classifier.pad([[6] * 32] * 2)
    assert untrained(classifier, classifier(ids, ones).sum()) == []


def same_as_one_process(folder: Path, runs: dict[str, tuple[str, ...]], one: tuple[str, ...], rows: int) -> None:
    """Train in this process with the options of `one`, by two processes with those of `runs`, and compare."""
    fit_here(folder, "--name", "one", *one)
    fit_in_turn(folder, [["--name", name, *one, *options] for name, options in runs.items()])
    for name in runs:
        assert_same_logs(metrics(folder, name), metrics(folder, "one"), relative=1e-5)  # L_re is a small difference
        assert_same_steps(folder / "checkpoints" / name, folder / "checkpoints/one", rows)


def option(checkpointing: str) -> tuple[str, ...]:
    """The option of a trainer that recomputes activations."""
    return () if checkpointing == "none" else (f"--model.{checkpointing}", "true")


@pytest.mark.slow
@pytest.mark.parametrize("family", ESTIMATORS)
def test_estimators(tmp_path, checkpoints, family) -> None:
    test_rerag_training.write_config(tmp_path, checkpoints["t5"], dropout=0.0)
    one = (*ALIKE, "--model.estimator", str(checkpoints[family]))
    same_as_one_process(tmp_path, {each: option(each) for each in CHECKPOINTING}, one, rows=8 * 4)


@pytest.mark.slow
@pytest.mark.parametrize("family", CLASSIFIERS)
def test_classifiers(tmp_path, checkpoints, hotpot_file, family) -> None:
    test_drrag.write_config(tmp_path, checkpoints[family], hotpot_file, dropout=0.0)
    one = (*ALIKE, "--model.optimizer.head_learning_rate", HARDLY)
    same_as_one_process(tmp_path, {each: option(each) for each in CHECKPOINTING[:2]}, one, rows=500 // 20)
