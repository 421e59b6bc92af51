"""The reference of runs that learn from preferences.

The log-probabilities of the starting model, and their difference to the sampler's.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import pytorch_lightning as pl
import torch
import torch.distributed as dist

from common.progress import say, track

Score = TypeVar("Score")


def scored_by_ranks(
    module: pl.LightningModule,
    batches: Sequence[list[int]],
    score: Callable[[list[int]], Mapping[int, Score]],
    what: str,
) -> dict[int, Score]:
    """The scores of all rows by the module's present weights, in evaluation mode; the ranks divide the batches.

    The batches do not depend on the number of ranks, so that a rank's results are those of a single process.

    Args:
        module: Is moved to the device of this rank.
        batches: Rows of each.
        score: Rows of a batch -> row -> score.
        what: Is shown as progress.
    """
    strategy, training = module.trainer.strategy, module.training
    mine = batches[strategy.global_rank :: strategy.world_size]
    module.to(strategy.root_device).eval()
    found: dict[int, Score] = {}
    with torch.inference_mode(), strategy.precision_plugin.forward_context():
        for rows in track(mine, len(mine), what):
            found.update(score(rows))
    module.train(training)
    if strategy.world_size == 1:
        return found
    ranks: list[Any] = [None] * strategy.world_size
    dist.all_gather_object(ranks, found)
    return {row: value for each in ranks for row, value in each.items()}


def tell_difference(trainer: pl.Trainer, pairs: Sequence[tuple[float, float | None, int]]) -> None:
    """Print on rank 0 by how much the starting model's log-probabilities of the samples differ from the sampler's.

    Args:
        trainer: Knows the rank.
        pairs: By the starting model and by the sampler, nats, and how often each candidate was sampled; those without a
            log-probability, and those that were never sampled, do not count.
    """
    differences = [abs(ours - theirs) for ours, theirs, times in pairs if times and theirs is not None]
    if differences and trainer.is_global_zero:
        say(
            f"log-probabilities of the candidates: the starting model's differ from the sampler's by "
            f"{sum(differences) / len(differences):.3f} nats on average, {max(differences):.3f} at most",
            sys.stdout,
        )
