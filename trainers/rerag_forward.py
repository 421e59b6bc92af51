"""Forward pass of RE-RAG's estimator and generator over a batch, bucket by bucket.

Shape legend: B questions, N contexts per question, M rows of a bucket.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from datamodules.examples.context_sets import Bucket, ContextBatch
from models.cross_encoder import RelevanceEstimator
from models.rerag.generator import Generator
from trainers.rerag_frozen import FrozenGenerator


@dataclass
class ContextScores:
    """Scores of every context, each (B, N); 0 for padding and for an absent model."""

    relevance_BN: Tensor  # relevance logits, nats: the estimator's; without one the retriever's scores / temperature
    answer_logp_BN: Tensor  # log P_G of the gold answer, nats
    other_logit_BN: Tensor  # logit of the estimator's probability of all tokens except "true" and "false"


def score_contexts(
    batch: ContextBatch,
    estimator: RelevanceEstimator | None,
    generator: Generator | FrozenGenerator | None,
    recompute: bool = False,
    retriever_temperature: float | None = None,
) -> ContextScores:
    """Score a batch; padding is not computed.

    Args:
        batch: Buckets in the generator's format, and in the estimator's where it differs.
        estimator: Or None.
        generator: Or None.
        recompute: Keep the activations of one bucket at a time; recompute them in the backward pass.
        retriever_temperature: Divides the retriever's scores, which then are the relevance logits; None for those of
            the estimator, or zeros without one.
    """
    width = batch.real_BN.shape[1]

    def estimate(bucket: Bucket) -> Tensor:
        assert estimator is not None  # only called where there is one
        relevance = estimator(bucket.ids_MT, bucket.attention_MT)
        zeros_M = torch.zeros_like(relevance.score_P)
        other_M = zeros_M if relevance.other_logit_P is None else relevance.other_logit_P
        return torch.stack([relevance.score_P, zeros_M, other_M])

    def both(bucket: Bucket) -> Tensor:
        rows = [] if estimator is None or batch.estimator_buckets else [estimate(bucket)]
        if generator is not None:
            answers_MA = batch.answers_BA[bucket.cells_M // width]
            logp_M = generator(bucket.ids_MT, bucket.attention_MT, answers_MA)
            rows.append(torch.stack([torch.zeros_like(logp_M), logp_M, torch.zeros_like(logp_M)]))
        return torch.stack(rows).sum(dim=0)

    grid = batch.real_BN.new_zeros(3, batch.real_BN.numel(), dtype=torch.float32)
    for function, buckets in ((both, batch.buckets), (estimate, batch.estimator_buckets)):
        for bucket in buckets:
            checkpointed = recompute and torch.is_grad_enabled()
            values_3M = checkpoint(function, bucket, use_reentrant=False) if checkpointed else function(bucket)
            grid = grid.index_add(1, bucket.cells_M, values_3M.float())
    scores = ContextScores(*grid.view(3, *batch.real_BN.shape))
    if retriever_temperature is not None:
        scores.relevance_BN = batch.retriever_BN / retriever_temperature
    return scores
