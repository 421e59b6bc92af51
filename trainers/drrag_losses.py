"""DR-RAG's losses as pure functions of tensors.

Shape legend: P triples or chains, G groups, N "none of these"; all in nats.
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def triple_loss(log_odds_P: Tensor, labels_P: Tensor, weights_P: Tensor, step_triples: int) -> Tensor:
    """Binary cross-entropy (DR-RAG, Eq. 2): one rank's share of the mean over an optimizer step.

        L = (1 / N) sum_p w_p [ -y_p log σ(s_p) - (1 - y_p) log(1 - σ(s_p)) ],    N = triples of the whole step

    The sum over ranks and accumulated batches is the mean over the step, however the step was split.

    Args:
        log_odds_P: Scores s; log P(positive) - log P(negative).
        labels_P: y: 1.0 positive, 0.0 negative; in between a probability, such as a teacher's.
        weights_P: w: 1.0, or 0.0 for a triple to ignore.
        step_triples: N, over all ranks and accumulated batches.

    Returns:
        Scalar, nats; (ln 2) P / N for scores of 0.

    Raises:
        ValueError: If the shapes differ.
    """
    _one_shape(scores=log_odds_P, labels=labels_P, weights=weights_P)
    return F.binary_cross_entropy_with_logits(log_odds_P, labels_P, weights_P, reduction="sum") / step_triples


def listwise_loss(
    log_odds_P: Tensor, labels_P: Tensor, weights_P: Tensor, groups_P: Tensor, step_groups: int
) -> Tensor:
    """Softmax cross-entropy among the candidates of each group and "none of these".

    A rank's share of the mean over a step.

        L = (1 / N) sum_g w_g [ log( 1 + sum_{p in g} exp s_p ) - log sum_{p in g, y_p = 1} exp s_p ],
        N = groups of the step

    "None of these" has score 0 and is right in a group without a positive, so that scores keep their zero and compare
    between groups. Several positives share the probability: their marginal likelihood counts.

    Args:
        log_odds_P: Scores s.
        labels_P: y: 1.0 positive, 0.0 negative.
        weights_P: w: 1.0, or 0.0 for a group to ignore; equal within a group.
        groups_P: Number of each one's group, from 0, int64.
        step_groups: N, over all ranks and accumulated batches.

    Returns:
        Scalar, nats; G ln(1 + n) / N for scores of 0, n candidates and at most one positive per group.

    Raises:
        ValueError: If the shapes differ.
    """
    _one_shape(scores=log_odds_P, labels=labels_P, weights=weights_P, groups=groups_P)
    member_GP = _members(groups_P)
    positive_GP = member_GP & (labels_P > 0.5)
    none_G1 = log_odds_P.new_zeros(len(member_GP), 1)
    none_is_right_G1 = none_G1.masked_fill(positive_GP.any(1, keepdim=True), -torch.inf)
    scores_GP = log_odds_P.expand(member_GP.shape)
    all_G = torch.cat([none_G1, scores_GP.masked_fill(~member_GP, -torch.inf)], 1).logsumexp(1)
    right_G = torch.cat([none_is_right_G1, scores_GP.masked_fill(~positive_GP, -torch.inf)], 1).logsumexp(1)
    return (_group_weights(member_GP, weights_P) * (all_G - right_G)).sum() / step_groups


def listwise_distillation_loss(
    log_odds_P: Tensor, teacher_log_odds_P: Tensor, weights_P: Tensor, groups_P: Tensor, step_groups: int
) -> Tensor:
    """Cross-entropy from a teacher's softmax over each group and "none of these".

    A rank's share of the mean over a step.

        L = (1 / N) sum_g w_g sum_c -p_c log softmax(s)_c,    p = softmax(t),
        c: the candidates of g, and none of them with score 0

    Its gradient is that of the divergence KL(p, softmax(s)) (Hinton et al. 2015, temperature 1).

    Args:
        log_odds_P: Scores s.
        teacher_log_odds_P: The teacher's scores t.
        weights_P: As of `listwise_loss`.
        groups_P: As of `listwise_loss`.
        step_groups: N, over all ranks and accumulated batches.

    Returns:
        Scalar, nats.

    Raises:
        ValueError: If the shapes differ.
    """
    _one_shape(scores=log_odds_P, teacher=teacher_log_odds_P, weights=weights_P, groups=groups_P)
    member_GP = _members(groups_P)

    def log_shares(scores_P: Tensor) -> Tensor:
        none_G1 = scores_P.new_zeros(len(member_GP), 1)
        scores_GP = scores_P.expand(member_GP.shape).masked_fill(~member_GP, -torch.inf)
        return torch.cat([none_G1, scores_GP], 1).log_softmax(1)

    teacher_GNP = log_shares(teacher_log_odds_P).exp()
    student_GNP = log_shares(log_odds_P).masked_fill(teacher_GNP == 0, 0.0)  # 0 log 0 = 0 outside of the group
    return -(_group_weights(member_GP, weights_P) * (teacher_GNP * student_GNP).sum(1)).sum() / step_groups


def _members(groups_P: Tensor) -> Tensor:
    """Which example is in which group, (G, P) bool."""
    return groups_P == torch.arange(int(groups_P.max()) + 1, device=groups_P.device)[:, None]


def _group_weights(member_GP: Tensor, weights_P: Tensor) -> Tensor:
    """The weight of each group, (G,)."""
    return torch.where(member_GP, weights_P, 0.0).amax(1)


def _one_shape(**tensors: Tensor) -> None:
    """Raise ValueError if the shapes differ."""
    if len({tuple(tensor.shape) for tensor in tensors.values()}) > 1:
        given = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in tensors.items())
        raise ValueError(f"all must have one shape, got {given}")
