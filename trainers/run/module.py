"""Base class of the trainers: validation results of all ranks, each example once, and what a checkpoint keeps of them."""

from typing import Any, ClassVar

import pytorch_lightning as pl
import torch.distributed as dist


class RunModule(pl.LightningModule):
    """Collects per-example validation results in `validated` and summarizes them, alike for any number of ranks.

    A subclass fills `validated` by row number in `validation_step`, gives `summarize`, and ends its constructor with
    `self.train()`: `from_pretrained` returns modules in eval mode, and Lightning leaves them there, without dropout.
    """

    checkpoint_keys: ClassVar[tuple[str, ...]] = (
        "validation_facts",
    )  # attributes that checkpoints store, under these names

    def __init__(self) -> None:
        super().__init__()
        self.validated: dict[int, Any] = {}
        self.validation_facts: dict[str, float] = {}
        self.figures: dict[str, Any] = {}
        self.flops_per_batch = 0

    def summarize(self, results: list[Any]) -> dict[str, float]:
        """Metrics of a validation by name, from the results of all examples in the order of their rows."""
        raise NotImplementedError

    @property
    def backward_passes(self) -> int:
        """Backward passes of an optimizer step, over all ranks: Lightning divides their summed gradients by this number."""
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
        self.validation_facts = self.summarize([distinct[row] for row in sorted(distinct)])
        self.log_dict({f"val/{name}": number for name, number in self.validation_facts.items()}, rank_zero_only=False)

    on_test_epoch_end = on_validation_epoch_end

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Store the validation results with the weights."""
        checkpoint.update({name: dict(getattr(self, name)) for name in self.checkpoint_keys})

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restore the validation results."""
        for name in self.checkpoint_keys:
            setattr(self, name, checkpoint[name])
