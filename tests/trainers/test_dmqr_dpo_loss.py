"""The loss of DPO: hand-worked values, gradients by finite differences, padding, order and division of a step."""

import math
from dataclasses import fields

import pytest
import torch
from torch import Tensor

from tests.helpers.tolerances import fp32_tolerance
from trainers.dmqr_dpo_loss import DpoLoss, Groups, better_pairs, expected_reward, forward_kl

pytestmark = pytest.mark.numeric
CLOSE = {"rel": fp32_tolerance(16)}


def groups_of(
    rewards: list[list[float]], reference: list[list[float]], times: list[list[int]], tokens: list[list[int]]
) -> Groups:
    """Groups without padding, sampled by the reference."""
    known_GN = torch.ones(len(rewards), len(rewards[0]), dtype=torch.bool)
    return Groups(torch.tensor(rewards), known_GN, torch.tensor(reference), torch.tensor(times), torch.tensor(tokens))


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
    return logp_GN, Groups(rewards_GN, known_GN, reference_GN, times_GN * known_GN, tokens_GN)


def pairs_of(groups: Groups, min_gap: float = 0.0) -> int:
    """Number of pairs."""
    return int(better_pairs(groups.rewards_GN, groups.known_GN, min_gap).sum())


def loss_of(dpo: DpoLoss, logp_GN: Tensor, groups: Groups) -> Tensor:
    """The loss of a step that is these groups."""
    return dpo(logp_GN, groups, float(pairs_of(groups, dpo.min_gap)))


def select(groups: Groups, rows: list[int] | slice, places: Tensor | slice = slice(None)) -> Groups:
    """Some groups, or their candidates in another order."""
    return Groups(*(getattr(groups, field.name)[rows][:, places] for field in fields(Groups)))


def test_dpo_by_hand() -> None:
    # log(p / reference) is -0.5, 1 and 0.  Better pairs: (2nd, 1st), (3rd, 1st), (2nd, 3rd), with gains 1.5, 0.5 and 1.
    expected = sum(math.log(1 + math.exp(-0.2 * gain)) for gain in (1.5, 0.5, 1.0)) / 3
    assert loss_of(DpoLoss(beta=0.2), LOGP, HAND).item() == pytest.approx(expected, **CLOSE)
    # A least gap of 1 keeps the pair of rewards 3 and 1 alone: the others differ by 1 and no more.
    one = DpoLoss(beta=0.2, min_gap=1.0)
    assert loss_of(one, LOGP, HAND).item() == pytest.approx(math.log(1 + math.exp(-0.3)), **CLOSE)
    # With imitation: 2 / 3 nats per token of the best candidate, for each pair alike.
    both = DpoLoss(beta=0.2, imitation_weight=0.5)
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
    plain, both = (loss_of(DpoLoss(imitation_weight=each), logp_GN, groups) for each in (0.0, 3.0))
    # Three pairs with a best candidate of 2 / 3 nats per token, two with one of 1 / 5.
    assert (both - plain).item() == pytest.approx(3 * (3 * 2 / 3 + 2 / 5) / 5, **CLOSE)


def test_dpo_of_the_reference_itself_is_ln_2() -> None:
    assert loss_of(DpoLoss(), HAND.reference_GN, HAND).item() == pytest.approx(math.log(2), **CLOSE)


def test_divergence_and_expected_reward_by_hand() -> None:
    assert forward_kl(LOGP, HAND).item() == pytest.approx((2 * 0.5 - 1 + 0) / 4, abs=1e-7)
    shares = [math.exp(-2.5), math.exp(-2.0), math.exp(-4.0)]
    mean = sum(share * reward for share, reward in zip(shares, (1, 3, 2), strict=True)) / sum(shares)
    assert expected_reward(LOGP, HAND).item() == pytest.approx(mean, **CLOSE)


def test_pairs_by_hand() -> None:
    two = groups_of([[1.0, 3.0, 2.0], [0.0, 0.0, 1.0]], [[-1.0] * 3] * 2, [[1] * 3] * 2, [[2, 3, 4], [5, 6, 7]])
    assert (pairs_of(two), pairs_of(two, 1.0)) == (5, 1)
    two.known_GN[1, 2] = False
    assert pairs_of(two) == 3
    two.known_GN[0] = False  # a rank without data
    assert pairs_of(two) == 0


def test_gradients_by_finite_differences() -> None:
    logp_GN, groups = drawn(1)
    dpo = DpoLoss(imitation_weight=0.5, min_gap=0.05)
    assert torch.autograd.gradcheck(lambda logp: loss_of(dpo, logp, groups), logp_GN.requires_grad_())
    (gradient_GN,) = torch.autograd.grad(loss_of(dpo, logp_GN, groups), logp_GN)
    assert (gradient_GN[~groups.known_GN] == 0).all()
    assert (gradient_GN[1] != 0).any()


def test_padding_does_not_matter() -> None:
    """Neither more of it, nor what stands in it, nor groups of it alone."""
    logp_GN, groups = drawn(2)
    dpo = DpoLoss(imitation_weight=0.5)
    garbage = {
        "rewards_GN": 1e6, "known_GN": False, "reference_GN": -900.0, "times_GN": 0, "tokens_GN": 3
    }  # fmt: skip

    def padded(value_GN: Tensor, fill: float) -> Tensor:
        wide = torch.nn.functional.pad(value_GN, (0, 2, 0, 1), value=fill)
        inside = torch.nn.functional.pad(groups.known_GN, (0, 2, 0, 1), value=False)
        return torch.where(inside, wide, torch.tensor(fill, dtype=wide.dtype))

    wide = Groups(**{key: padded(getattr(groups, key), fill) for key, fill in garbage.items()})
    assert pairs_of(wide) == pairs_of(groups)
    inputs = [logp_GN.requires_grad_(), padded(logp_GN.detach(), 50.0).requires_grad_()]
    losses = [loss_of(dpo, *pair) for pair in zip(inputs, (groups, wide), strict=True)]
    assert losses[1].item() == pytest.approx(losses[0].item(), rel=1e-12)
    one_GN, other_GN = (torch.autograd.grad(*pair)[0] for pair in zip(losses, inputs, strict=True))
    torch.testing.assert_close(other_GN[:4, :5], one_GN)
    for measure in (expected_reward, forward_kl):
        torch.testing.assert_close(measure(inputs[1], wide)[:4], measure(logp_GN, groups))
        assert measure(inputs[1], wide)[4].item() == 0


def test_cutting_a_step_changes_neither_loss_nor_gradient() -> None:
    logp_GN, groups = drawn(4)
    dpo = DpoLoss(imitation_weight=0.5)
    logp_GN.requires_grad_()
    whole = loss_of(dpo, logp_GN, groups)
    parts = [(rows, select(groups, rows)) for rows in ([0, 2], [1], [3])]
    pairs = pairs_of(groups)
    assert pairs == sum(pairs_of(part) for _, part in parts)
    cut = sum(dpo(logp_GN[rows], part, float(pairs)) for rows, part in parts)
    assert cut.item() == pytest.approx(whole.item(), rel=1e-12)
    torch.testing.assert_close(*(torch.autograd.grad(each, logp_GN)[0] for each in (cut, whole)))
