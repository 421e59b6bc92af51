"""RE-RAG's losses with their gradients: invariances, who learns from which term, numbers at the edge."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.helpers.loss_cases import ALL2, LOSSES, SHIFT_FREE, Loss, batches, every_loss, row, tensors
from trainers.rerag_losses import generation_loss, label_loss

pytestmark = pytest.mark.numeric

# --- invariances, gradients included


def value_and_gradients(loss: Loss, relevance: Tensor, answer: Tensor, real: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    relevance, answer = relevance.clone().requires_grad_(), answer.clone().requires_grad_()
    losses = loss(relevance, answer, real)
    by_score, by_answer = torch.autograd.grad(losses.sum(), [relevance, answer], allow_unused=True)
    zeros = torch.zeros_like(relevance)
    return losses.detach(), zeros if by_score is None else by_score, zeros if by_answer is None else by_answer


@every_loss
@pytest.mark.parametrize("junk", [1e30, -1e30, 777.0])
@given(questions=batches)
@settings(max_examples=15)
def test_padding_changes_nothing(name, junk, questions) -> None:
    plain = tensors(questions)
    padded = tensors(questions, width=9, junk=junk)
    N = plain[0].shape[1]
    losses, *gradients = value_and_gradients(LOSSES[name], *plain)
    losses_padded, *gradients_padded = value_and_gradients(LOSSES[name], *padded)
    torch.testing.assert_close(losses_padded, losses)
    for here, there in zip(gradients_padded, gradients, strict=True):
        torch.testing.assert_close(here[:, :N].where(padded[2][:, :N], 0.0), there.where(plain[2], 0.0))
        assert (here[~padded[2]] == 0).all()


@every_loss
@given(questions=batches, seed=st.integers(0, 99))
@settings(max_examples=15)
def test_order_and_company_change_nothing(name, questions, seed) -> None:
    relevance, answer, real = tensors(questions)
    losses, *gradients = value_and_gradients(LOSSES[name], relevance, answer, real)
    order = torch.randperm(relevance.shape[1], generator=torch.Generator().manual_seed(seed))
    turned, *turned_gradients = value_and_gradients(LOSSES[name], relevance[:, order], answer[:, order], real[:, order])
    torch.testing.assert_close(turned, losses)
    for here, there in zip(turned_gradients, gradients, strict=True):
        torch.testing.assert_close(here, there[:, order])
    alone = [
        value_and_gradients(LOSSES[name], *(t[b : b + 1] for t in (relevance, answer, real))) for b in range(len(real))
    ]
    torch.testing.assert_close(torch.cat([one[0] for one in alone]), losses)
    torch.testing.assert_close(torch.cat([one[1] for one in alone]), gradients[0])


@pytest.mark.parametrize("name", SHIFT_FREE)
@given(questions=batches, shift=st.floats(-50, 50))
@settings(max_examples=15)
def test_the_level_of_the_scores_is_not_identified(name, questions, shift) -> None:
    relevance, answer, real = tensors(questions)
    torch.testing.assert_close(
        LOSSES[name](relevance + shift, answer, real), LOSSES[name](relevance, answer, real), atol=1e-9, rtol=1e-9
    )


# --- who learns from which term


@pytest.mark.parametrize(
    ("name", "estimator", "generator"),
    [
        ("gen marginal", True, True),
        ("gen per_context", True, True),
        ("re generator_to_estimator", True, False),
        ("re estimator_to_generator", True, False),
        ("tok", True, False),
    ],
)
def test_who_learns(name, estimator, generator) -> None:
    relevance, answer = row(1.0, 0.0, -1.0).requires_grad_(), row(-3.0, -1.0, -2.5).requires_grad_()
    LOSSES[name](relevance, answer, torch.ones(1, 3, dtype=torch.bool)).sum().backward()
    assert bool(relevance.grad is not None and relevance.grad.abs().min() > 1e-3) is estimator
    assert (answer.grad is not None) is generator


def test_marginal_pulls_scores_towards_contexts_that_explain_the_answer() -> None:
    # d/ds_j of -log sum_j P_j G_j is P_j - posterior_j; P = 1/2, 1/2; G = 3/4, 1/4; posterior = 3/4, 1/4.
    _, by_score, by_answer = value_and_gradients(
        LOSSES["gen marginal"], row(0, 0), row(math.log(0.75), math.log(0.25)), ALL2
    )
    torch.testing.assert_close(by_score, row(-0.25, 0.25))
    torch.testing.assert_close(by_answer, row(-0.75, -0.25))  # and the generator learns most where it is likely right


@given(st.lists(st.floats(-8, 8), min_size=2, max_size=6), st.lists(st.floats(-20, 0), min_size=6, max_size=6))
@settings(max_examples=30)
def test_the_printed_form_flattens_the_estimator(scores, answers) -> None:
    """Eq. 7 as printed pulls P_RE to uniform, whatever the generator says: its gradient is N P_j - 1."""
    N = len(scores)
    relevance, answer, real = row(*scores), row(*answers[:N]), torch.ones(1, N, dtype=torch.bool)
    loss, by_score, _ = value_and_gradients(LOSSES["gen per_context"], relevance, answer, real)
    torch.testing.assert_close(by_score, N * relevance.softmax(1) - 1, atol=1e-9, rtol=0)
    uniform = generation_loss(torch.zeros_like(relevance), answer, real, "per_context")
    assert uniform.item() <= loss.item() + 1e-9
    best = relevance[0].argmax()
    after = (relevance - 0.01 * by_score).softmax(1)[0, best]
    assert after <= relevance.softmax(1)[0, best] + 1e-12


# --- numbers at the edge


@every_loss
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_values_stay_finite(name, dtype) -> None:
    relevance = torch.tensor([[1e4, -1e4, 0, 5], [-1e4, -1e4, 1e4, 1e4], [1e4, 0, 0, 0], [0, 0, 0, 0]], dtype=dtype)
    answer = torch.tensor([[-1e4, 0, -5, -1], [0, -1e4, -1e4, 0], [-1e4, 0, 0, 0], [-1e4] * 4], dtype=dtype)
    real = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0], [1, 0, 0, 0], [0, 1, 1, 1]]).bool()
    for result in value_and_gradients(LOSSES[name], relevance, answer, real):
        assert result.isfinite().all()


def test_a_question_without_a_true_context_gives_no_listwise_gradient() -> None:
    relevance, labels = row(1, 2, 3), torch.tensor([[False, False, True]])
    real = torch.tensor([[True, True, False]])  # the only true context is padding
    relevance.requires_grad_()
    loss = label_loss(relevance, labels, real, "listwise")
    loss.sum().backward()
    assert loss.item() == 0
    assert (relevance.grad == 0).all()


@pytest.mark.parametrize("name", SHIFT_FREE)
def test_one_context_teaches_the_estimator_nothing_but_the_generator(name) -> None:
    loss, by_score, _ = value_and_gradients(LOSSES[name], row(3.0), row(-0.4), ALL2[:, :1])
    assert loss.item() == pytest.approx(0.4 if name.startswith("gen") else 0, abs=1e-12)
    assert by_score.abs().item() < 1e-12
