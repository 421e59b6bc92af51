"""Throughput of training, computed by Lightning Fabric, and the FLOPs of one token."""

import time
from typing import Any

import pytorch_lightning as pl
import torch
from lightning_fabric.utilities import throughput
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.trainer.states import TrainerFn
from pytorch_lightning.utilities import rank_zero_only
from torch import nn
from transformers import PreTrainedModel

from models.first_token import FirstTokenLayer


# Not Lightning's ThroughputMonitor: it waits for the GPU after every batch.
class Throughput(Callback):
    """Logs examples, tokens and FLOPs per second, and MFU, at the steps whose metrics the module logs.

    A batch has `examples` and `tokens` (padding included), the module `flops_per_batch`. Rates `train/device/...` and
    the counts since this process began (`train/batches`, `train/samples`, `train/lengths`) are those of rank 0. With
    several ranks `train/..._per_sec` is rank 0's rate times the number of ranks. `train/device/mfu` is logged where
    Lightning knows the device's peak. Validations do not count.
    """

    @rank_zero_only
    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Average over the batches between two logged steps; in a shorter run over all its batches."""
        steps = min(trainer.log_every_n_steps, trainer.estimated_stepping_batches - trainer.global_step)
        dtype = torch.bfloat16 if trainer.precision == "bf16-mixed" else torch.float32
        self._rates = throughput.Throughput(
            throughput.get_available_flops(trainer.strategy.root_device, dtype),
            trainer.world_size,
            window_size=max(2, int(steps) * trainer.accumulate_grad_batches),
        )
        self._batches = self._examples = self._tokens = 0
        self._step, self._seconds, self._began = trainer.global_step, 0.0, time.perf_counter()

    @rank_zero_only
    def on_train_batch_end(
        self, trainer: pl.Trainer, module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count the batch; at the end of a logged optimizer step log the rates."""
        step = trainer.global_step - 1
        logged = step >= self._step and module.is_logged(step)
        if logged and trainer.strategy.root_device.type == "cuda":
            torch.cuda.synchronize()  # only here: in other steps the next batch must not wait for the device
        self._seconds = time.perf_counter() - self._began
        self._batches, self._examples = self._batches + 1, self._examples + batch.examples
        self._tokens += batch.tokens
        self._rates.update(
            time=self._seconds, batches=self._batches, samples=self._examples, lengths=self._tokens,
            flops=module.flops_per_batch,
        )  # fmt: skip
        self._step = trainer.global_step
        if logged:
            module.send({f"train/{name}": rate for name, rate in self._rates.compute().items()}, step)

    @rank_zero_only
    def on_validation_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Leave out the time since the last batch of training."""
        if trainer.state.fn == TrainerFn.FITTING and not trainer.sanity_checking:
            self._began = time.perf_counter() - self._seconds


def flops_per_token(network: PreTrainedModel) -> tuple[int, int]:
    """Training FLOPs of one input token and of one target token (0 without a decoder), estimated from the weights.

    6 per weight of every matrix that the token is multiplied with (Kaplan et al. 2020, Section 2.1), 4 if it is frozen.
    Embedding lookups count 0. Attention scores (quadratic in length) and recomputed activations are left out; padding
    is counted, since the device computes it. Weights that only the first token of a sequence is multiplied with count
    0.
    """
    encoder = network.get_encoder() if network.config.is_encoder_decoder else network
    reads_input = {id(parameter) for parameter in encoder.parameters()}
    free = {id(module.weight) for module in network.modules() if isinstance(module, nn.Embedding)}
    of_first = (m.of_first_token() for m in network.modules() if isinstance(m, FirstTokenLayer))
    free |= {id(parameter) for parameters in of_first for parameter in parameters}
    head = network.get_output_embeddings()
    head_id = id(head.weight) if head is not None else None  # may share its weight with the embedding table
    per_input = per_target = 0
    for parameter in network.parameters():
        flops = (6 if parameter.requires_grad else 4) * parameter.numel()
        if id(parameter) == head_id or (parameter.ndim > 1 and id(parameter) not in free | reads_input):
            per_target += flops
        elif parameter.ndim > 1 and id(parameter) not in free:
            per_input += flops
    return per_input, per_target
