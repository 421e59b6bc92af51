"""Throughput of training: Lightning's ThroughputMonitor over this project's batches, and the FLOPs of one token."""

from operator import attrgetter
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ThroughputMonitor
from torch import nn
from transformers import PreTrainedModel


class Throughput(ThroughputMonitor):
    """Logs examples, tokens and FLOPs per second, MFU and the gradient norm before clipping.

    A batch has `examples` and `tokens` (padding included), the module `flops_per_batch`.  Rates are measured on rank 0;
    `train/device/mfu` is logged where Lightning knows the device's peak.
    """

    def __init__(self) -> None:
        super().__init__(batch_size_fn=attrgetter("examples"), length_fn=attrgetter("tokens"))

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Average over the batches between two logged steps, so that short runs log rates too."""
        self.kwargs["window_size"] = max(2, trainer.log_every_n_steps * trainer.accumulate_grad_batches)
        super().setup(trainer, pl_module, stage)

    def _compute(self, trainer: pl.Trainer, iter_num: int | None = None) -> None:
        """Log training only: for validation Lightning logs the number of the batch as the step."""
        if trainer.training:
            super()._compute(trainer, iter_num)

    def on_before_optimizer_step(self, trainer: pl.Trainer, module: pl.LightningModule, optimizer: Any) -> None:
        """Log the norm of the whole gradient."""
        if trainer.log_every_n_steps and (trainer.global_step + 1) % trainer.log_every_n_steps == 0:
            gradients = [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
            self.log("train/grad_norm", torch.nn.utils.get_total_norm(gradients))


def flops_per_token(network: PreTrainedModel) -> tuple[int, int]:
    """Training FLOPs of one input token and of one target token (0 without a decoder), estimated from the weights.

    6 per weight of every matrix that the token is multiplied with (Kaplan et al. 2020, Section 2.1), 4 if it is frozen.
    Embedding lookups count 0.  Attention scores (quadratic in length) and recomputed activations are left out; padding is
    counted, since the device computes it.
    """
    encoder = network.get_encoder() if network.config.is_encoder_decoder else network
    reads_input = {id(parameter) for parameter in encoder.parameters()}
    tables = {id(module.weight) for module in network.modules() if isinstance(module, nn.Embedding)}
    head = network.get_output_embeddings()
    head_id = id(head.weight) if head is not None else None  # may share its weight with the embedding table
    per_input = per_target = 0
    for parameter in network.parameters():
        flops = (6 if parameter.requires_grad else 4) * parameter.numel()
        if id(parameter) == head_id or (parameter.ndim > 1 and id(parameter) not in tables | reads_input):
            per_target += flops
        elif parameter.ndim > 1 and id(parameter) not in tables:
            per_input += flops
    return per_input, per_target
