"""DR-RAG's loss as a pure function of tensors.

Shape legend: P triples; in nats.
"""

from torch import Tensor
from torch.nn import functional as F


def triple_loss(log_odds_P: Tensor, labels_P: Tensor, weights_P: Tensor, step_triples: int) -> Tensor:
    """Binary cross-entropy (DR-RAG, Eq. 2): one rank's share of the mean over an optimizer step.

        L = (1 / N) sum_p w_p [ -y_p log σ(s_p) - (1 - y_p) log(1 - σ(s_p)) ],    N = triples of the whole step

    The sum over ranks and accumulated batches is the mean over the step, however the step was split.

    Args:
        log_odds_P: Scores s; log P(positive) - log P(negative).
        labels_P: y: 1.0 positive, 0.0 negative.
        weights_P: w: 1.0, or 0.0 for a triple to ignore.
        step_triples: N, over all ranks and accumulated batches.

    Returns:
        Scalar, nats; (ln 2) P / N for scores of 0.

    Raises:
        ValueError: If the shapes differ.
    """
    if not log_odds_P.shape == labels_P.shape == weights_P.shape:
        shapes = ", ".join(str(tuple(each.shape)) for each in (log_odds_P, labels_P, weights_P))
        raise ValueError(f"scores, labels and weights must have one shape, got {shapes}")
    return F.binary_cross_entropy_with_logits(log_odds_P, labels_P, weights_P, reduction="sum") / step_triples
