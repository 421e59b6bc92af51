"""Precisions that a model family cannot train in."""

import pytorch_lightning as pl

from datamodules.errors import UserError


def refuse_fp16(trainer: pl.Trainer) -> None:
    """Refuse half precision for the T5 family.

    Raises:
        UserError: With 16-mixed or 16-true.
    """
    if str(trainer.precision).startswith("16"):
        raise UserError(
            f"precision {trainer.precision} overflows in T5's feed-forward layers, whose activations pass fp16's 65,504: "
            "type --trainer.precision bf16-mixed (GPUs since Ampere) or 32-true."
        )
