"""Base class of the trainers of an encoder with a new classification head."""

from typing import Any

from torch.optim import Optimizer

from trainers.run.module import RunModule
from trainers.run.optimizers import HeadOptimizer
from trainers.run.throughput import flops_per_token


class EncoderModule(RunModule):
    """A subclass has the options `freeze_embeddings` and `gradient_checkpointing`, and ends `build` with `prepare`."""

    lower = (
        "lower data.tokens_per_step or model.max_tokens, raise trainer.accumulate_grad_batches, or set "
        "model.gradient_checkpointing"
    )
    shardable = True
    optimizer: HeadOptimizer
    flops_per_token: int

    def prepare(self) -> None:
        """Freeze and recompute in the network as the options say, and count the FLOPs of a token."""
        network = self.network_to_shard
        if self.hparams.freeze_embeddings:
            network.get_input_embeddings().requires_grad_(False)
        if self.hparams.gradient_checkpointing:
            network.activation_checkpointing_enable({"use_reentrant": False})
        self.flops_per_token, _ = flops_per_token(network)

    def configure_optimizers(self) -> dict[str, Any]:
        """See `HeadOptimizer`."""
        return self.optimizer.adamw(self, self.trainer)

    def learning_rates(self, optimizer: Optimizer) -> dict[str, float]:
        """See `RunModule`; the head's groups are the last."""
        return super().learning_rates(optimizer) | {"train/head_learning_rate": optimizer.param_groups[-1]["lr"]}
