"""Base class of the trainers: gathers validation results over ranks, logs their metrics and stores them in checkpoints."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytorch_lightning as pl
import torch.distributed as dist

from models.serving_manifest import CARD
from trainers.run.model_card import Card, model_card


class RunModule(pl.LightningModule):
    """Validation metrics that do not depend on the number of ranks.

    A subclass stores per-example results by row number in `validated` (in `validation_step`), implements `summarize`, and
    ends its constructor with `self.train()`: `from_pretrained` returns modules in eval mode, and Lightning keeps that mode,
    without dropout.
    """

    checkpoint_keys: ClassVar[dict[str, str]] = {"validation_facts": "validation_metrics"}  # key -> attribute

    def __init__(self) -> None:
        super().__init__()
        self.validated: dict[int, Any] = {}
        self.validation_metrics: dict[str, float] = {}
        self.figures: dict[str, Any] = {}
        self.flops_per_batch = 0

    def summarize(self, results: list[Any]) -> dict[str, float]:
        """Metrics by name, from the results of all examples in row order."""
        raise NotImplementedError

    @property
    def backward_passes(self) -> int:
        """Backward passes of one optimizer step, over all ranks; Lightning divides the sum of their gradients by this number."""
        return self.trainer.world_size * self.trainer.accumulate_grad_batches

    def on_validation_epoch_end(self) -> None:
        """Gather the results of all ranks, drop repeated examples, and log the metrics."""
        mine, self.validated = self.validated, {}
        if self.trainer.sanity_checking:  # a few batches, perhaps of one class: there is nothing to measure
            return
        ranks: list[Any] = [mine]
        if self.trainer.world_size > 1:
            ranks = [None] * self.trainer.world_size
            dist.all_gather_object(ranks, mine)
        distinct = {row: result for results in ranks for row, result in results.items()}
        self.validation_metrics = self.summarize([distinct[row] for row in sorted(distinct)])
        self.log_dict({f"val/{name}": number for name, number in self.validation_metrics.items()}, rank_zero_only=False)

    on_test_epoch_end = on_validation_epoch_end

    def write_card(
        self, folder: Path, card: Card, task: str, values: Mapping[str, Any], provenance: Mapping[str, Any]
    ) -> None:
        """Write a model card (`trainers.run.model_card`) as README.md of a serving folder."""
        values, sources = {**self.hparams, **values}, self.trainer.datamodule.sources
        text = model_card(card, task, values, sources, self.validation_metrics, provenance)
        (folder / CARD).write_text(text, encoding="utf-8")

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Store the validation results with the weights."""
        checkpoint.update({key: dict(getattr(self, name)) for key, name in self.checkpoint_keys.items()})

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restore the validation results."""
        for key, name in self.checkpoint_keys.items():
            setattr(self, name, checkpoint[key])
