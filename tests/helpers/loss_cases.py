"""Every loss of RE-RAG under one signature, and ragged batches to try them on."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from trainers.rerag_losses import estimator_loss, generation_loss, label_loss, token_loss

LN2, LN3 = math.log(2), math.log(3)
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
# Every loss as a function of (scores, answer log-probabilities, mask); the labels are "the answer is likelier than
# not".
LOSSES: dict[str, Loss] = {
    "gen marginal": lambda r, a, m: generation_loss(r, a, m, "marginal"),
    "gen per_context": lambda r, a, m: generation_loss(r, a, m, "per_context"),
    "re generator_to_estimator": lambda r, a, m: estimator_loss(r, a, m, "generator_to_estimator"),
    "re estimator_to_generator": lambda r, a, m: estimator_loss(r, a, m, "estimator_to_generator"),
    "tok": lambda r, a, m: token_loss(r.sigmoid(), m),
    "label pointwise": lambda r, a, m: label_loss(r, a > -LN2, m, "pointwise"),
    "label vocabulary": lambda r, a, m: label_loss(r, a > -LN2, m, "vocabulary", 0.125, a - F.softplus(r)),
    "label listwise": lambda r, a, m: label_loss(r, a > -LN2, m, "listwise"),
}
SHIFT_FREE = [name for name in LOSSES if name not in ("tok", "label pointwise", "label vocabulary")]
every_loss = pytest.mark.parametrize("name", LOSSES)


def row(*values: float) -> Tensor:
    """One question with as many contexts as values."""
    return torch.tensor([values], dtype=torch.float64)


ALL2 = torch.ones(1, 2, dtype=torch.bool)

sets = st.lists(st.tuples(st.floats(-20, 20), st.floats(-40, 0)), min_size=1, max_size=7)
batches = st.lists(sets, min_size=1, max_size=4)
Sets = list[list[tuple[float, float]]]


def tensors(questions: Sets, width: int = 0, junk: float = 0.0, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """Ragged sets as (scores, answer log-probabilities, mask); `junk` fills the padding."""
    N = max(width, *map(len, questions))
    relevance_BN, answer_BN = (torch.full((len(questions), N), junk, dtype=dtype) for _ in range(2))
    real_BN = torch.zeros(len(questions), N, dtype=torch.bool)
    for b, contexts in enumerate(questions):
        for j, (score, logp) in enumerate(contexts):
            relevance_BN[b, j], answer_BN[b, j], real_BN[b, j] = score, logp, True
    return [relevance_BN, answer_BN, real_BN]
