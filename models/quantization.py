"""Frozen base models of 4 or 8 bits by bitsandbytes.

NF4 (QLoRA, Dettmers et al. 2023) and LLM.int8() (Dettmers et al. 2022).

bitsandbytes is optional: the extra `quantized` of pyproject.toml.
"""

import copy
import logging
from typing import Any, Literal

import torch
from transformers import PreTrainedModel

from common.errors import UserError
from common.packages import require

BaseBits = Literal[4, 8]
DEVICES = ("cpu", "cuda")
FOUR_BIT = "Linear4bit"  # bitsandbytes's class; peft's layer around it has that name too, but no compute_dtype


def check_base_bits(bits: int | None, lora_rank: int | None) -> None:
    """Check the option `base_bits` of a trainer; None passes.

    Raises:
        UserError: If there is no LoRA, or bitsandbytes is not installed.
    """
    if bits is None:
        return
    if lora_rank is None:
        raise UserError(
            f"model.base_bits {bits} needs LoRA, for such weights are not trained: give model.lora.rank, such as 16."
        )
    require("quantized", f"model.base_bits {bits}", "set it to null")


def check_quantized_device(device: torch.device) -> None:
    """Raise UserError if quantized layers have not been planned for a device."""
    if device.type not in DEVICES:
        raise UserError(
            f"model.base_bits needs trainer.accelerator cpu or gpu (CUDA), not {device.type}: choose one, or set it to "
            "null."
        )


def quantized(bits: int) -> dict[str, Any]:
    """Options of `from_pretrained` that load linear layers, but the head, in 4 or 8 bits, all else in fp32."""
    from transformers import BitsAndBytesConfig

    # it warns at every multiplication that fp32 inputs are rounded
    logging.getLogger("bitsandbytes.autograd._functions").setLevel(logging.ERROR)
    config = BitsAndBytesConfig(load_in_8bit=True)
    if bits == 4:
        config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.float32)
    return {"quantization_config": config, "device_map": {"": "cpu"}}


def keep_layout(network: PreTrainedModel) -> None:
    """Keep 4-bit weights as they are.

    On CPUs with avx512_bf16 an evaluation would round their scales to bf16, and rearrange them.
    """
    for layer in _four_bit_layers(network):
        layer.support_avx512bf16_for_cpu = False


def compute_in(network: PreTrainedModel, dtype: torch.dtype) -> None:
    """Set the data type in which 4-bit layers multiply; 8-bit layers round their inputs to 8 bits whatever it is."""
    for layer in _four_bit_layers(network):
        layer.compute_dtype = dtype


def _four_bit_layers(network: PreTrainedModel) -> list[Any]:
    return [
        module for module in network.modules() if type(module).__name__ == FOUR_BIT and hasattr(module, "compute_dtype")
    ]


def unquantized_shape(network: PreTrainedModel) -> PreTrainedModel:
    """A network of the same architecture with fp32 weights, on the `meta` device: shapes without storage."""
    config = copy.deepcopy(network.config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    with torch.device("meta"):
        shape = type(network)(config).float()
    if network.is_activation_checkpointing:
        shape.activation_checkpointing_enable({"use_reentrant": False})
    return shape.requires_grad_(False)
