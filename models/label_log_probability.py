"""Log-probabilities of labels from logits of a large vocabulary, without a second tensor of the logits' size.

Shape legend: N labels, V vocabulary, E tokens that count as one label.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

LOGITS_AT_ONCE = 1 << 23  # 32 MiB in fp32


def label_logp(logits_NV: Tensor, labels_N: Tensor, end_ids: Sequence[int]) -> Tensor:
    """Log-probability (N,), fp32, of each label; with gradients.

    A label that is an end token has the log-probability of all end tokens, as in `log_probabilities`.

    Args:
        logits_NV: Logits.
        labels_N: Tokens.
        end_ids: The end tokens.
    """
    labels_N = labels_N.to(logits_NV.device)
    labels_NE = torch.full((len(labels_N), max(1, len(end_ids))), -1, device=labels_N.device)
    labels_NE[:, 0] = labels_N
    ends_E = torch.tensor(list(end_ids), dtype=torch.long, device=labels_N.device)
    labels_NE[torch.isin(labels_N, ends_E)] = ends_E
    logp_N: Tensor = _LabelLogp.apply(logits_NV, labels_NE)
    return logp_N


class _LabelLogp(torch.autograd.Function):
    """Log-probability of the sets of tokens `labels_NE` (-1: none), computed in fp32 some rows at a time."""

    @staticmethod
    def forward(ctx: Any, logits_NV: Tensor, labels_NE: Tensor) -> Tensor:
        all_N, own_N = logits_NV.new_empty((2, len(logits_NV)), dtype=torch.float32)
        for rows in _rows(logits_NV):
            chunk_RV = logits_NV[rows].float()
            all_N[rows] = chunk_RV.logsumexp(dim=1)
            own_N[rows] = _own(chunk_RV, labels_NE[rows]).logsumexp(dim=1)
        ctx.save_for_backward(logits_NV, labels_NE, all_N, own_N)
        return own_N - all_N

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_N: Tensor) -> tuple[Tensor, None]:
        logits_NV, labels_NE, all_N, own_N = ctx.saved_tensors
        grad_NV = torch.empty_like(logits_NV)
        for rows in _rows(logits_NV):
            chunk_RV, labels_RE, grad_R1 = logits_NV[rows].float(), labels_NE[rows], grad_N[rows, None]
            share_RE = (_own(chunk_RV, labels_RE) - own_N[rows, None]).exp()
            chunk_RV = (chunk_RV - all_N[rows, None]).exp_().mul_(-grad_R1)
            grad_NV[rows] = chunk_RV.scatter_add_(1, labels_RE.clamp(min=0), share_RE * grad_R1).to(grad_NV.dtype)
        return grad_NV, None


def _own(logits_RV: Tensor, labels_RE: Tensor) -> Tensor:
    """The logits (R, E) of the tokens that count as the label."""
    return logits_RV.gather(1, labels_RE.clamp(min=0)).masked_fill(labels_RE < 0, -torch.inf)


def _rows(logits_NV: Tensor) -> Iterator[slice]:
    count, vocabulary = logits_NV.shape
    step = max(1, LOGITS_AT_ONCE // vocabulary)
    yield from (slice(start, start + step) for start in range(0, count, step))
