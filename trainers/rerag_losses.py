"""RE-RAG's losses (Section 2.3) as pure functions of tensors, one value per question; the trainer takes the mean.

    L_tot = L_gen + a1 L_re + a2 L_tok                                                                    (Eq. 12)

Shape legend: B questions, N contexts per question.  `real_BN` is False for padding.  All in nats.
"""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from models.rerag.marginal_likelihood import log_mixture, log_prior

GenForm = Literal["marginal", "per_context"]
KlDirection = Literal["generator_to_estimator", "estimator_to_generator"]
LabelForm = Literal["pointwise", "listwise", "vocabulary"]


def generation_loss(
    relevance_BN: Tensor, answer_logp_BN: Tensor, real_BN: Tensor, form: GenForm = "marginal"
) -> Tensor:
    """L_gen: negative log-likelihood of the gold answer, weighted by relevance.  Trains generator and estimator.

        marginal       -log Σ_j P_RE(c_j) P_G(a | q, c_j)       the released code, RAG-Sequence
        per_context    -Σ_j log (P_RE(c_j) P_G(a | q, c_j))     Eq. 7 as printed; its term -Σ_j log P_RE is smallest for
                                                                a uniform P_RE, so it flattens the estimator

    Args:
        relevance_BN: Relevance logits.
        answer_logp_BN: log P_G of the gold answer under every context.
        real_BN: Mask.
        form: One of the two.

    Returns:
        (B,), at least 0.

    Raises:
        ValueError: If the shapes differ or a question has no context.
    """
    if form == "marginal":
        return -log_mixture(relevance_BN, answer_logp_BN, real_BN)
    _check_shapes(relevance_BN, answer_logp_BN, real_BN)
    joint_BN = log_prior(relevance_BN, real_BN) + answer_logp_BN
    return -joint_BN.masked_fill(~real_BN, 0.0).sum(dim=1)


def estimator_loss(
    relevance_BN: Tensor, answer_logp_BN: Tensor, real_BN: Tensor, direction: KlDirection = "generator_to_estimator"
) -> Tensor:
    """L_re: Kullback-Leibler divergence between P_RE (Eq. 5) and the generator's Q_G (Eq. 8-9).

    Trains the estimator only.

        Q_G(c_j) = softmax_j log P_G(a | q, c_j), detached
        generator_to_estimator   KL(Q_G ‖ P_RE)    the released code
        estimator_to_generator   KL(P_RE ‖ Q_G)    Eq. 10 as printed

    Returns:
        (B,), at least 0; 0 for a single context.

    Raises:
        ValueError: If the shapes differ or a question has no context.
    """
    _check_shapes(relevance_BN, answer_logp_BN, real_BN)
    log_p_BN = log_prior(relevance_BN, real_BN)
    log_q_BN = log_prior(answer_logp_BN.detach(), real_BN)
    source_BN, target_BN = (log_q_BN, log_p_BN) if direction == "generator_to_estimator" else (log_p_BN, log_q_BN)
    # -inf - -inf has no gradient: padding is set to 0 before the difference, not after
    source_BN, target_BN = (t.masked_fill(~real_BN, 0.0) for t in (source_BN, target_BN))
    return (source_BN.exp() * (source_BN - target_BN)).masked_fill(~real_BN, 0.0).sum(dim=1)


def token_loss(other_mass_BN: Tensor, real_BN: Tensor) -> Tensor:
    """L_tok (Eq. 11): the estimator's probability of all tokens but "true" and "false", summed over the contexts.

    Divide by the number of question-context pairs.  Returns (B,), in [0, N].

    Raises:
        ValueError: If the shapes differ.
    """
    _check_shapes(other_mass_BN, real_BN)
    return other_mass_BN.masked_fill(~real_BN, 0.0).sum(dim=1)


def label_loss(
    relevance_BN: Tensor,
    grades_BN: Tensor,
    real_BN: Tensor,
    form: LabelForm = "pointwise",
    false_weight: float = 0.125,
    other_logit_BN: Tensor | None = None,
) -> Tensor:
    """L_label: supervision of the estimator by labels, e.g. DPR's has-answer (the released code's warm-up; a reranker).

        pointwise    mean over contexts of w_j · binary cross-entropy; w = 1 for true, `false_weight` for false
        vocabulary   the same with -log P("true") or -log P("false") over the whole vocabulary: the released warm-up
        listwise     -log of the P_RE mass on true contexts, that of each times its grade; 0 for a question without one

    A grade between 0 and 1 is a soft target: of two relevant contexts the one with the higher grade shall score higher.

    Args:
        relevance_BN: Relevance logits.
        grades_BN: 1 where the context is relevant, 0 where it is not, or how relevant it is, in [0, 1]; -1 where
            nobody knows, which counts 0.
        real_BN: Mask.
        form: One of the three.
        false_weight: Weight of a false context, except `listwise`.
        other_logit_BN: Logits of the probability of all other tokens; for `vocabulary`.

    Returns:
        (B,), at least 0.

    Raises:
        ValueError: If the shapes differ, a question has no context, or `other_logit_BN` is missing for `vocabulary`.
    """
    _check_shapes(relevance_BN, grades_BN, real_BN)
    log_p_BN = log_prior(relevance_BN, real_BN)  # raises for a question without contexts, whose mean is undefined
    true_BN, grades_BN = (grades_BN > 0) & real_BN, grades_BN.to(relevance_BN.dtype) * real_BN
    if form == "listwise":
        some_B = true_BN.any(dim=1)
        graded_BN = log_p_BN + torch.where(true_BN, grades_BN, 1.0).log()
        mass_B = graded_BN.masked_fill(~(true_BN | ~some_B[:, None]), -torch.inf).logsumexp(dim=1)
        return torch.where(some_B, -mass_B, torch.zeros_like(mass_B))
    weights_BN = torch.where(true_BN, 1.0, false_weight) * (real_BN & (grades_BN >= 0))
    loss_BN = F.binary_cross_entropy_with_logits(relevance_BN, grades_BN, reduction="none")
    if form == "vocabulary":  # P(word) = P(word | one of the two) P(one of the two)
        if other_logit_BN is None:
            raise ValueError("the form vocabulary needs the logits of all other tokens")
        _check_shapes(relevance_BN, other_logit_BN)
        loss_BN = loss_BN + F.softplus(other_logit_BN)
    return (loss_BN * weights_BN).sum(dim=1) / real_BN.sum(dim=1)


def teacher_loss(relevance_BN: Tensor, teacher_BN: Tensor, real_BN: Tensor, temperature: float = 1.0) -> Tensor:
    """L_teacher: distillation, KL(softmax(teacher / temperature) ‖ P_RE), both over the contexts that have a score.

    Args:
        relevance_BN: Relevance logits.
        teacher_BN: A teacher's scores, e.g. log-odds or cosines; NaN where it gave none.
        real_BN: Mask.
        temperature: In the unit of the scores.

    Returns:
        (B,), at least 0; 0 for a question with less than two scores.

    Raises:
        ValueError: If the shapes differ or a question has no context.
    """
    _check_shapes(relevance_BN, teacher_BN, real_BN)
    known_BN = real_BN & ~teacher_BN.isnan()
    some_B = known_BN.any(dim=1)
    mask_BN = torch.where(some_B[:, None], known_BN, real_BN)
    target_BN = teacher_BN.masked_fill(~known_BN, 0.0) / temperature
    divergence_B = estimator_loss(relevance_BN, target_BN, mask_BN)
    return torch.where(some_B, divergence_B, torch.zeros_like(divergence_B))


def _check_shapes(*tensors_BN: Tensor) -> None:
    shapes = [tuple(t.shape) for t in tensors_BN]
    if len(set(shapes)) > 1:  # broadcasting would silently pair the wrong values
        raise ValueError(f"scores, labels and mask must have one shape, got {shapes}")
