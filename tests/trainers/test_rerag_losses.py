"""RE-RAG's losses and mixtures: hand-worked values, plain Python in double precision, errors."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from models.rerag.marginal_likelihood import log_generated, log_joint, log_prior
from tests.helpers.loss_cases import ALL2, LN2, LN3, LOSSES, batches, every_loss, row, sets, tensors
from trainers.rerag_losses import estimator_loss, generation_loss, label_loss, token_loss

pytestmark = pytest.mark.numeric
ALL3 = torch.ones(3, dtype=torch.bool)

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
    # P(one of the two words) = 1/2 and 1/4: P("true") = 3/8, P("false") = 1/8
    spoken = label_loss(relevance, labels, ALL2, "vocabulary", other_logit_BN=row(0, LN3))
    assert spoken.item() == pytest.approx((math.log(8 / 3) + math.log(8) / 8) / 2)
    with pytest.raises(ValueError, match="needs the logits of all other tokens"):
        label_loss(relevance, labels, ALL2, "vocabulary")
    assert label_loss(relevance, labels, ALL2, "listwise").item() == pytest.approx(math.log(4 / 3))
    assert label_loss(relevance, labels | True, ALL2, "listwise").item() == pytest.approx(0, abs=1e-12)
    assert label_loss(relevance, labels & False, ALL2, "listwise").item() == 0


def test_a_grade_is_a_soft_target() -> None:
    relevance, grades = row(LN3, 0), torch.tensor([[0.5, 1.0]])  # P_RE = (3/4, 1/4)
    # P(true) = 3/4: half of -ln 3/4 and half of -ln 1/4;  P(true) = 1/2: ln 2
    expected = ((math.log(4 / 3) + math.log(4)) / 2 + LN2) / 2
    assert label_loss(relevance, grades, ALL2).item() == pytest.approx(expected)
    assert label_loss(relevance, grades, ALL2, "listwise").item() == pytest.approx(-math.log(0.5 * 0.75 + 0.25))
    better = label_loss(row(0, LN3), grades, ALL2, "listwise")
    assert better < label_loss(relevance, grades, ALL2, "listwise")


def test_mixtures_by_hand() -> None:
    relevance = torch.tensor([LN3, 0.0, 0.0])  # P_RE = 3/5, 1/5, 1/5
    mass = log_joint(relevance, log_generated(["b", "a", "b"], ["b", "a"]), ALL3).logsumexp(dim=1)
    torch.testing.assert_close(mass.exp(), torch.tensor([0.8, 0.2]))
    scored = torch.tensor([[0.5, 0.5, 1.0], [0.125, 0.5, 0.5]]).log()
    torch.testing.assert_close(log_joint(relevance, scored, ALL3).logsumexp(1).exp(), torch.tensor([0.6, 0.275]))
    generated = torch.tensor([[0.5, 0.0, 1.0], [0.0, 0.5, 0.0]]).log()  # b from contexts 1 and 3, a from context 2
    torch.testing.assert_close(log_joint(relevance, generated, ALL3).logsumexp(1).exp(), torch.tensor([0.5, 0.1]))
    absent = log_joint(relevance, generated, torch.tensor([True, True, False])).logsumexp(1)
    torch.testing.assert_close(absent.exp(), torch.tensor([0.375, 0.125]))
    torch.testing.assert_close(log_prior(relevance[None], torch.tensor([[True, False, True]])).exp()[0, ::2],
                               torch.tensor([0.75, 0.25]))  # fmt: skip


# --- plain Python in double precision


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
    if name == "label vocabulary":  # three tokens: "true", "false" and another, whose logits are s, 0 and a
        spoken = [log_softmax([s, 0.0, a])[0 if t else 1] for s, a, t in zip(scores, answers, true, strict=True)]
        return -sum(logp if t else logp / 8 for logp, t in zip(spoken, true, strict=True)) / len(true)
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
def test_every_loss_equals_plain_loops(name, questions) -> None:
    losses = LOSSES[name](*tensors(questions))
    assert losses.tolist() == pytest.approx([brute(name, contexts) for contexts in questions], rel=1e-9, abs=1e-9)
    assert (losses >= -1e-9).all()


@given(sets, st.data())
@settings(max_examples=30)
def test_marginals_equal_plain_loops(contexts, data) -> None:
    relevance = torch.tensor([score for score, _ in contexts], dtype=torch.float64)
    prior = softmax(relevance.tolist())
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


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "tok"])
def test_a_question_without_contexts_is_refused(name) -> None:
    with pytest.raises(ValueError, match=r"questions \[1\] of the batch have no context"):
        LOSSES[name](torch.zeros(2, 2), torch.zeros(2, 2), torch.tensor([[True, True], [False, False]]))


@every_loss
def test_shapes_must_agree(name) -> None:
    with pytest.raises(ValueError, match="must have one shape"):  # (2, 1) would broadcast
        LOSSES[name](torch.zeros(2, 1), torch.zeros(2, 1), torch.ones(2, 2, dtype=torch.bool))
    if name != "tok":
        with pytest.raises(ValueError, match="must have one shape"):
            LOSSES[name](torch.zeros(2, 2), torch.zeros(2, 1), torch.ones(2, 2, dtype=torch.bool))
