"""Losses and validation figures: hand-worked values, brute force, invariances, who learns, numbers at the edge."""

import math
import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from common.errors import UserError
from common.records import Question
from datamodules.examples.context_sets import ContextSet
from models.metrics import auroc
from models.rerag.marginal_likelihood import log_generated, log_joint, log_prior
from models.rerag.marginal_reader import MarginalReader
from tests.conftest import NAMES
from tests.helpers.rerag_world import CROWD, generator, vary
from tests.helpers.tolerances import fp32_tolerance
from trainers.drrag import DrRagTrainer
from trainers.drrag_losses import triple_loss
from trainers.rerag_losses import estimator_loss, generation_loss, label_loss, teacher_loss, token_loss
from trainers.rerag_options import Abstention
from trainers.rerag_validation import TEMPERATURES, QuestionScores, ReadAnswer, first_hit, score_questions, summarize
from trainers.run import classification_metrics as figures

LN2, LN3 = math.log(2), math.log(3)
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
# Every loss as a function of (scores, answer log-probabilities, mask); the labels are "the answer is likelier than
# not".
LOSSES: dict[str, Loss] = {
    "gen marginal": lambda r, a, m: generation_loss(r, a, m, "marginal"),
    "gen per_context": lambda r, a, m: generation_loss(r, a, m, "per_context"),
    "re generator_to_estimator": lambda r, a, m: estimator_loss(r, a, m, "generator_to_estimator"),
    "re estimator_to_generator": lambda r, a, m: estimator_loss(r, a, m, "estimator_to_generator"),
    "tok": lambda r, a, m: token_loss(r.sigmoid(), m),
    "label pointwise": lambda r, a, m: label_loss(r, a > -LN2, m, "pointwise"),
    "label vocabulary": lambda r, a, m: label_loss(r, a > -LN2, m, "vocabulary", 0.125, a - F.softplus(r)),
    "label listwise": lambda r, a, m: label_loss(r, a > -LN2, m, "listwise"),
    "teacher": lambda r, a, m: teacher_loss(r, torch.where(a < -20, torch.nan, a), m, 2.0),
}
SHIFT_FREE = [name for name in LOSSES if name not in ("tok", "label pointwise", "label vocabulary")]
every_loss = pytest.mark.parametrize("name", LOSSES)


def row(*values: float) -> Tensor:
    """One question with as many contexts as values."""
    return torch.tensor([values], dtype=torch.float64)


ALL2 = torch.ones(1, 2, dtype=torch.bool)

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


pytestmark = pytest.mark.numeric

# --- hand-worked values: P_RE = (3/4, 1/4), P_G = (1/2, 1/6), so Q_G = (3/4, 1/4) too


def test_losses_by_hand() -> None:
    relevance, answer = row(LN3, 0), row(-LN2, -math.log(6))
    # 3/4 * 1/2 + 1/4 * 1/6 = 5/12;  (3/4 * 1/2) * (1/4 * 1/6) = 1/64
    assert generation_loss(relevance, answer, ALL2).item() == pytest.approx(math.log(12 / 5))
    assert generation_loss(relevance, answer, ALL2, "per_context").item() == pytest.approx(math.log(64))
    for direction in ("generator_to_estimator", "estimator_to_generator"):
        assert estimator_loss(relevance, answer, ALL2, direction).item() == pytest.approx(0, abs=1e-12)
    answer = row(-LN2, -LN2)  # P = (3/4, 1/4), Q = (1/2, 1/2)
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
    # P(one of the two words) = 1/2 and 1/4: P("true") = 3/8, P("false") = 1/8
    spoken = label_loss(relevance, labels, ALL2, "vocabulary", other_logit_BN=row(0, LN3))
    assert spoken.item() == pytest.approx((math.log(8 / 3) + math.log(8) / 8) / 2)
    with pytest.raises(ValueError, match="needs the logits of all other tokens"):
        label_loss(relevance, labels, ALL2, "vocabulary")
    assert label_loss(relevance, labels, ALL2, "listwise").item() == pytest.approx(math.log(4 / 3))
    assert label_loss(relevance, labels | True, ALL2, "listwise").item() == pytest.approx(0, abs=1e-12)
    assert label_loss(relevance, labels & False, ALL2, "listwise").item() == 0
    for form in ("pointwise", "vocabulary", "listwise"):  # a question without labels
        assert label_loss(relevance, row(-1, -1), ALL2, form, other_logit_BN=row(0, LN3)).item() == 0
    # a grade is a soft target: P_RE = (3/4, 1/4)
    grades = torch.tensor([[0.5, 1.0]])
    # P(true) = 3/4: half of -ln 3/4 and half of -ln 1/4;  P(true) = 1/2: ln 2
    expected = ((math.log(4 / 3) + math.log(4)) / 2 + LN2) / 2
    assert label_loss(relevance, grades, ALL2).item() == pytest.approx(expected)
    assert label_loss(relevance, grades, ALL2, "listwise").item() == pytest.approx(-math.log(0.5 * 0.75 + 0.25))
    better = label_loss(row(0, LN3), grades, ALL2, "listwise")
    assert better < label_loss(relevance, grades, ALL2, "listwise")


def test_mixtures_by_hand() -> None:
    relevance, every = torch.tensor([LN3, 0.0, 0.0]), torch.ones(3, dtype=torch.bool)  # P_RE = 3/5, 1/5, 1/5
    mass = log_joint(relevance, log_generated(["b", "a", "b"], ["b", "a"]), every).logsumexp(dim=1)
    torch.testing.assert_close(mass.exp(), torch.tensor([0.8, 0.2]))
    scored = torch.tensor([[0.5, 0.5, 1.0], [0.125, 0.5, 0.5]]).log()
    torch.testing.assert_close(log_joint(relevance, scored, every).logsumexp(1).exp(), torch.tensor([0.6, 0.275]))
    generated = torch.tensor([[0.5, 0.0, 1.0], [0.0, 0.5, 0.0]]).log()  # b from contexts 1 and 3, a from context 2
    torch.testing.assert_close(log_joint(relevance, generated, every).logsumexp(1).exp(), torch.tensor([0.5, 0.1]))
    absent = log_joint(relevance, generated, torch.tensor([True, True, False])).logsumexp(1)
    torch.testing.assert_close(absent.exp(), torch.tensor([0.375, 0.125]))
    torch.testing.assert_close(log_prior(relevance[None], torch.tensor([[True, False, True]])).exp()[0, ::2],
                               torch.tensor([0.75, 0.25]))  # fmt: skip


# --- plain Python in double precision


def log_softmax(values: list[float]) -> list[float]:
    top = max(values)
    return [v - top - math.log(sum(math.exp(w - top) for w in values)) for v in values]


def brute(name: str, contexts: list[tuple[float, float]]) -> float:
    scores, answers = [s for s, _ in contexts], [a for _, a in contexts]
    log_p, log_q = log_softmax(scores), log_softmax(answers)
    rows = [(p, q, s, a, a > -LN2) for p, q, (s, a) in zip(log_p, log_q, contexts, strict=True)]
    # three tokens: "true", "false" and another, whose logits are s, 0 and a
    spoken = [(log_softmax([s, 0.0, a])[0 if true else 1], true) for _, _, s, a, true in rows]
    relevant = sum(math.exp(p) for p, *_, true in rows if true)
    known = [each for each in contexts if each[1] >= -20]
    taught = [s for s, _ in known], [a / 2 for _, a in known]
    return {
        "gen marginal": -math.log(sum(math.exp(p + a) for p, _, _, a, _ in rows)),
        "gen per_context": -sum(p + a for p, _, _, a, _ in rows),
        "re generator_to_estimator": sum(math.exp(q) * (q - p) for p, q, *_ in rows),
        "re estimator_to_generator": sum(math.exp(p) * (p - q) for p, q, *_ in rows),
        "tok": sum(1 / (1 + math.exp(-s)) for s in scores),
        "label vocabulary": -sum(logp if true else logp / 8 for logp, true in spoken) / len(rows),
        "label pointwise": sum(math.log1p(math.exp(-s if t else s)) / (1 if t else 8) for *_, s, _, t in rows)
        / len(rows),
        "label listwise": -math.log(relevant) if relevant else 0.0,
        "teacher": sum(math.exp(q) * (q - p) for p, q in zip(*map(log_softmax, taught), strict=True)) if known else 0.0,
    }[name]


@every_loss
@given(questions=batches)
@settings(max_examples=30)
def test_every_loss_equals_plain_loops(name, questions) -> None:
    losses = LOSSES[name](*tensors(questions))
    assert losses.tolist() == pytest.approx([brute(name, contexts) for contexts in questions], rel=1e-9, abs=1e-9)
    assert (losses >= -1e-9).all()


@given(sets, st.data())
@settings(max_examples=30)
def test_marginals_equal_plain_loops(contexts, data) -> None:
    relevance = torch.tensor([score for score, _ in contexts], dtype=torch.float64)
    prior = [math.exp(logp) for logp in log_softmax(relevance.tolist())]
    answers = [data.draw(st.sampled_from(["a", "b", "", "a b"])) for _ in contexts]
    distinct, every = list(dict.fromkeys(answers)), torch.ones(len(contexts), dtype=torch.bool)
    mass = log_joint(relevance, log_generated(answers, distinct), every).logsumexp(dim=1)
    expected: dict[str, float] = {}
    for answer, share in zip(answers, prior, strict=True):
        expected[answer] = expected.get(answer, 0) + share
    assert dict(zip(distinct, mass.exp().tolist(), strict=True)) == pytest.approx(expected, rel=1e-9)
    scored = torch.randn(3, len(contexts), dtype=torch.float64).sigmoid().log()
    sums = [sum(p * math.exp(a) for p, a in zip(prior, scores, strict=True)) for scores in scored.tolist()]
    assert log_joint(relevance, scored, every).logsumexp(1).exp().tolist() == pytest.approx(sums, rel=1e-9)


# --- errors


@every_loss
def test_shapes_must_agree_and_every_question_needs_a_context(name) -> None:
    mask = torch.tensor([[True, True], [False, False]])
    for narrow, other in ((torch.zeros(2, 1), torch.zeros(2, 1)), (torch.zeros(2, 2), torch.zeros(2, 1))):
        if name != "tok" or len(narrow[0]) == 1:
            with pytest.raises(ValueError, match="must have one shape"):  # (2, 1) would broadcast
                LOSSES[name](narrow, other, mask | True)
    if name != "tok":
        with pytest.raises(ValueError, match=r"questions \[1\] of the batch have no context"):
            LOSSES[name](torch.zeros(2, 2), torch.zeros(2, 2), mask)


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


@pytest.mark.parametrize("name", [name for name in LOSSES if not name.startswith("label")])
def test_who_learns(name) -> None:
    relevance, answer = row(1.0, 0.0, -1.0).requires_grad_(), row(-3.0, -1.0, -2.5).requires_grad_()
    LOSSES[name](relevance, answer, torch.ones(1, 3, dtype=torch.bool)).sum().backward()
    assert relevance.grad is not None
    assert relevance.grad.abs().min() > 1e-3
    assert (answer.grad is not None) == name.startswith("gen")


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


def test_a_teachers_scores_count_over_the_temperature_and_only_where_there_are_some() -> None:
    """P_RE = (1/4, 3/4) and Q = (3/4, 1/4) over the contexts with a score: KL = (3/4 - 1/4) ln 3."""
    relevance, all3 = row(0, LN3, 7), torch.ones(1, 3, dtype=torch.bool)
    teacher = row(2 * LN3, 0, math.nan)
    assert teacher_loss(relevance, teacher, all3, 2.0).item() == pytest.approx(LN3 / 2)
    assert teacher_loss(relevance, teacher + 5, all3, 2.0).item() == pytest.approx(LN3 / 2)
    assert teacher_loss(
        relevance, row(2 * LN3, 0, 9), torch.tensor([[True, True, False]]), 2.0
    ).item() == pytest.approx(LN3 / 2)
    relevance.requires_grad_()
    silent = teacher_loss(relevance, row(math.nan, math.nan, math.nan), all3)
    silent.sum().backward()
    assert silent.item() == 0
    assert (relevance.grad == 0).all()


@pytest.mark.parametrize("name", SHIFT_FREE)
def test_one_context_teaches_the_estimator_nothing_but_the_generator(name) -> None:
    loss, by_score, _ = value_and_gradients(LOSSES[name], row(3.0), row(-0.4), ALL2[:, :1])
    assert loss.item() == pytest.approx(0.4 if name.startswith("gen") else 0, abs=1e-12)
    assert by_score.abs().item() < 1e-12


def test_validation_figures_by_hand() -> None:
    assert first_hit([3.0, 1.0, 2.0], [False, False, True]) == 1
    assert first_hit([1.0, 1.0], [True, False]) == 1  # a tie counts as badly as it can
    assert first_hit([1.0], [False]) is None
    judged = [
        QuestionScores(0, (2.0, -1.0), (True, False), (ReadAnswer("a", 1.0, 1.0),), 0.5, (-9.0, -8.0)),
        QuestionScores(1, (1.0, 3.0), (True, False), (ReadAnswer("b", 0.0, 0.5),), 1.5, (-2.0, -3.0)),
        QuestionScores(2, (-4.0,), (False,), (ReadAnswer("c", 0.0, 0.0),), 4.0, (-1.0,)),
    ]
    facts = summarize(judged, ranked=True, draw=False).metrics
    expected = {"em": 1 / 3, "f1": 0.5, "gen_nats": 2, "recall_1": 1 / 3, "recall_5": 2 / 3, "mrr": (1 + 0.5 + 0) / 3}
    expected |= {"teacher_recall_1": 1 / 3, "teacher_mrr": (0.5 + 1 + 0) / 3, "answerable_auroc": 1}
    expected["context_auroc"] = (3 + 2 + 0 * 3) / 6 - 1 / 6  # 2 beats -1, -4; 1 beats -1, -4; 3 beats both
    assert {name: facts[name] for name in expected} == pytest.approx(expected)
    places, scores = range(1, 7), (6.0, 5.0, 4.0, 3.0, 2.0, 1.0)
    deep = [
        QuestionScores(at, scores, tuple(place == at for place in places), (ReadAnswer("a", 0.0, 0.0),), 1.0, scores)
        for at in (5, 6)
    ]
    facts = summarize(deep, ranked=True, draw=False).metrics
    assert (facts["recall_5"], facts["mrr"]) == (0.5, pytest.approx((1 / 5 + 1 / 6) / 2))


def test_a_question_is_refused_by_its_best_context() -> None:
    # Every question has contexts that look hopeless; only the best one tells which question has an answer.
    answerable = [(6.0, -9.0), (-8.0, 5.5, -8.0), (5.0, -9.0)]
    unanswerable = [(-5.0, -5.5), (-5.0,), (-6.0, -5.5, -5.8)]
    every = enumerate([*answerable, *unanswerable])
    scored = [QuestionScores(row, scores, tuple(score > 0 for score in scores)) for row, scores in every]
    metrics = summarize(scored, ranked=True, draw=False).metrics
    assert metrics["refusal_f1"] == metrics["answerable_auroc"] == 1
    assert metrics["refusal_threshold"] == 0.5  # all of them separate the two kinds: the lowest

    # one more without an answer, whose best context looks better than even: P is about 0.55, that of the others above
    # 0.6
    close = [*scored, QuestionScores(6, (3.5, -9.0), (False, False))]
    summary = summarize(close, ranked=True, draw=False)
    assert summary.fitted["refusal_threshold"] == summary.metrics["refusal_threshold"] == 0.6
    assert summary.metrics["refusal_f1"] == 1


def test_the_threshold_is_chosen_among_the_contexts_that_are_kept() -> None:
    """As in Section 5.3: an answer that only a dropped context holds does not make a question answerable."""
    good = [QuestionScores(row, (5.0 + row, -9.0, -9.0), (True, False, False)) for row in range(3)]
    late = [QuestionScores(row, (3.0, -8.0, -9.0), (False, False, True)) for row in range(3, 6)]
    kept = summarize([*good, *late], ranked=True, draw=False, abstention=Abstention(2))
    assert kept.metrics["refusal_f1"] == kept.metrics["answerable_auroc"] == 1
    assert kept.metrics["refused_answerable"] == 0
    assert kept.fitted["refusal_contexts"] == 2
    assert kept.fitted["refusal_cost"] is None
    # with all three contexts every question is answerable: there is nothing to choose a threshold on
    for contexts in (3, 25):
        every = summarize([*good, *late], ranked=True, draw=False, abstention=Abstention(contexts))
        assert every.fitted.keys() == {"calibration"}
        assert "refusal_f1" not in every.metrics
        assert f"every validation question has a relevant context among its best {contexts}" in every.not_fitted
    none = summarize(late, ranked=True, draw=False, abstention=Abstention(2))
    assert "because no validation question has a relevant context among its best 2" in none.not_fitted
    silent = [replace(one, labels=(False, False, False)) for one in late]
    assert "because no validation context is relevant" in summarize(silent, ranked=True, draw=False).not_fitted


def test_a_stated_cost_chooses_the_threshold() -> None:
    """Two questions with an answer look worse than one without: by F1 they are refused, unless that costs too much."""
    scores = [(6.0, True), (5.0, True), (-1.0, True), (-1.1, True), (-0.5, False), (-6.0, False), (-7.0, False)]
    judged = [QuestionScores(row, (score, -9.0), (label, False)) for row, (score, label) in enumerate(scores)]
    by_f1 = summarize(judged, ranked=True, draw=False)
    dear = summarize(judged, ranked=True, draw=False, abstention=Abstention(cost=2.0))
    assert by_f1.metrics["refused_answerable"] == 0.5
    assert dear.metrics["refused_answerable"] == 0
    assert dear.metrics["refusal_cost_per_question"] == pytest.approx(1 / 7)  # the -0.5 is answered
    assert dear.fitted["refusal_threshold"] < by_f1.fitted["refusal_threshold"]
    assert dear.fitted["refusal_cost"] == 2


def test_the_temperature_is_the_one_that_answers_most_and_nearest_to_one_among_equals() -> None:
    right, wrong = ReadAnswer("a", 1.0, 1.0), ReadAnswer("b", 0.0, 0.25)
    reads = [(wrong, right, right, right, wrong), (right,) * 5, (wrong, wrong, right, right, right)]
    judged = [QuestionScores(row, (1.0, 0.0), (True, False), read, 1.0) for row, read in enumerate(reads)]
    summary = summarize(judged, ranked=True, draw=False)
    assert summary.temperature_index == 2  # 1, 2, 3, 3, 2 right
    assert summary.fitted["relevance_temperature"] == summary.metrics["relevance_temperature"] == TEMPERATURES[2]
    assert summary.metrics["em"] == summary.metrics["f1"] == 1
    alone = summarize([replace(one, answers=one.answers[:1]) for one in judged], ranked=True, draw=False)
    assert "relevance_temperature" not in alone.fitted  # one temperature is no choice
    assert alone.metrics["em"] == pytest.approx(1 / 3)


def test_every_temperature_reads_what_a_reader_under_those_weights_reads(checkpoints) -> None:
    reader = generator(checkpoints).eval()
    vary(reader.network, 3)
    chance = random.Random(0)
    questions = [Question(f"q{n}", f"where was {NAMES[n % 7]} born", ("x",)) for n in range(12)]
    sets = [ContextSet(q, tuple(chance.sample(CROWD, 4)), (True, False, False, False), "x") for q in questions]
    scores = torch.randn(12, 4, generator=torch.Generator().manual_seed(0)) / 2
    judged = score_questions(range(12), sets, scores, None, reader, False, True, 3, 4, fit_temperature=True)
    disagreements = 0
    for one, each, scores_N in zip(judged, sets, scores, strict=True):
        best = scores_N.argsort(descending=True)[:3].tolist()
        for read, temperature in zip(one.answers, TEMPERATURES, strict=True):
            (expected,) = MarginalReader(reader, "thorough", 4).read(
                [each.question.text], [[each.passages[n] for n in best]], [(scores_N[best] / temperature).tolist()]
            )
            assert read.text == expected.text
        disagreements += len({read.text for read in one.answers}) > 1
    assert TEMPERATURES[0] == 1  # the paper's, and the nearest to it come first: among equals the first is taken
    assert list(TEMPERATURES) == sorted(TEMPERATURES, reverse=True)
    assert disagreements  # a temperature matters


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

    def value(criterion: str, threshold: float) -> float:
        decided = scores >= threshold
        if criterion == "balanced_accuracy":
            return (decided[labels == 1].mean() + (~decided)[labels == 0].mean()) / 2
        squared = int(criterion[1]) ** 2
        return (1 + squared) * labels[decided].sum() / (decided.sum() + squared * labels.sum())

    for criterion in ("f1", "f2", "balanced_accuracy"):
        threshold, claimed = figures.best_threshold(scores, labels, criterion)
        assert claimed == pytest.approx(value(criterion, threshold))
        assert claimed == pytest.approx(max(value(criterion, t) for t in set(scores.tolist())))


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
    found_precision, found_recall = figures.precision_recall(p, y)
    assert found_precision == pytest.approx([*precision, 1.0], abs=1e-12)
    assert found_recall == pytest.approx([*recall, 0.0], abs=1e-12)
    gains = np.diff([0.0, *recall[::-1]])
    assert figures.average_precision(p, y) == pytest.approx((gains * precision[::-1]).sum(), abs=1e-12)

    bin_P = np.minimum((p * 8).astype(int), 7)  # [a, b), and 1 in the last: eighths are exact, no edge is rounded
    held = [bin_P == n for n in range(8) if (bin_P == n).any()]
    error = sum(abs(p[b].mean() - y[b].mean()) * b.sum() for b in held) / len(p)
    assert figures.expected_calibration_error(p, y, bins=8) == pytest.approx(error, abs=1e-12)
    mean, share, counts = figures.reliability(p, y, bins=8)
    assert mean == pytest.approx([p[b].mean() for b in held], abs=1e-12)
    assert share == pytest.approx([y[b].mean() for b in held], abs=1e-12)
    assert counts.tolist() == [b.sum() for b in held]

    for threshold in (0.5, p[0]):
        table = [[np.sum((y == true) & ((p >= threshold) == said)) for said in (0, 1)] for true in (0, 1)]
        assert figures.confusion(p, y, threshold).tolist() == table
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_a_validation_of_one_class_is_refused(label) -> None:
    with pytest.raises(UserError, match=r"one class only: raise --trainer\.limit_val_batches"):
        DrRagTrainer.summarize(None, [(0.5, label), (-0.5, label)])
