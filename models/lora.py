"""LoRA (Hu et al. 2021) by peft: adapters inside a network, their files, and the weights with the adapter merged in.

peft takes seconds to import, so it is imported where it is used.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from common.errors import UserError

ADAPTER = "default"  # peft's name of the only adapter
_PREFIX = "base_model.model."  # of the names in a file of peft's
_BASE = ".base_layer."


def add_adapter(
    network: PreTrainedModel, base: str, rank: int, alpha: int, dropout: float, targets: Sequence[str] | None
) -> None:
    """Put LoRA layers into a network, in place, and freeze all other weights.  It computes the same as before until it is trained.

    Args:
        network: The network.
        base: Folder or hub id that it was loaded from, for adapter_config.json.
        rank: Rank of the update of a matrix.
        alpha: The update is scaled by alpha / rank.
        dropout: Dropout rate of the adapter's input.
        targets: Last parts of the names of the layers that get an adapter; every linear layer but the head when None.

    Raises:
        UserError: If no layer has such a name.
    """
    from peft import LoraConfig, TaskType, inject_adapter_in_model

    transposed = any(isinstance(module, Conv1D) for module in network.modules())  # GPT-2's layers
    kind = TaskType.SEQ_2_SEQ_LM if network.config.is_encoder_decoder else TaskType.CAUSAL_LM
    config = LoraConfig(
        task_type=kind, r=rank, lora_alpha=alpha, lora_dropout=dropout, base_model_name_or_path=base,
        target_modules=list(targets) if targets else "all-linear", fan_in_fan_out=transposed,
    )  # fmt: skip
    try:
        inject_adapter_in_model(config, network, ADAPTER)
    except ValueError as error:
        linear = sorted(
            {name.rpartition(".")[2] for name, m in network.named_modules() if isinstance(m, torch.nn.Linear)}
        )
        raise UserError(
            f"lora_targets {list(targets or ())} are no layers of {base}: omit them, or name some of {', '.join(linear)}."
        ) from error


def has_adapter(network: PreTrainedModel) -> bool:
    """Whether `add_adapter` has changed a network."""
    return hasattr(network, "peft_config")


def save_adapter(network: PreTrainedModel, folder: Path) -> None:
    """Write adapter_config.json and adapter_model.safetensors, which peft and transformers load."""
    from peft.utils.save_and_load import get_peft_model_state_dict

    folder.mkdir(parents=True)
    weights = get_peft_model_state_dict(network, adapter_name=ADAPTER)
    save_file(
        {_PREFIX + name: value.contiguous().cpu() for name, value in weights.items()},
        folder / "adapter_model.safetensors",
        {"format": "pt"},
    )
    config = network.peft_config[ADAPTER]
    trains, config.inference_mode = config.inference_mode, True
    config.save_pretrained(str(folder))
    config.inference_mode = trains


def load_adapter(network: PreTrainedModel, folder: Path) -> None:
    """Put the adapter of a folder into a freshly loaded base network, in place, as peft does."""
    from peft import PeftModel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of transformers, about a name that peft uses
        PeftModel.from_pretrained(network, str(folder))


def merged_weights(network: PreTrainedModel) -> dict[str, Tensor]:
    """Weights by their names in the base network, the adapter's update (in the weights' precision) added; the network stays as it is."""
    from peft.tuners.lora import LoraLayer

    layers: dict[str, Any] = {name: module for name, module in network.named_modules() if isinstance(module, LoraLayer)}
    merged = {}
    with torch.no_grad():
        for name, value in network.state_dict().items():
            layer, inside, parameter = name.rpartition(_BASE)
            if inside:
                update = layers[layer].get_delta_weight(ADAPTER) if parameter == "weight" else 0
                merged[f"{layer}.{parameter}"] = value + update
            elif not any(name.startswith(f"{layer}.lora_") for layer in layers):
                merged[name] = value
    return merged
