"""Callbacks of the user's that leave other weights than the checkpoints hold: refused, or a line says what is exported.

Also refused here: what Lightning's callbacks cannot do with this project's trainers.
"""

import sys
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import (
    BatchSizeFinder,
    Callback,
    LearningRateFinder,
    ModelPruning,
    StochasticWeightAveraging,
    WeightAveraging,
)
from torch.distributed.tensor import DTensor

from common.errors import UserError
from common.progress import say

_UNKEPT = (
    "leaves its weights out of the best checkpoint, and so of the export. Leave it out; averaged weights are validated "
    "and exported by pytorch_lightning.callbacks.EMAWeightAveraging."
)
_REFUSED: dict[type[Callback], str] = {
    StochasticWeightAveraging: _UNKEPT,
    ModelPruning: _UNKEPT,
    LearningRateFinder: "cannot set model.optimizer.learning_rate. Leave it out, and compare several rates "
    "(configs/sweep).",
    BatchSizeFinder: "cannot set the size of a step, which no option names batch_size. Leave it out: the largest batch "
    "is tried before training.",
}


def check_callbacks(callbacks: Iterable[Callback]) -> None:
    """Refuse callbacks by their class, and watch what others do to the weights when training ends.

    Raises:
        UserError: If one, or a subclass of it, does not work here.
    """
    for callback in callbacks:
        for kind, reason in _REFUSED.items():
            if isinstance(callback, kind):
                own = type(callback).__name__
                raise UserError(f"trainer.callbacks: {own}{f', a {kind.__name__},' * (own != kind.__name__)} {reason}")
        at_end = callback.on_train_end
        of_lightning = (getattr(at_end, "__module__", None) or "").startswith("pytorch_lightning.")
        if not isinstance(callback, WeightAveraging) and not of_lightning:
            callback.on_train_end = _watched(type(callback).__name__, at_end)


def _watched(name: str, hook: Callable[..., Any]) -> Callable[..., None]:
    """The hook, which says if it leaves other weights than it met."""

    def on_train_end(trainer: pl.Trainer, module: pl.LightningModule) -> None:
        met = _digests(module)
        hook(trainer, module)
        if _digests(module) != met:
            told = "changes the weights when training ends: the export has those of the best checkpoint, without that"
            say(f"warning: {name} {told}.", sys.stdout)

    return on_train_end


def _digests(module: pl.LightningModule) -> dict[str, bytes]:
    """A hash of this rank's part of each weight."""
    parts = {
        name: weight.to_local() if isinstance(weight, DTensor) else weight for name, weight in module.named_parameters()
    }
    return {
        name: blake2b(part.detach().reshape(-1).cpu().contiguous().view(torch.uint8).numpy().data).digest()
        for name, part in parts.items()
    }
