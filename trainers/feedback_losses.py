"""Losses that learn from the rewards of candidate rewrites, for generative and extractive rewriters alike.

best_of_n         imitation of the best candidate
dpo               direct preference optimization (Rafailov et al. 2023), as AdaQR and RetPO use it; with imitation of
                  the best candidate beside it, as RPO has it (Pang et al. 2024, "Iterative Reasoning Preference
                  Optimization")
ranking           the order of all candidates: AdaCQR (Lai et al. 2024)
policy_gradient   rewards against the group's mean, with clipped importance weights (PPO's; the baseline of GRPO, not
                  divided by the standard deviation)

Every function gives one rank's share of an optimizer step's mean: the sum over ranks and accumulated batches is the
step's loss, however the step was split. A group is the candidates of one question (and strategy); all its candidates
are on one rank.

Shape legend: G groups, N candidates (padded), D decisions of a candidate (padded).
"""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional as F

from common.checks import check_above, check_at_least, check_choice

Objective = Literal["best_of_n", "dpo", "ranking", "policy_gradient"]
OBJECTIVES = get_args(Objective)
IMITATION_WEIGHTS = {"dpo": 0.0, "ranking": 0.01}  # of the papers: none, and AdaCQR's
MOST_RATIO = 20.0  # nats; log of the greatest importance weight that is computed


@dataclass
class Groups:
    """Groups of candidates with what is known of them before training."""

    rewards_GN: Tensor
    known_GN: Tensor  # bool; False for padding
    reference_GN: Tensor  # log-probabilities by the model that training starts from, nats
    sampled_GN: Tensor  # log-probabilities by the policy that wrote the candidates, nats
    times_GN: Tensor  # how often each was sampled; 0 for the greedy one unless it was sampled, too, and for padding
    tokens_GN: Tensor  # decisions of each candidate: its tokens, or the question's and passages' words; at least 1

    @property
    def best(self) -> Tensor:
        """Place of the best candidate of each group, (G,); of equal ones the first, so data modules sort them.

        0 without any.
        """
        return self.rewards_GN.masked_fill(~self.known_GN, -torch.inf).argmax(dim=1)

    @property
    def advantages(self) -> Tensor:
        """Reward minus the mean of the group's other samples (leave-one-out baseline), (G, N).

        0 for one that was drawn alone or never.
        """
        count_G1 = self.times_GN.sum(dim=1, keepdim=True)
        sum_G1 = (self.rewards_GN * self.times_GN).sum(dim=1, keepdim=True)
        others_GN = (sum_G1 - self.rewards_GN) / (count_G1 - 1).clamp(min=1)
        return (self.rewards_GN - others_GN) * ((self.times_GN > 0) & (count_G1 > 1))

    def pairs(self, least: float) -> Tensor:
        """Whether candidate i (dimension 1) is better than j (dimension 2) by more than `least`, (G, N, N)."""
        both_GNN = self.known_GN[:, :, None] & self.known_GN[:, None, :]
        return both_GNN & (self.rewards_GN[:, :, None] - self.rewards_GN[:, None, :] > least)


@dataclass(frozen=True)
class FeedbackObjective:
    """A loss with its constants.

    Args:
        name: best_of_n, dpo, ranking or policy_gradient.
        beta: Of dpo: how strongly it holds to the reference.
        least_gap: Least difference of rewards of a pair of candidates, for dpo and ranking.
        margin: Of ranking: margin per place in the order.
        imitation_weight: Of dpo and ranking: weight of the imitation of the best candidate, per token; 0 and 0.01 when
            None.
        clip: Of policy_gradient: importance weights are clipped to [1 - clip, 1 + clip].
        kl_weight: Of policy_gradient: weight of the divergence from the reference.

    Raises:
        UserError: If the name is unknown or a number is out of range.
    """

    name: Objective
    beta: float = 0.1
    least_gap: float = 0.0
    margin: float = 0.1
    imitation_weight: float | None = None
    clip: float = 0.2
    kl_weight: float = 0.01

    def __post_init__(self) -> None:
        check_choice(OBJECTIVES, objective=self.name)
        check_above(0, beta=self.beta, clip=self.clip)
        check_at_least(0, least_gap=self.least_gap, margin=self.margin, kl_weight=self.kl_weight)
        check_at_least(0, imitation_weight=self.imitation_weight)

    @property
    def _imitation_weight(self) -> float:
        return IMITATION_WEIGHTS[self.name] if self.imitation_weight is None else self.imitation_weight

    def units(self, groups: Groups) -> Tensor:
        """Number (scalar) of what the loss is a mean over: tokens of best candidates, pairs, or groups."""
        if self.name == "best_of_n":
            tokens_G = groups.tokens_GN.gather(1, groups.best[:, None]).squeeze(1)
            return (tokens_G * groups.known_GN.any(dim=1)).sum()
        if self.name == "dpo":
            return groups.pairs(self.least_gap).sum()
        return groups.known_GN.any(dim=1).sum()

    def __call__(
        self,
        logp_GN: Tensor,
        groups: Groups,
        step_units: float,
        divergence_G: Tensor | None = None,
        ratio_GND: Tensor | None = None,
    ) -> Tensor:
        """This rank's share of the step's loss, nats.

        Of ranking nats per token; of policy_gradient also in units of the reward.

        Args:
            logp_GN: Log-probabilities of the candidates by the model in training.
            groups: What is known of them.
            step_units: `units` of the whole step.
            divergence_G: Of policy_gradient: KL divergence of every group's policy from the reference.
            ratio_GND: Of policy_gradient: log-ratios to the sampling policy of the decisions that make up each
                candidate, equally many in a group, 0 for padding;
                each then has a clipped importance weight of its own, as the tokens have in GRPO.
        """
        if self.name == "policy_gradient":
            loss = self._policy_gradient(logp_GN, groups, ratio_GND)
            loss = loss if divergence_G is None else loss + self.kl_weight * divergence_G.sum()
        else:
            shares = {"best_of_n": imitation, "dpo": self._dpo, "ranking": self._ranking}
            loss = shares[self.name](logp_GN, groups)
        return loss / max(1.0, step_units)

    def _dpo(self, logp_GN: Tensor, groups: Groups) -> Tensor:
        """Sum over pairs of -log sigmoid(beta * (difference of log-ratios to the reference)), and of imitation.

        The imitation is of their group's best candidate, per token.
        """
        ratio_GN = logp_GN - groups.reference_GN
        gain_GNN = ratio_GN[:, :, None] - ratio_GN[:, None, :]
        better_GNN = groups.pairs(self.least_gap)
        preferred = (F.logsigmoid(self.beta * gain_GNN) * better_GNN).sum()
        return -(preferred + self._imitation_weight * (best_mean(logp_GN, groups) * better_GNN.sum(dim=(1, 2))).sum())

    def _ranking(self, logp_GN: Tensor, groups: Groups) -> Tensor:
        """Sum over groups of their pairs' mean margin loss and of the imitation of the best candidate, per token.

        A pair's margin grows with the number of places between its candidates in the order of rewards.
        """
        mean_GN = logp_GN / groups.tokens_GN
        better_GNN = groups.pairs(self.least_gap)
        place_GN = better_GNN.sum(dim=1)  # candidates that are better than each
        places_GNN = (place_GN[:, None, :] - place_GN[:, :, None]).clamp(min=1)
        loss_GNN = (mean_GN[:, None, :] - mean_GN[:, :, None] + self.margin * places_GNN).clamp(min=0) * better_GNN
        ranked_G = loss_GNN.sum(dim=(1, 2)) / better_GNN.sum(dim=(1, 2)).clamp(min=1)
        return (ranked_G - self._imitation_weight * best_mean(logp_GN, groups) * groups.known_GN.any(dim=1)).sum()

    def _policy_gradient(self, logp_GN: Tensor, groups: Groups, ratio_GND: Tensor | None) -> Tensor:
        """Sum over groups of the mean over samples of -min(w A, clip(w) A), w = p / p when it was sampled.

        Summed over decisions, if each has its w.
        """
        if ratio_GND is None:
            ratio_GND = (logp_GN - groups.sampled_GN)[:, :, None]
        # an infinite weight would have the gradient 0 * inf, also where it is clipped
        weight_GND = ratio_GND.clamp(max=MOST_RATIO).exp()
        clipped_GND = weight_GND.clamp(1 - self.clip, 1 + self.clip)
        advantages_GN1 = groups.advantages[:, :, None]
        # a padded decision adds the advantages, whose sum over the samples of a group is 0
        gain_GN = torch.minimum(weight_GND * advantages_GN1, clipped_GND * advantages_GN1).sum(dim=2) * groups.times_GN
        return -(gain_GN.sum(dim=1) / groups.times_GN.sum(dim=1).clamp(min=1)).sum()


def imitation(logp_GN: Tensor, groups: Groups) -> Tensor:
    """Negative log-likelihood of the best candidates, summed over groups, nats."""
    best_G = logp_GN.gather(1, groups.best[:, None]).squeeze(1)
    return -(best_G * groups.known_GN.any(dim=1)).sum()


def best_mean(logp_GN: Tensor, groups: Groups) -> Tensor:
    """Log-probability per token of the best candidate of each group: (G,), nats."""
    return (logp_GN / groups.tokens_GN).gather(1, groups.best[:, None]).squeeze(1)


def sampled_divergence(logp_GN: Tensor, groups: Groups) -> Tensor:
    """Estimate of the KL divergence between model and reference, from the samples of each group.

    (G,), nats, at least 0.

    Half the mean square of log(p / reference). Its gradient at samples of the model is that of KL(model || reference),
    and it grows linearly with the log-ratio, unlike that of p / reference - 1 - log(p / reference) (Schulman 2020,
    "Approximating KL divergence").
    """
    return _mean_of_samples((logp_GN - groups.reference_GN).square() / 2, groups)


def forward_kl(logp_GN: Tensor, groups: Groups) -> Tensor:
    """Mean over the samples of each group of log(reference / p): (G,), nats.

    If the reference wrote them, its expectation is KL(reference || model); a mean of few samples may be below 0.
    """
    return _mean_of_samples(groups.reference_GN - logp_GN, groups)


def expected_reward(logp_GN: Tensor, groups: Groups) -> Tensor:
    """Reward that the model expects if it may write the recorded candidates alone: (G,); 0 without any."""
    known_GN = groups.known_GN
    share_GN = logp_GN.masked_fill(~known_GN, -torch.inf).softmax(dim=1).masked_fill(~known_GN, 0.0)
    return (share_GN * groups.rewards_GN).sum(dim=1)


def _mean_of_samples(values_GN: Tensor, groups: Groups) -> Tensor:
    """The mean of each group, in which a candidate counts as often as it was sampled; 0 without samples."""
    drawn_GN = values_GN.masked_fill(groups.times_GN == 0, 0.0) * groups.times_GN
    return drawn_GN.sum(dim=1) / groups.times_GN.sum(dim=1).clamp(min=1)
