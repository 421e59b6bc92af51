"""Lightning's Trainer with the precision `auto`: bf16 where the hardware has it."""

from typing import Any, Literal, TypeAlias

import pytorch_lightning as pl
import torch
from lightning_fabric.plugins.precision.precision import _PRECISION_INPUT
from pytorch_lightning.utilities import rank_zero_only

from models.devices import auto_is_bf16

# `trainers.run.precision` says which of them are refused.
TrainingPrecision: TypeAlias = Literal["auto"] | _PRECISION_INPUT


class RunTrainer(pl.Trainer):
    """Lightning's Trainer; weights and optimizer states are always fp32.

    Args:
        args: Lightning's.
        precision: `32-true`; `bf16-mixed` (GPUs since Ampere, CPUs with amx_bf16 or avx512_bf16); `auto`: bf16-mixed
            where the hardware has it, else 32-true; null as 32-true.
        kwargs: Lightning's.
    """

    def __init__(self, *args: Any, precision: TrainingPrecision | None = "32-true", **kwargs: Any) -> None:
        if precision == "auto":
            gpu = torch.cuda.is_available() and kwargs.get("accelerator", "auto") != "cpu"
            lower, reason = auto_is_bf16(torch.device("cuda" if gpu else "cpu"))
            precision = "bf16-mixed" if lower else "32-true"
            cure = "; for fp32 type --trainer.precision 32-true" if lower else ""
            rank_zero_only(print)(f"precision {precision}: {reason}{cure}", flush=True)
        # Lightning's default, None, is 32-true too, and leaves room for a plugin that sets the precision
        super().__init__(*args, precision=None if precision == "32-true" else precision, **kwargs)
