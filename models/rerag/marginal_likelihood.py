"""RE-RAG's marginal likelihood of answers over contexts, for training and inference.

Shape legend: B questions, N contexts per question, A distinct candidate answers.  Natural logarithms, nats.
"""

import torch
from torch import Tensor


def log_prior(relevance_BN: Tensor, real_BN: Tensor) -> Tensor:
    """log P_RE(c_j | q): log-softmax of the logits over a question's contexts (Eq. 5); -inf for absent contexts.

    Raises:
        ValueError: If the shapes differ or a question has no context.
    """
    if relevance_BN.shape != real_BN.shape:
        raise ValueError(
            f"relevance and mask must have one shape, got {tuple(relevance_BN.shape)}, {tuple(real_BN.shape)}"
        )
    if not real_BN.any(dim=1).all():
        empty = (~real_BN.any(dim=1)).nonzero().flatten().tolist()
        raise ValueError(f"questions {empty} of the batch have no context")
    return relevance_BN.masked_fill(~real_BN, -torch.inf).log_softmax(dim=1)


def log_mixture(relevance_BN: Tensor, answer_logp_BN: Tensor, real_BN: Tensor) -> Tensor:
    """Log-probability of an answer, marginalized over contexts (Eq. 6; RAG-Sequence).

        log P(a | q) = log sum_j  P_RE(c_j | q) P_G(a | q, c_j)

    Args:
        relevance_BN: Relevance logits.
        answer_logp_BN: log P_G(a | q, c_j), summed over the answer's tokens; at most 0.
        real_BN: True where a context exists, False where the question has fewer than N.

    Returns:
        Log-probabilities of shape (B,).

    Raises:
        ValueError: If the shapes differ or a question has no context.
    """
    if answer_logp_BN.shape != real_BN.shape:
        raise ValueError(
            f"answers and mask must have one shape, got {tuple(answer_logp_BN.shape)}, {tuple(real_BN.shape)}"
        )
    return torch.logsumexp(log_prior(relevance_BN, real_BN) + answer_logp_BN.masked_fill(~real_BN, 0.0), dim=1)


def fast_marginal(relevance_N: Tensor, answers: list[str]) -> tuple[list[str], Tensor]:
    """Distinct answers in order of appearance, and the log of the total P_RE of each one's contexts, (A,) (`fast`).

    Args:
        relevance_N: Relevance logits of one question's contexts.
        answers: The answer generated from each context.
    """
    distinct = list(dict.fromkeys(answers))
    log_prior_N = relevance_N.log_softmax(dim=0)
    wrote_AN = torch.tensor([[answer == candidate for answer in answers] for candidate in distinct])
    return distinct, log_prior_N.masked_fill(~wrote_AN, -torch.inf).logsumexp(dim=1)


def thorough_marginal(relevance_N: Tensor, answer_logp_AN: Tensor) -> Tensor:
    """log P(a | q) of every distinct answer, (A,); `answer_logp_AN` scores each under all N contexts (`thorough`)."""
    relevance_AN = relevance_N.expand_as(answer_logp_AN)
    return log_mixture(relevance_AN, answer_logp_AN, torch.ones_like(answer_logp_AN, dtype=torch.bool))
