"""The loss and the metrics against hand-worked values, brute force and scikit-learn's definitions."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from common.errors import UserError
from models.metrics import auroc
from tests.helpers.tolerances import fp32_tolerance
from trainers.drrag import DrRagTrainer
from trainers.drrag_losses import triple_loss
from trainers.run import classification_metrics as metrics

pytestmark = pytest.mark.numeric


def test_triple_loss_by_hand() -> None:
    # Scores ln 3 and 0: P(positive) = 3/4 and 1/2.  Labels 1 and 0: -ln 3/4 - ln 1/2 = ln 8/3; two triples in the step.
    loss = triple_loss(torch.tensor([math.log(3), 0.0]), torch.tensor([1.0, 0.0]), torch.ones(2), 2)
    assert loss.item() == pytest.approx(math.log(8 / 3) / 2, rel=fp32_tolerance(16))


def test_cutting_a_step_changes_neither_loss_nor_gradient() -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(7, generator=generator, dtype=torch.float64).requires_grad_()
    labels = (torch.rand(7, generator=generator) > 0.5).double()
    whole = triple_loss(scores, labels, torch.ones(7, dtype=torch.float64), 7)
    (expected,) = torch.autograd.grad(whole, scores)
    parts = [(0, 3), (3, 4), (4, 7)]
    cut = sum(triple_loss(scores[a:b], labels[a:b], torch.ones(b - a, dtype=torch.float64), 7) for a, b in parts)
    cut = cut + triple_loss(scores[:1], labels[:1], torch.zeros(1, dtype=torch.float64), 7)  # an empty part's dummy
    (gradient,) = torch.autograd.grad(cut, scores)
    assert cut.item() == pytest.approx(whole.item(), rel=1e-12)
    torch.testing.assert_close(gradient, expected)
    brute = (
        sum(math.log(1 + math.exp(-s if y else s)) for s, y in zip(scores.tolist(), labels.tolist(), strict=True)) / 7
    )
    assert whole.item() == pytest.approx(brute, rel=1e-9)


samples = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=40).filter(
    lambda rows: len({label for _, label in rows}) == 2
)


def arrays(rows: list[tuple[int, bool]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([s for s, _ in rows], dtype=float), np.array([y for _, y in rows], dtype=float)


@given(samples)
def test_auc_is_the_chance_that_a_positive_outscores_a_negative(rows) -> None:
    scores, labels = arrays(rows)
    pairs = [(p > n) + 0.5 * (p == n) for p in scores[labels == 1] for n in scores[labels == 0]]
    assert auroc(scores, labels > 0.5) == pytest.approx(np.mean(pairs))


@given(samples)
def test_the_best_threshold_beats_every_other(rows) -> None:
    scores, labels = arrays(rows)

    def f1(threshold: float) -> float:
        decided = scores >= threshold
        return 2 * labels[decided].sum() / (decided.sum() + labels.sum())

    def balanced(threshold: float) -> float:
        decided = scores >= threshold
        return (decided[labels == 1].mean() + (~decided)[labels == 0].mean()) / 2

    def f2(threshold: float) -> float:
        decided = scores >= threshold
        return 5 * labels[decided].sum() / (decided.sum() + 4 * labels.sum())

    for criterion, value in (("f1", f1), ("f2", f2), ("balanced_accuracy", balanced)):
        threshold, claimed = metrics.best_threshold(scores, labels, criterion)  # type: ignore[arg-type]
        assert claimed == pytest.approx(value(threshold))
        assert claimed == pytest.approx(max(value(t) for t in set(scores.tolist())))


# Multiples of 1/16 hit the edges of 8 bins and the threshold 0.5 exactly, and make ties; other values are arbitrary.
probabilities = st.one_of(st.integers(0, 16).map(lambda n: n / 16), st.floats(0, 1))
judged = st.lists(st.tuples(probabilities, st.booleans()), min_size=2, max_size=60).filter(
    lambda rows: any(label for _, label in rows)
)


@given(judged)
def test_torchmetrics_gives_the_written_formulas_in_float64(rows) -> None:
    p, y = arrays(rows)
    thresholds = np.unique(p)
    decided = [p >= t for t in thresholds]
    precision = [y[d].mean() for d in decided]
    recall = [y[d].sum() / y.sum() for d in decided]
    found_precision, found_recall = metrics.precision_recall(p, y)
    assert found_precision == pytest.approx([*precision, 1.0], abs=1e-12)
    assert found_recall == pytest.approx([*recall, 0.0], abs=1e-12)
    gains = np.diff([0.0, *recall[::-1]])
    assert metrics.average_precision(p, y) == pytest.approx((gains * precision[::-1]).sum(), abs=1e-12)

    bin_P = np.minimum((p * 8).astype(int), 7)  # [a, b), and 1 in the last: eighths are exact, no edge is rounded
    held = [bin_P == n for n in range(8) if (bin_P == n).any()]
    error = sum(abs(p[b].mean() - y[b].mean()) * b.sum() for b in held) / len(p)
    assert metrics.expected_calibration_error(p, y, bins=8) == pytest.approx(error, abs=1e-12)
    mean, share, counts = metrics.reliability(p, y, bins=8)
    assert mean == pytest.approx([p[b].mean() for b in held], abs=1e-12)
    assert share == pytest.approx([y[b].mean() for b in held], abs=1e-12)
    assert counts.tolist() == [b.sum() for b in held]

    for threshold in (0.5, p[0]):
        table = [[np.sum((y == true) & ((p >= threshold) == said)) for said in (0, 1)] for true in (0, 1)]
        assert metrics.confusion(p, y, threshold).tolist() == table
    assert torch.get_default_dtype() == torch.float32


def test_calibration_by_hand() -> None:
    # Bin [0.2, 0.3): 0.25 twice, one positive: |0.25 - 0.5|; bin [0.9, 1]: 1.0 once, positive: 0.  (2 * 0.25) / 3.
    probabilities, labels = np.array([0.25, 0.25, 1.0]), np.array([1.0, 0.0, 1.0])
    assert metrics.expected_calibration_error(probabilities, labels) == pytest.approx(0.5 / 3)
    mean, share, counts = metrics.reliability(probabilities, labels)
    assert (mean.tolist(), share.tolist(), counts.tolist()) == ([0.25, 1.0], [0.5, 1.0], [2, 1])


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_a_validation_of_one_class_is_refused(label) -> None:
    with pytest.raises(UserError, match=r"one class only: raise --trainer\.limit_val_batches"):
        DrRagTrainer.summarize(None, [(0.5, label), (-0.5, label)])
