"""RE-RAG's losses and mixtures: hand-worked values, float64 loops, gradients, invariances."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from models.mixture import fast_marginal, log_mixture, log_prior, thorough_marginal
from trainers.rerag_losses import estimator_loss, generation_loss, label_loss, token_loss

LN2, LN3 = math.log(2), math.log(3)
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
# Every loss as a function of (scores, answer log-probabilities, mask); the labels are "the answer is likelier than not".
LOSSES: dict[str, Loss] = {
    "gen marginal": lambda r, a, m: generation_loss(r, a, m, "marginal"),
    "gen per_context": lambda r, a, m: generation_loss(r, a, m, "per_context"),
    "re generator_to_estimator": lambda r, a, m: estimator_loss(r, a, m, "generator_to_estimator"),
    "re estimator_to_generator": lambda r, a, m: estimator_loss(r, a, m, "estimator_to_generator"),
    "tok": lambda r, a, m: token_loss(r.sigmoid(), m),
    "label pointwise": lambda r, a, m: label_loss(r, a > -LN2, m, "pointwise"),
    "label listwise": lambda r, a, m: label_loss(r, a > -LN2, m, "listwise"),
}
SHIFT_FREE = [name for name in LOSSES if name not in ("tok", "label pointwise")]
every_loss = pytest.mark.parametrize("name", LOSSES)


def row(*values: float) -> Tensor:
    return torch.tensor([values], dtype=torch.float64)


ALL2 = torch.ones(1, 2, dtype=torch.bool)


# --- hand-worked values: P_RE = (3/4, 1/4), P_G = (1/2, 1/6), so Q_G = (3/4, 1/4) too


def test_losses_by_hand() -> None:
    relevance, answer = row(LN3, 0), row(-LN2, -math.log(6))
    # 3/4 * 1/2 + 1/4 * 1/6 = 5/12;  (3/4 * 1/2) * (1/4 * 1/6) = 1/64
    assert generation_loss(relevance, answer, ALL2).item() == pytest.approx(math.log(12 / 5))
    assert generation_loss(relevance, answer, ALL2, "per_context").item() == pytest.approx(math.log(64))
    for direction in ("generator_to_estimator", "estimator_to_generator"):
        assert estimator_loss(relevance, answer, ALL2, direction).item() == pytest.approx(0, abs=1e-12)


def test_the_two_directions_by_hand() -> None:
    relevance, answer = row(LN3, 0), row(-LN2, -LN2)  # P = (3/4, 1/4), Q = (1/2, 1/2)
    q_from_p = 0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)
    p_from_q = 0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.5)
    assert q_from_p != pytest.approx(p_from_q, rel=1e-2)
    assert estimator_loss(relevance, answer, ALL2).item() == pytest.approx(q_from_p)  # the released code's: KL(Q || P)
    assert estimator_loss(relevance, answer, ALL2, "estimator_to_generator").item() == pytest.approx(p_from_q)


def test_token_and_label_losses_by_hand() -> None:
    assert token_loss(row(0.25, 0.5), ALL2).item() == 0.75
    relevance, labels = row(LN3, 0), torch.tensor([[True, False]])
    # -ln sigmoid(ln 3) = ln 4/3;  -ln (1 - sigmoid(0)) = ln 2, an eighth of it;  mean of two
    assert label_loss(relevance, labels, ALL2).item() == pytest.approx((math.log(4 / 3) + LN2 / 8) / 2)
    assert label_loss(relevance, labels, ALL2, false_weight=1).item() == pytest.approx((math.log(4 / 3) + LN2) / 2)
    assert label_loss(relevance, labels, ALL2, "listwise").item() == pytest.approx(math.log(4 / 3))
    assert label_loss(relevance, labels | True, ALL2, "listwise").item() == pytest.approx(0, abs=1e-12)
    assert label_loss(relevance, labels & False, ALL2, "listwise").item() == 0


def test_mixtures_by_hand() -> None:
    relevance = torch.tensor([LN3, 0.0, 0.0])  # P_RE = 3/5, 1/5, 1/5
    distinct, mass = fast_marginal(relevance, ["b", "a", "b"])
    assert distinct == ["b", "a"]
    torch.testing.assert_close(mass.exp(), torch.tensor([0.8, 0.2]))
    scored = torch.tensor([[0.5, 0.5, 1.0], [0.125, 0.5, 0.5]]).log()
    torch.testing.assert_close(thorough_marginal(relevance, scored).exp(), torch.tensor([0.6, 0.275]))
    torch.testing.assert_close(log_prior(relevance[None], torch.tensor([[True, False, True]])).exp()[0, ::2],
                               torch.tensor([0.75, 0.25]))  # fmt: skip


# --- plain Python in double precision

sets = st.lists(st.tuples(st.floats(-20, 20), st.floats(-40, 0)), min_size=1, max_size=7)
batches = st.lists(sets, min_size=1, max_size=4)
Sets = list[list[tuple[float, float]]]


def tensors(questions: Sets, width: int = 0, junk: float = 0.0, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """Ragged sets as (scores, answer log-probabilities, mask); `junk` fills the padding."""
    N = max(width, *map(len, questions))
    relevance_BN, answer_BN = (torch.full((len(questions), N), junk, dtype=dtype) for _ in range(2))
    real_BN = torch.zeros(len(questions), N, dtype=torch.bool)
    for b, contexts in enumerate(questions):
        for j, (score, logp) in enumerate(contexts):
            relevance_BN[b, j], answer_BN[b, j], real_BN[b, j] = score, logp, True
    return [relevance_BN, answer_BN, real_BN]


def softmax(values: list[float]) -> list[float]:
    top = max(values)
    return [math.exp(v - top) / sum(math.exp(w - top) for w in values) for v in values]


def log_softmax(values: list[float]) -> list[float]:
    top = max(values)
    return [v - top - math.log(sum(math.exp(w - top) for w in values)) for v in values]


def brute(name: str, contexts: list[tuple[float, float]]) -> float:
    scores, answers = [s for s, _ in contexts], [a for _, a in contexts]
    log_p, log_q = log_softmax(scores), log_softmax(answers)
    true = [a > -LN2 for a in answers]
    if name == "gen marginal":
        return -math.log(sum(math.exp(p + a) for p, a in zip(log_p, answers, strict=True)))
    if name == "gen per_context":
        return -sum(p + a for p, a in zip(log_p, answers, strict=True))
    if name == "re generator_to_estimator":
        return sum(math.exp(q) * (q - p) for p, q in zip(log_p, log_q, strict=True))
    if name == "re estimator_to_generator":
        return sum(math.exp(p) * (p - q) for p, q in zip(log_p, log_q, strict=True))
    if name == "tok":
        return sum(1 / (1 + math.exp(-s)) for s in scores)
    if name == "label pointwise":
        losses = [
            math.log1p(math.exp(-s)) if t else math.log1p(math.exp(s)) / 8 for s, t in zip(scores, true, strict=True)
        ]
        return sum(losses) / len(losses)
    if not any(true):
        return 0.0
    return -math.log(sum(p for p, t in zip(softmax(scores), true, strict=True) if t))


@every_loss
@given(questions=batches)
@settings(max_examples=30)
def test_every_loss_equals_plain_loops(name: str, questions: Sets) -> None:
    losses = LOSSES[name](*tensors(questions))
    assert losses.tolist() == pytest.approx([brute(name, contexts) for contexts in questions], rel=1e-9, abs=1e-9)
    assert (losses >= -1e-9).all()


@given(sets, st.data())
@settings(max_examples=30)
def test_marginals_equal_plain_loops(contexts: list[tuple[float, float]], data: st.DataObject) -> None:
    relevance = torch.tensor([score for score, _ in contexts], dtype=torch.float64)
    prior = softmax(relevance.tolist())
    answers = [data.draw(st.sampled_from(["a", "b", "", "a b"])) for _ in contexts]
    distinct, mass = fast_marginal(relevance, answers)
    expected: dict[str, float] = {}
    for answer, share in zip(answers, prior, strict=True):
        expected[answer] = expected.get(answer, 0) + share
    assert dict(zip(distinct, mass.exp().tolist(), strict=True)) == pytest.approx(expected, rel=1e-9)
    assert distinct == list(expected)
    scored = torch.randn(3, len(contexts), dtype=torch.float64).sigmoid().log()
    sums = [sum(p * math.exp(a) for p, a in zip(prior, scores, strict=True)) for scores in scored.tolist()]
    assert thorough_marginal(relevance, scored).exp().tolist() == pytest.approx(sums, rel=1e-9)


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
def test_padding_changes_nothing(name: str, junk: float, questions: Sets) -> None:
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
def test_order_and_company_change_nothing(name: str, questions: Sets, seed: int) -> None:
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
def test_the_level_of_the_scores_is_not_identified(name: str, questions: Sets, shift: float) -> None:
    relevance, answer, real = tensors(questions)
    torch.testing.assert_close(
        LOSSES[name](relevance + shift, answer, real), LOSSES[name](relevance, answer, real), atol=1e-9, rtol=1e-9
    )


@pytest.mark.parametrize("name", ["tok", "label pointwise"])
def test_other_losses_see_the_level(name: str) -> None:
    relevance, answer, real = row(1, 0), row(-0.1, -3), ALL2
    assert LOSSES[name](relevance + 1, answer, real).item() != pytest.approx(
        LOSSES[name](relevance, answer, real).item()
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
def test_who_learns(name: str, estimator: bool, generator: bool) -> None:
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


@pytest.mark.parametrize("direction", ["generator_to_estimator", "estimator_to_generator"])
def test_the_estimator_learns_the_generators_preference(direction: str) -> None:
    relevance, answer = torch.zeros(1, 3, dtype=torch.float64, requires_grad=True), row(-0.5, -2.0, -4.0)
    real = torch.ones(1, 3, dtype=torch.bool)
    for _ in range(2000):
        (gradient,) = torch.autograd.grad(estimator_loss(relevance, answer, real, direction).sum(), relevance)
        relevance = (relevance - 1.0 * gradient).detach().requires_grad_()
    torch.testing.assert_close(relevance.softmax(1), answer.softmax(1), atol=1e-4, rtol=0)


@given(st.lists(st.floats(-8, 8), min_size=2, max_size=6), st.lists(st.floats(-20, 0), min_size=6, max_size=6))
@settings(max_examples=30)
def test_the_printed_form_flattens_the_estimator(scores: list[float], answers: list[float]) -> None:
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
def test_extreme_values_stay_finite(name: str, dtype: torch.dtype) -> None:
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
    assert relevance.grad is not None
    assert (relevance.grad == 0).all()


@pytest.mark.parametrize("name", SHIFT_FREE)
def test_one_context_teaches_the_estimator_nothing_but_the_generator(name: str) -> None:
    loss, by_score, _ = value_and_gradients(LOSSES[name], row(3.0), row(-0.4), ALL2[:, :1])
    assert loss.item() == pytest.approx(0.4 if name.startswith("gen") else 0, abs=1e-12)
    assert by_score.abs().item() < 1e-12


# --- errors


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "tok"])
def test_a_question_without_contexts_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"questions \[1\] of the batch have no context"):
        LOSSES[name](torch.zeros(2, 2), torch.zeros(2, 2), torch.tensor([[True, True], [False, False]]))


@every_loss
def test_shapes_must_agree(name: str) -> None:
    with pytest.raises(ValueError, match="must have one shape"):  # (2, 1) would broadcast
        LOSSES[name](torch.zeros(2, 1), torch.zeros(2, 1), torch.ones(2, 2, dtype=torch.bool))
    if name != "tok":
        with pytest.raises(ValueError, match="must have one shape"):
            LOSSES[name](torch.zeros(2, 2), torch.zeros(2, 1), torch.ones(2, 2, dtype=torch.bool))


def test_mixture_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match="must have one shape"):
        log_mixture(torch.zeros(2, 2), torch.zeros(2, 1), torch.ones(2, 2, dtype=torch.bool))
    with pytest.raises(ValueError, match="must have one shape"):
        log_prior(torch.zeros(2, 1), torch.ones(2, 2, dtype=torch.bool))
