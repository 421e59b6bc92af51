"""Throughput of training: Lightning's ThroughputMonitor over this project's batches, and the FLOPs of one token."""

from operator import attrgetter

import pytorch_lightning as pl
from pytorch_lightning.callbacks import ThroughputMonitor
from pytorch_lightning.trainer.states import RunningStage, TrainerFn
from torch import nn
from transformers import PreTrainedModel

from models.first_token import FirstTokenLayer


class Throughput(ThroughputMonitor):
    """Logs examples, tokens and FLOPs per second, and MFU.

    A batch has `examples` and `tokens` (padding included), the module `flops_per_batch`. Rates `train/device/...` and
    the counts since this process began (`train/batches`, `train/samples`, `train/lengths`) are those of rank 0. With
    several ranks `train/..._per_sec` is rank 0's rate times the number of ranks. `train/device/mfu` is logged where
    Lightning knows the device's peak.
    """

    def __init__(self) -> None:
        super().__init__(batch_size_fn=attrgetter("examples"), length_fn=attrgetter("tokens"))

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Average over the batches between two logged steps; in a shorter run over all its batches."""
        steps = min(trainer.log_every_n_steps, trainer.estimated_stepping_batches - trainer.global_step)
        self.kwargs["window_size"] = max(2, int(steps) * trainer.accumulate_grad_batches)
        self.setup(trainer, module, TrainerFn.FITTING)
        super().on_train_start(trainer)

    def _compute(self, trainer: pl.Trainer, iter_num: int | None = None) -> None:
        """Log the rates of training at the steps whose metrics the module logs."""
        module, step = trainer.lightning_module, trainer.global_step - 1
        if trainer.training and module.is_logged(step):
            rates = self._throughputs[RunningStage.TRAINING].compute()
            module.send({f"train/{name}": rate for name, rate in rates.items()}, step)


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
