"""Tries the largest batch of an epoch, so that one that exceeds a GPU's memory ends the run before time is spent."""

import sys

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Callback

from common.errors import MemoryShortError
from common.progress import say
from trainers.run.callbacks import RandomState
from trainers.run.module import RunModule

GIB = 2**30


class LargestBatch(Callback):
    """After the first optimizer step of a start, resumed or not: one forward and backward pass of the largest batch.

    The batches of an epoch differ in their tokens, so a run may exceed the memory after hours. After one step
    everything that stays in memory is there: weights, gradients, AdamW's moments. The data module plans an epoch before
    it makes batches; each rank makes its largest one a second time, and drops the gradients. It changes no later
    result, not even the last bit: it runs between optimizer steps, the module's sums and the random states are
    restored, and the loader's position stays.

    No rank waits for another: DDP communicates only after a forward pass of its own wrapper, and the bare module is
    called. Under FSDP2 each forward pass collects weights from all ranks; they all try their batches after the same
    step.

    Args:
        on_cpu: Whether to try it on a CPU, too, where too large a batch ends the process without an error to report.
    """

    def __init__(self, on_cpu: bool = False) -> None:
        self._on_cpu = on_cpu
        self._begun: int | None = None  # optimizer steps at this start; None: there is nothing to try

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Remember at which step this start begins."""
        tried = self._on_cpu or trainer.strategy.root_device.type == "cuda"
        self._begun = trainer.global_step if tried else None

    def on_train_batch_start(self, trainer: pl.Trainer, module: RunModule, batch: object, batch_idx: int) -> None:
        """Try the batch before the first one that follows an optimizer step.  Errors as `try_largest_batch`."""
        if self._begun is not None and trainer.global_step > self._begun:
            self._begun = None
            try_largest_batch(trainer, module)


def try_largest_batch(trainer: pl.Trainer, module: RunModule) -> None:
    """Compute the gradients of this rank's largest batch of the present epoch, and drop them.

    Args:
        trainer: Between two optimizer steps of `fit`.
        module: What it trains.

    Raises:
        MemoryShortError: If the device's memory does not suffice; says which batch it was, and what to lower.
    """
    states, shares, module.shares = RandomState.capture(), module.shares, {}
    device, precision = trainer.strategy.root_device, trainer.precision_plugin
    made = trainer.datamodule.largest_batch(trainer.train_dataloader.epoch)
    size = f"{made.examples:,} rows with {made.tokens:,} tokens in all, padding included"
    try:
        batch = trainer.strategy.batch_to_device(precision.convert_input(made))
        with precision.train_step_context():
            loss = module.training_step(batch, 0)
        module.zero_grad()  # as Lightning does it: the last step's gradients are there during the forward pass
        loss.backward()
    except torch.OutOfMemoryError as error:
        raise MemoryShortError(
            f"the epoch's largest batch does not fit the memory of {device}, {size}: {module.lower}."
        ) from error
    module.zero_grad()
    module.shares = shares
    RandomState.restore(states)
    peak = f", with at most {torch.cuda.max_memory_allocated(device) / GIB:.1f} GiB" if device.type == "cuda" else ""
    if trainer.is_global_zero:
        say(f"memory  the epoch's largest batch fits{peak}: {size}", sys.stdout)
