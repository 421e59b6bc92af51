"""Losses of feedback: hand-worked values, gradients by finite differences, padding, order and division of a step."""

import math
from collections.abc import Callable
from dataclasses import fields, replace

import pytest
import torch
from torch import Tensor

from common.errors import UserError
from tests.helpers.tolerances import fp32_tolerance
from trainers.feedback_losses import (
    OBJECTIVES,
    FeedbackObjective,
    Groups,
    expected_reward,
    forward_kl,
    imitation,
    sampled_divergence,
)

pytestmark = pytest.mark.numeric
CLOSE = {"rel": fp32_tolerance(16)}


def groups_of(
    rewards: list[list[float]], reference: list[list[float]], times: list[list[int]], tokens: list[list[int]]
) -> Groups:
    """Groups without padding, sampled by the reference."""
    reference_GN = torch.tensor(reference)
    return Groups(
        torch.tensor(rewards), torch.ones(len(rewards), len(rewards[0]), dtype=torch.bool), reference_GN,
        reference_GN.clone(), torch.tensor(times), torch.tensor(tokens),
    )  # fmt: skip


# One group: rewards 1, 3, 2; two, one and one samples.
HAND = groups_of([[1.0, 3.0, 2.0]], [[-2.0, -3.0, -4.0]], [[2, 1, 1]], [[2, 3, 4]])
LOGP = torch.tensor([[-2.5, -2.0, -4.0]])


def drawn(seed: int, G: int = 4, N: int = 5, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Groups]:
    """Random groups with padding, of which one has a single candidate, and none has equal rewards."""
    make = torch.Generator().manual_seed(seed)
    known_GN = torch.arange(N)[None, :] < torch.tensor([[1], [N], [N - 1], [2]])[:G]
    rewards_GN = torch.rand(G, N, generator=make, dtype=dtype)
    reference_GN = -torch.rand(G, N, generator=make, dtype=dtype) * 3 - 1
    logp_GN = reference_GN + torch.randn(G, N, generator=make, dtype=dtype) / 2
    times_GN = torch.randint(0, 4, (G, N), generator=make)
    times_GN[:, 0] += 1
    tokens_GN = torch.randint(1, 9, (G, N), generator=make)
    sampled_GN = reference_GN + torch.randn(G, N, generator=make, dtype=dtype) / 10
    groups = Groups(rewards_GN, known_GN, reference_GN, sampled_GN, times_GN * known_GN, tokens_GN)
    return logp_GN, groups


def loss_of(objective: FeedbackObjective, logp_GN: Tensor, groups: Groups) -> Tensor:
    """The loss of a step that is these groups."""
    return objective(logp_GN, groups, float(objective.units(groups)), sampled_divergence(logp_GN, groups))


def select(groups: Groups, rows: list[int] | slice, places: Tensor | slice = slice(None)) -> Groups:
    """Some groups, or their candidates in another order."""
    return Groups(*(getattr(groups, field.name)[rows][:, places] for field in fields(Groups)))


def test_best_of_n_by_hand() -> None:
    # The second candidate has the highest reward, log-probability -2 and three tokens: 2 / 3 nats per token.
    assert loss_of(FeedbackObjective("best_of_n"), LOGP, HAND).item() == pytest.approx(2 / 3, **CLOSE)
    assert imitation(LOGP, HAND).item() == pytest.approx(2.0, **CLOSE)


def test_dpo_by_hand() -> None:
    # log(p / reference) is -0.5, 1 and 0.  Better pairs: (2nd, 1st), (3rd, 1st), (2nd, 3rd), with gains 1.5, 0.5 and 1.
    expected = sum(math.log(1 + math.exp(-0.2 * gain)) for gain in (1.5, 0.5, 1.0)) / 3
    assert loss_of(FeedbackObjective("dpo", beta=0.2), LOGP, HAND).item() == pytest.approx(expected, **CLOSE)
    # A least gap of 1 keeps the pair of rewards 3 and 1 alone: the others differ by 1 and no more.
    one = FeedbackObjective("dpo", beta=0.2, least_gap=1.0)
    assert loss_of(one, LOGP, HAND).item() == pytest.approx(math.log(1 + math.exp(-0.3)), **CLOSE)
    # With imitation: 2 / 3 nats per token of the best candidate, for each pair alike.
    both = FeedbackObjective("dpo", beta=0.2, imitation_weight=0.5)
    assert loss_of(both, LOGP, HAND).item() == pytest.approx(expected + 0.5 * 2 / 3, **CLOSE)


def test_imitation_in_dpo_counts_a_group_as_often_as_it_has_pairs() -> None:
    """So that a pair weighs the same in both parts of the loss; a group of equal rewards adds nothing."""
    groups = groups_of(
        [[1.0, 3.0, 2.0], [0.0, 1.0, 1.0], [2.0, 2.0, 2.0]],
        [[-1.0] * 3] * 3,
        [[1] * 3] * 3,
        [[2, 3, 4], [1, 5, 5], [1, 1, 1]],
    )
    logp_GN = torch.tensor([[-2.5, -2.0, -4.0], [-3.0, -1.0, -6.0], [-9.0, -9.0, -9.0]])
    plain, both = (loss_of(FeedbackObjective("dpo", imitation_weight=each), logp_GN, groups) for each in (0.0, 3.0))
    # Three pairs with a best candidate of 2 / 3 nats per token, two with one of 1 / 5.
    assert (both - plain).item() == pytest.approx(3 * (3 * 2 / 3 + 2 / 5) / 5, **CLOSE)


def test_the_weight_of_imitation_is_that_of_the_papers_unless_given() -> None:
    for name, weight in (("dpo", 0.0), ("ranking", 0.01)):
        alone, given = FeedbackObjective(name), FeedbackObjective(name, imitation_weight=weight)
        assert loss_of(alone, LOGP, HAND).item() == loss_of(given, LOGP, HAND).item()


def test_dpo_of_the_reference_itself_is_ln_2() -> None:
    assert loss_of(FeedbackObjective("dpo"), HAND.reference_GN, HAND).item() == pytest.approx(math.log(2), **CLOSE)


def test_ranking_by_hand() -> None:
    # Per token -1.25, -2/3 and -1. Margins: 2 places between the 2nd and the 1st, 1 for the other pairs. 2nd over 1st:
    # -1.25 + 2/3 + 2 m; 2nd over 3rd: -1 + 2/3 + m; 3rd over 1st: -1.25 + 1 + m. With m = 0.3: 1/60, 0, 1/20.
    ranked = FeedbackObjective("ranking", margin=0.3, imitation_weight=0.0)
    assert loss_of(ranked, LOGP, HAND).item() == pytest.approx((1 / 60 + 1 / 20) / 3, rel=1e-5)
    both = FeedbackObjective("ranking", margin=0.3, imitation_weight=0.5)
    assert loss_of(both, LOGP, HAND).item() == pytest.approx((1 / 60 + 1 / 20) / 3 + 0.5 * 2 / 3, rel=1e-5)


def test_advantages_by_hand() -> None:
    # The rewards of the four samples are 1, 1, 3, 2. The others of a 1: (1 + 3 + 2) / 3 = 2; of the 3: 4 / 3; of the 2:
    # 5 / 3.
    assert HAND.advantages.tolist() == [pytest.approx([-1, 5 / 3, 1 / 3], **CLOSE)]
    alone = groups_of([[5.0, 7.0]], [[-1.0, -1.0]], [[1, 0]], [[1, 1]])
    assert alone.advantages.tolist() == [[0, 0]]
    greedy = groups_of([[5.0, 7.0, 6.0]], [[-1.0] * 3], [[1, 0, 1]], [[1] * 3])  # the second was never sampled
    assert greedy.advantages.tolist() == [[-1, 0, 1]]


def test_policy_gradient_by_hand() -> None:
    # Weights e^-0.5 = 0.607, e and 1. With a clip of 0.5 the second is 1.5; a negative advantage takes the smaller
    # product.
    objective = FeedbackObjective("policy_gradient", clip=0.5, kl_weight=0.0)
    gain = (2 * -1 * math.exp(-0.5) + 5 / 3 * 1.5 + 1 / 3) / 4
    assert loss_of(objective, LOGP, HAND).item() == pytest.approx(-gain, **CLOSE)
    # With a clip of 0.2 the first weight is below 0.8: min(0.607 * -1, 0.8 * -1) = -0.8.
    gain = (2 * -1 * 0.8 + 5 / 3 * 1.2 + 1 / 3) / 4
    assert loss_of(replace(objective, clip=0.2), LOGP, HAND).item() == pytest.approx(-gain, **CLOSE)
    # A worse candidate that became likelier, and a better one that became less likely, are not clipped.
    gain = (2 * -1 * math.exp(0.5) + 5 / 3 * math.exp(-1) + 1 / 3) / 4
    wrong = torch.tensor([[-1.5, -4.0, -4.0]])
    assert loss_of(replace(objective, clip=0.2), wrong, HAND).item() == pytest.approx(-gain, **CLOSE)
    gain = (2 * -1 * 0.8 + 5 / 3 * 1.2 + 1 / 3) / 4
    # The divergence is the mean of half the squares of -0.5 (twice), 1 and 0: 1.5 / 8.
    with_kl = replace(objective, clip=0.2, kl_weight=2.0)
    assert loss_of(with_kl, LOGP, HAND).item() == pytest.approx(-gain + 2 * 1.5 / 8, **CLOSE)


def test_policy_gradient_with_a_weight_for_every_decision_by_hand() -> None:
    """Padding, which all candidates of a group have alike, changes nothing."""
    objective = FeedbackObjective("policy_gradient", clip=0.2, kl_weight=0.0)
    ratio_GND = torch.tensor([[[0.5, 1.0], [2.0, 1.1], [0.9, 3.0]]]).log()
    gain = (2 * -1 * (0.8 + 1.0) + 5 / 3 * (1.2 + 1.1) + 1 / 3 * (0.9 + 1.2)) / 4
    for decisions in (ratio_GND, torch.nn.functional.pad(ratio_GND, (0, 3))):
        assert objective(LOGP, HAND, 1.0, None, decisions).item() == pytest.approx(-gain, **CLOSE)


def test_the_first_gradient_is_that_of_the_mean_reward() -> None:
    """Where the model is the sampler, the gradient is REINFORCE's with a leave-one-out baseline."""
    logp_GN, groups = drawn(0)
    logp_GN = groups.sampled_GN.clone().requires_grad_()
    objective = FeedbackObjective("policy_gradient", kl_weight=0.0)
    (found_GN,) = torch.autograd.grad(loss_of(objective, logp_GN, groups), logp_GN)
    samples_G1 = groups.times_GN.sum(dim=1, keepdim=True)
    expected_GN = -groups.advantages * groups.times_GN / samples_G1 / len(groups.rewards_GN)
    torch.testing.assert_close(found_GN, expected_GN)
    torch.testing.assert_close((groups.advantages * groups.times_GN).sum(dim=1), torch.zeros(4, dtype=torch.float64))


def test_divergences_and_expected_reward_by_hand() -> None:
    assert sampled_divergence(LOGP, HAND).item() == pytest.approx(1.5 / 8, **CLOSE)
    assert forward_kl(LOGP, HAND).item() == pytest.approx((2 * 0.5 - 1 + 0) / 4, abs=1e-7)
    shares = [math.exp(-2.5), math.exp(-2.0), math.exp(-4.0)]
    mean = sum(share * reward for share, reward in zip(shares, (1, 3, 2), strict=True)) / sum(shares)
    assert expected_reward(LOGP, HAND).item() == pytest.approx(mean, **CLOSE)


def test_units_by_hand() -> None:
    two = groups_of([[1.0, 3.0, 2.0], [0.0, 0.0, 1.0]], [[-1.0] * 3] * 2, [[1] * 3] * 2, [[2, 3, 4], [5, 6, 7]])
    two.known_GN[1, 2] = False
    assert [int(FeedbackObjective(name).units(two)) for name in OBJECTIVES] == [3 + 5, 3, 2, 2]
    two.known_GN[1] = False  # a rank without data
    assert [int(FeedbackObjective(name).units(two)) for name in OBJECTIVES] == [3, 3, 1, 1]


@pytest.mark.parametrize("name", OBJECTIVES)
def test_gradients_by_finite_differences(name: str) -> None:
    logp_GN, groups = drawn(1)
    objective = FeedbackObjective(name, margin=0.3, imitation_weight=0.5, clip=0.4, kl_weight=0.3, least_gap=0.05)
    assert torch.autograd.gradcheck(lambda logp: loss_of(objective, logp, groups), logp_GN.requires_grad_())
    (gradient_GN,) = torch.autograd.grad(loss_of(objective, logp_GN, groups), logp_GN)
    assert (gradient_GN[~groups.known_GN] == 0).all()
    assert (gradient_GN[1] != 0).any()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_padding_does_not_matter(name: str) -> None:
    """Neither more of it, nor what stands in it, nor groups of it alone."""
    logp_GN, groups = drawn(2)
    objective = FeedbackObjective(name, imitation_weight=0.5)
    garbage = {
        "rewards_GN": 1e6,
        "known_GN": False,
        "reference_GN": -900.0,
        "sampled_GN": -900.0,
        "times_GN": 0,
        "tokens_GN": 3,
    }

    def padded(value_GN: Tensor, fill: float) -> Tensor:
        wide = torch.nn.functional.pad(value_GN, (0, 2, 0, 1), value=fill)
        inside = torch.nn.functional.pad(groups.known_GN, (0, 2, 0, 1), value=False)
        return torch.where(inside, wide, torch.tensor(fill, dtype=wide.dtype))

    wide = Groups(**{key: padded(getattr(groups, key), fill) for key, fill in garbage.items()})
    assert int(objective.units(wide)) == int(objective.units(groups))
    inputs = [logp_GN.requires_grad_(), padded(logp_GN.detach(), 50.0).requires_grad_()]
    losses = [loss_of(objective, *pair) for pair in zip(inputs, (groups, wide), strict=True)]
    assert losses[1].item() == pytest.approx(losses[0].item(), rel=1e-12)
    one_GN, other_GN = (torch.autograd.grad(*pair)[0] for pair in zip(losses, inputs, strict=True))
    torch.testing.assert_close(other_GN[:4, :5], one_GN)
    for measure in (expected_reward, forward_kl, sampled_divergence):
        torch.testing.assert_close(measure(inputs[1], wide)[:4], measure(logp_GN, groups))
        assert measure(inputs[1], wide)[4].item() == 0


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_order_of_candidates_and_groups_does_not_matter(name: str) -> None:
    logp_GN, groups = drawn(3)
    places, rows = torch.tensor([3, 1, 4, 0, 2]), [2, 0, 3, 1]
    moved = select(groups, rows, places)
    objective = FeedbackObjective(name, imitation_weight=0.5)
    assert loss_of(objective, logp_GN[rows][:, places], moved).item() == pytest.approx(
        loss_of(objective, logp_GN, groups).item(), rel=1e-12
    )


@pytest.mark.parametrize("name", OBJECTIVES)
def test_cutting_a_step_changes_neither_loss_nor_gradient(name: str) -> None:
    logp_GN, groups = drawn(4)
    objective = FeedbackObjective(name, kl_weight=0.5)
    logp_GN.requires_grad_()
    whole = loss_of(objective, logp_GN, groups)
    units = float(objective.units(groups))
    assert units == sum(float(objective.units(select(groups, rows))) for rows in ([0, 2], [1], [3]))
    cut = sum(
        objective(logp_GN[rows], part, units, sampled_divergence(logp_GN[rows], part))
        for rows, part in ((rows, select(groups, rows)) for rows in ([0, 2], [1], [3]))
    )
    assert cut.item() == pytest.approx(whole.item(), rel=1e-12)
    torch.testing.assert_close(*(torch.autograd.grad(each, logp_GN)[0] for each in (cut, whole)))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_step_towards_the_gradient_makes_the_better_candidate_likelier(name: str) -> None:
    groups = groups_of([[0.0, 1.0]], [[-1.0, -1.0]], [[1, 1]], [[2, 2]])
    logp_GN = groups.reference_GN.clone().requires_grad_()
    (gradient_GN,) = torch.autograd.grad(loss_of(FeedbackObjective(name), logp_GN, groups), logp_GN)
    assert gradient_GN[0, 1] < 0 <= gradient_GN[0, 0]


def test_a_weight_that_would_be_infinite_leaves_the_gradient_a_number() -> None:
    groups = groups_of([[0.0, 1.0, 5.0]], [[-200.0, -200.0, 0.0]], [[1, 1, 0]], [[2, 2, 2]])
    logp_GN = torch.tensor([[-1.0, -1.0, -1.0]], requires_grad=True)
    objective = FeedbackObjective("policy_gradient", kl_weight=0.0)
    loss = loss_of(objective, logp_GN, groups)
    (gradient_GN,) = torch.autograd.grad(loss, logp_GN)
    assert gradient_GN.isfinite().all()
    assert loss.isfinite()


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"name": "ppo"}, "objective 'ppo' is unknown; allowed: best_of_n"),
        ({"beta": 0.0}, "beta must be above 0"),
        ({"clip": 0.0}, "clip must be above 0"),
        ({"kl_weight": -1.0}, "kl_weight must be at least 0"),
        ({"margin": -1.0}, "margin must be at least 0"),
        ({"least_gap": math.nan}, "least_gap must be at least 0"),
    ],
)
def test_wrong_constants_are_refused(wrong: dict[str, float], named: str) -> None:
    with pytest.raises(UserError, match=named):
        FeedbackObjective(**{"name": "dpo", **wrong})


def _last_of_equal(groups: Groups) -> Tensor:
    return groups.rewards_GN.argmin(dim=1)


def _one_baseline(groups: Groups) -> Tensor:
    mean = (groups.rewards_GN * groups.times_GN).sum(1, keepdim=True) / groups.times_GN.sum(1, keepdim=True)
    return groups.rewards_GN - mean


def _turned(groups: Groups, least: float) -> Tensor:
    return groups.rewards_GN[:, None, :] - groups.rewards_GN[:, :, None] > least


def _clipped_alone(self: FeedbackObjective, logp_GN: Tensor, groups: Groups, ratio_GND: Tensor | None = None) -> Tensor:
    weight_GN = (logp_GN - groups.sampled_GN).exp().clamp(1 - self.clip, 1 + self.clip)
    return -((weight_GN * groups.advantages * groups.times_GN).sum(1) / groups.times_GN.sum(1)).sum()


def _without_reference(self: FeedbackObjective, logp_GN: Tensor, groups: Groups) -> Tensor:
    gain_GNN = logp_GN[:, :, None] - logp_GN[:, None, :]
    return -(torch.nn.functional.logsigmoid(self.beta * gain_GNN) * groups.pairs(self.least_gap)).sum()


@pytest.mark.parametrize(
    ("owner", "attribute", "bug", "test"),
    [
        (Groups, "best", property(_last_of_equal), test_best_of_n_by_hand),
        (Groups, "advantages", property(_one_baseline), test_advantages_by_hand),
        (Groups, "pairs", _turned, test_ranking_by_hand),
        (Groups, "pairs", _turned, test_dpo_by_hand),
        (FeedbackObjective, "_dpo", _without_reference, test_dpo_of_the_reference_itself_is_ln_2),
        (FeedbackObjective, "_policy_gradient", _clipped_alone, test_policy_gradient_by_hand),
    ],
)
def test_planted_bugs_are_found(
    owner: type, attribute: str, bug: object, test: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, attribute, bug)
    with pytest.raises(AssertionError):
        test()
