"""The strategies of Lightning that training supports.

One device, DDP, and FSDP2 for models of one forward pass per batch.
"""

from collections.abc import Iterator
from typing import Any

from pytorch_lightning.strategies import ModelParallelStrategy, StrategyRegistry
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from transformers import PreTrainedModel

from common.errors import UserError

FSDP2 = "fsdp2"
SHOWN = (
    *("auto", "ddp", "ddp_find_unused_parameters_false", "ddp_find_unused_parameters_true", FSDP2),
    *("DDPStrategy", "SingleDeviceStrategy", "Fsdp2Strategy"),
)
SMALLER = "type --trainer.strategy ddp; less memory by model.gradient_checkpointing or trainer.accumulate_grad_batches"


class Fsdp2Strategy(ModelParallelStrategy):
    """FSDP2: weights, gradients and AdamW's moments are divided among all ranks.

    Every checkpoint is whole and one file. Weights are fp32, also with bf16-mixed: 16 bytes a weight, divided by the
    number of ranks, and the activations of a rank's own batch. Tests train on two CPU processes; nobody has trained so
    on several GPUs.
    """

    def __init__(self) -> None:
        super().__init__(tensor_parallel_size=1, save_distributed_checkpoint=False)

    def setup_environment(self) -> None:
        """Divide the weights among all ranks."""
        self._data_parallel_size = self.num_nodes * self.num_processes
        super().setup_environment()

    def shard(self, network: PreTrainedModel) -> None:
        """Divide a network's weights, layer by layer, in place; the rest (embeddings, head) is one group."""
        # Not Lightning's FSDPStrategy: it flattens weights, and weight decay tells matrices by their dimensions.
        mesh: DeviceMesh = self.device_mesh["data_parallel"]
        for layer in transformer_layers(network):
            fully_shard(layer, mesh=mesh)
        fully_shard(network, mesh=mesh)


StrategyRegistry.register(FSDP2, Fsdp2Strategy, description="Weights divided among the ranks by torch's fully_shard")


def transformer_layers(module: nn.Module) -> Iterator[nn.Module]:
    """The transformer layers of a network: the members of its outermost module lists."""
    for child in module.children():
        yield from child if isinstance(child, nn.ModuleList) else transformer_layers(child)


def refuse_strategy(strategy: Any, shardable: bool = True) -> None:
    """Check that a run uses a strategy with which training, resuming and exporting have been shown.

    Args:
        strategy: Lightning's name of it, its object, or a config's namespace with `class_path`.
        shardable: Whether the ranks of what is trained run equally many forward passes.

    Raises:
        UserError: If it is another one, or FSDP2 for what is not shardable.
    """
    name = strategy if isinstance(strategy, str) else getattr(strategy, "class_path", type(strategy).__name__)
    if name.rpartition(".")[2] not in SHOWN:
        raise UserError(
            f"trainer.strategy is {name}, which has not been shown to train, resume and export here: {SMALLER}; or, "
            f"where a trainer allows it, divide the weights by --trainer.strategy {FSDP2}."
        )
    if isinstance(strategy, Fsdp2Strategy) and not shardable:
        raise UserError(
            f"trainer.strategy is {FSDP2}, and the ranks of this trainer run different numbers of forward passes, for "
            f"each of which it would wait for all ranks: {SMALLER}."
        )
