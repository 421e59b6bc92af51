"""RE-RAG's marginal likelihood of answers over contexts, for training and inference.

Shape legend: B questions, N contexts per question, A distinct candidate answers.  Natural logarithms, nats.
"""

from collections.abc import Sequence

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


def log_joint(relevance_N: Tensor, answer_logp_AN: Tensor, real_N: Tensor) -> Tensor:
    """log P_RE(c_j | q) P(a | q, c_j) of every answer and context of one question, (A, N).

    Its log-sum-exp over the contexts is log P(a | q) (Eq. 6).

    Args:
        relevance_N: Relevance logits of the contexts.
        answer_logp_AN: log P(a | q, c_j): of the answer under every context (`thorough`), -inf under contexts that did
            not generate it (`generated`), or `log_generated` (`fast`).
        real_N: False for contexts that count as absent.
    """
    return (log_prior(relevance_N[None], real_N[None]) + answer_logp_AN).masked_fill(~real_N, -torch.inf)


def log_generated(written: Sequence[str], answers: Sequence[str]) -> Tensor:
    """0 where a context generated the answer, -inf elsewhere, (A, N).

    `fast` takes each context's own answer as certain.

    Args:
        written: The answer generated from each context, N.
        answers: The distinct answers, A.
    """
    return torch.tensor([[0.0 if own == answer else -torch.inf for own in written] for answer in answers])
