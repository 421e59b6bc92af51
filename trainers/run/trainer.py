"""Lightning's Trainer in the precisions that train here; `auto` is bf16 where the hardware has it."""

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import pytorch_lightning as pl
import torch
from pytorch_lightning.loggers import Logger
from pytorch_lightning.utilities import rank_zero_only

from common.errors import UserError
from common.ranges import NonNegativeFloat, PositiveInt
from models.devices import auto_is_bf16, avoid_cudnn_attention

TrainingPrecision: TypeAlias = Literal["auto", "32-true", "bf16-mixed", "32", "bf16"]  # the last two as Lightning's


class RunTrainer(pl.Trainer):
    """Lightning's Trainer; weights and optimizer states are always fp32.

    Args:
        args: Lightning's.
        precision: `32-true`; `bf16-mixed` (GPUs since Ampere, CPUs with amx_bf16 or avx512_bf16); `auto`: bf16-mixed
            where the hardware has it, else 32-true; null as 32-true.
        accumulate_grad_batches: Batches of an optimizer step.
        gradient_clip_val: Largest norm of a step's gradient, or of its elements with gradient_clip_algorithm `value`;
            null does not clip.
        logger: What gets the metrics beside metrics.jsonl: `wandb`, `tensorboard` or `csv`, or another class of
            loggers, see docs/operate.md#loggers-by-one-word; several in a list; false for none.
        kwargs: Lightning's.
    """

    def __init__(
        self,
        *args: Any,
        precision: TrainingPrecision | None = "32-true",
        accumulate_grad_batches: PositiveInt = 1,
        gradient_clip_val: NonNegativeFloat | None = None,
        logger: Logger | Iterable[Logger] | bool | None = None,
        **kwargs: Any,
    ) -> None:
        avoid_cudnn_attention()
        if precision == "auto":
            gpu = torch.cuda.is_available() and kwargs.get("accelerator", "auto") != "cpu"
            lower, reason = auto_is_bf16(torch.device("cuda" if gpu else "cpu"))
            precision = "bf16-mixed" if lower else "32-true"
            cure = "; for fp32 type --trainer.precision 32-true" if lower else ""
            rank_zero_only(print)(f"precision {precision}: {reason}{cure}", flush=True)
        # Lightning's default, None, is 32-true too, and leaves room for a plugin that sets the precision
        super().__init__(
            *args, precision=None if precision == "32-true" else precision, logger=logger,
            accumulate_grad_batches=accumulate_grad_batches, gradient_clip_val=gradient_clip_val, **kwargs,
        )  # fmt: skip


def refuse_precision(precision: str) -> None:
    """Check that training keeps fp32 weights, which exports and resumed runs need.

    Args:
        precision: A trainer's, also of one that was made without `train.py` or that a plugin sets.

    Raises:
        UserError: If it is neither 32-true nor bf16-mixed. fp16 overflows where activations exceed 65,504, as in the
            feed-forward layers of several pretrained encoder-decoders; bf16 weights lose most of AdamW's small updates.
    """
    if precision not in ("32-true", "bf16-mixed"):
        raise UserError(
            f"trainer.precision is {precision}, which overflows (fp16), rounds the weights (bf16-true) or has not been "
            "shown to train, resume and export here: type --trainer.precision bf16-mixed (CPUs, and GPUs since Ampere) "
            "or 32-true."
        )
