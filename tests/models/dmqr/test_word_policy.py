"""The policy over words: hand-worked probabilities, and all choices of few words as the reference."""

import itertools
import math
from pathlib import Path

import pytest
import torch

from common.errors import DataError, UserError
from common.records import Passage
from models.dmqr.word_policy import WordPolicy, choice_logp, decisions_of, divergence, entropy, pooled
from models.dmqr.word_selector import WordSelector

BOTH = WordPolicy(3, 0.4, 0.1, 0.5, ("par", "hop"))
QUESTION = "Who directed the film?"
PASSAGES = [Passage.of("Lulu", "Lulu is a film by Pabst."), Passage.of("", "Pabst was born in Raudnitz.")]


def test_hand_worked_probabilities() -> None:
    log_odds_D, joins_D = torch.tensor([0.0, math.log(0.1 / 0.9), 1.0]), torch.tensor([False, True, True])
    logits_D = BOTH.logits(log_odds_D, joins_D)
    # (0 - ln(0.4 / 0.6)) / 0.5 = 0.81093: P = 0.69231 = 0.6^2 / (0.6^2 + 0.4^2); a score at its threshold: 1/2
    assert logits_D.sigmoid()[:2].tolist() == pytest.approx([0.36 / 0.52, 0.5], abs=1e-6)
    assert float(logits_D[2]) == pytest.approx((1 + math.log(9)) / 0.5, rel=1e-6)
    chosen_ND = torch.tensor([[True, True, False], [False, True, False]])
    first, second = (p * 0.5 / (1 + math.exp((1 + math.log(9)) * 2)) for p in (0.36 / 0.52, 0.16 / 0.52))
    assert choice_logp(logits_D, chosen_ND).tolist() == pytest.approx([math.log(first), math.log(second)], rel=1e-5)


def test_all_choices_of_few_words_are_the_reference() -> None:
    torch.manual_seed(0)
    logits_D, other_D = torch.randn(2, 5, dtype=torch.float64) * 2
    chosen_ND = torch.tensor(list(itertools.product([False, True], repeat=5)))
    logp_N, other_N = choice_logp(logits_D, chosen_ND), choice_logp(other_D, chosen_ND)
    assert float(logp_N.exp().sum()) == pytest.approx(1.0, abs=1e-12)
    assert float(divergence(logits_D, other_D)) == pytest.approx(float((logp_N.exp() * (logp_N - other_N)).sum()))
    assert float(entropy(logits_D)) == pytest.approx(-float((logp_N.exp() * logp_N).sum()))
    assert float(divergence(logits_D, logits_D)) == 0.0
    padding_D = torch.tensor([False, False, True, False, True])
    kept = ~padding_D
    assert float(divergence(logits_D, other_D, padding_D)) == pytest.approx(
        float(divergence(logits_D[kept], other_D[kept]))
    )
    assert float(entropy(logits_D, padding_D)) == pytest.approx(float(entropy(logits_D[kept])))
    assert float(choice_logp(logits_D, chosen_ND[9], padding_D)) == pytest.approx(
        float(choice_logp(logits_D[kept], chosen_ND[9][kept]))
    )


def test_certain_decisions_have_finite_gradients() -> None:
    logits_D = torch.tensor([200.0, -200.0], requires_grad=True)
    loss = choice_logp(logits_D, torch.tensor([True, True])) + divergence(logits_D, -logits_D) + entropy(logits_D)
    loss.backward()
    assert torch.isfinite(loss)
    assert logits_D.grad is not None
    assert torch.isfinite(logits_D.grad).all()


@pytest.fixture
def selector(checkpoints: dict[str, Path]) -> WordSelector:
    torch.manual_seed(3)
    return WordSelector.build(str(checkpoints["bert"]), 48, 0.0).eval()


@pytest.mark.parametrize("strategies", [("par", "hop"), ("par",), ("kwr", "cce"), ("kwr", "par")])
def test_pooled_log_odds_are_means_and_maxima_of_the_scores(
    selector: WordSelector, strategies: tuple[str, ...]
) -> None:
    policy = WordPolicy(3, 0.4, 0.1, 0.5, strategies)
    asked = [(QUESTION, PASSAGES), ("Where was Pabst born, Pabst?", PASSAGES[:1])]
    pairs = [[pair for pair in selector.encode([(q, p) for p in each]) if pair] for q, each in asked]
    decisions = [decisions_of(each, policy) for each in pairs]
    tensors = selector.encode.pad([pair for each in pairs for pair in each])
    log_odds_GD, joins_GD, padding_GD = pooled(selector(*tensors), decisions, [len(each) for each in pairs])
    for g, (question, passages) in enumerate(asked):
        read = [each for each in selector.scores([(question, p) for p in passages]) if each]
        stays = [sum(each.stays[place].log_odds for each in read) / len(read) for place in range(len(read[0].stays))]
        most: dict[str, float] = {}
        for each in itertools.chain.from_iterable(scores.joins for scores in read):
            most[each.word.text] = max(each.log_odds, most.get(each.word.text, -math.inf))
        stays, most = (stays if policy.stays else []), (most if policy.joins else {})
        assert len(decisions[g]) == len(stays) + len(most) == int((~padding_GD[g]).sum())
        assert set(decisions[g].joins) == set(most)
        expected = [*stays, *(most[word] for word in decisions[g].joins)]
        assert log_odds_GD[g, : len(expected)].tolist() == pytest.approx(expected, abs=1e-5)
        assert log_odds_GD[g, len(expected) :].tolist() == [0.0] * (len(log_odds_GD[g]) - len(expected))
        assert joins_GD[g].tolist() == [len(stays) <= d < len(expected) for d in range(len(joins_GD[g]))]


def test_gradients_reach_every_stay_and_the_best_join(selector: WordSelector) -> None:
    pairs = [pair for pair in selector.encode([(QUESTION, p) for p in PASSAGES]) if pair]
    (decisions,) = [decisions_of(pairs, BOTH)]
    logits_PTL = torch.zeros(2, 48, 2)
    pabst = decisions.question_words + decisions.joins.index("pabst")
    at = [(p, t) for p, t, d in decisions.places_R3.tolist() if d == pabst]
    assert len(at) == 2  # in both passages
    logits_PTL[at[1]] = 1.0
    logits_PTL.requires_grad_()
    log_odds_GD, _, _ = pooled(logits_PTL, [decisions], [2])
    log_odds_GD[0, [0, pabst]].sum().backward()
    assert logits_PTL.grad is not None
    assert {tuple(each): float(logits_PTL.grad[tuple(each)]) for each in logits_PTL.grad.nonzero().tolist()} == {
        (0, 1, 0): 0.5, (1, 1, 0): 0.5, (*at[1], 1): 1.0,
    }  # fmt: skip


def test_chosen_reads_a_choice_of_a_file(selector: WordSelector) -> None:
    pairs = [pair for pair in selector.encode([(QUESTION, p) for p in PASSAGES]) if pair]
    decisions = decisions_of(pairs, BOTH)
    chosen = decisions.chosen((0, 2), ("pabst", "raudnitz"))
    assert chosen[:4] == [False, True, False, True]
    assert [word for word, used in zip(decisions.joins, chosen[4:], strict=True) if used] == ["pabst", "raudnitz"]
    for left_out, joins in (((4,), ()), ((), ("film",))):  # no fifth word; a word of the question cannot join
        with pytest.raises(DataError, match="is not among the words"):
            decisions.chosen(left_out, joins)


def test_facts_return_as_the_policy_and_invalid_ones_are_refused() -> None:
    assert WordPolicy.of({"policy": BOTH.facts}) == BOTH
    for wrong in ({}, {"policy": {}}, {"policy": {**BOTH.facts, "temperature": 0}}, {"policy": {**BOTH.facts, "x": 1}}):
        with pytest.raises(DataError, match="policy is invalid"):
            WordPolicy.of(wrong)
    for options in ({"passages": 0}, {"stay_probability": 1.0}, {"join_probability": 0.0}, {"strategies": ("gqr",)}):
        with pytest.raises(UserError):
            WordPolicy(**{**BOTH.facts, "strategies": BOTH.strategies, **options})
