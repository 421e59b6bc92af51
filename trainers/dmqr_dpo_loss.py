"""Direct preference optimization on groups of candidate rewrites.

DPO (Rafailov et al. 2023), as AdaQR and RetPO use it; with imitation of the best candidate beside it, as RPO has it
(Pang et al. 2024, "Iterative Reasoning Preference Optimization").

Every function gives one rank's share of an optimizer step's mean: the sum over ranks and accumulated batches is the
step's loss, however the step was split. A group is the candidates of one question and strategy; all its candidates are
on one rank.

Shape legend: G groups, N candidates (padded).
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from common.ranges import NonNegativeFloat, PositiveFloat


@dataclass
class Groups:
    """Groups of candidates with what is known of them before training."""

    rewards_GN: Tensor
    known_GN: Tensor  # bool; False for padding
    reference_GN: Tensor  # log-probabilities by the model that training starts from, nats
    times_GN: Tensor  # how often each was sampled; 0 for the greedy one unless it was sampled, too, and for padding
    tokens_GN: Tensor  # of each candidate; at least 1

    @property
    def best(self) -> Tensor:
        """Place of the best candidate of each group, (G,); of equal ones the first, so data modules sort them.

        0 without any.
        """
        return self.rewards_GN.masked_fill(~self.known_GN, -torch.inf).argmax(dim=1)


def better_pairs(rewards_GN: Tensor, known_GN: Tensor, min_gap: float) -> Tensor:
    """Whether candidate i (dimension 1) is better than j (dimension 2) by more than `min_gap`, (G, N, N)."""
    both_GNN = known_GN[:, :, None] & known_GN[:, None, :]
    return both_GNN & (rewards_GN[:, :, None] - rewards_GN[:, None, :] > min_gap)


@dataclass(frozen=True)
class DpoLoss:
    """The loss with its constants.

    Args:
        beta: How strongly it holds to the reference.
        min_gap: Least difference of rewards of a pair of candidates.
        imitation_weight: Weight of the imitation of the best candidate, per token.
    """

    beta: PositiveFloat = 0.1
    min_gap: NonNegativeFloat = 0.0
    imitation_weight: NonNegativeFloat = 0.0

    def __call__(self, logp_GN: Tensor, groups: Groups, step_pairs: float) -> Tensor:
        """This rank's share of the mean over the step's pairs, nats.

        A pair's loss is -log sigmoid(beta * (difference of log-ratios to the reference)), and the weighed negative
        log-likelihood of its group's best candidate, per token.

        Args:
            logp_GN: Log-probabilities of the candidates by the model in training.
            groups: What is known of them.
            step_pairs: Number of `better_pairs` of the whole step.
        """
        ratio_GN = logp_GN - groups.reference_GN
        gain_GNN = ratio_GN[:, :, None] - ratio_GN[:, None, :]
        better_GNN = better_pairs(groups.rewards_GN, groups.known_GN, self.min_gap)
        preferred = (F.logsigmoid(self.beta * gain_GNN) * better_GNN).sum()
        best_G = (logp_GN / groups.tokens_GN).gather(1, groups.best[:, None]).squeeze(1)
        imitated = (best_G * better_GNN.sum(dim=(1, 2))).sum()
        return -(preferred + self.imitation_weight * imitated) / max(1.0, step_pairs)


def forward_kl(logp_GN: Tensor, groups: Groups) -> Tensor:
    """Mean over the samples of each group of log(reference / p): (G,), nats; 0 without samples.

    If the reference wrote them, its expectation is KL(reference || model); a mean of few samples may be below 0.
    """
    ratio_GN = (groups.reference_GN - logp_GN).masked_fill(groups.times_GN == 0, 0.0) * groups.times_GN
    return ratio_GN.sum(dim=1) / groups.times_GN.sum(dim=1).clamp(min=1)


def expected_reward(logp_GN: Tensor, groups: Groups) -> Tensor:
    """Reward that the model expects if it may write the recorded candidates alone: (G,); 0 without any."""
    known_GN = groups.known_GN
    share_GN = logp_GN.masked_fill(~known_GN, -torch.inf).softmax(dim=1).masked_fill(~known_GN, 0.0)
    return (share_GN * groups.rewards_GN).sum(dim=1)
