"""Scaled dot-product attention that computes in fp32 where a CPU trains in bf16, also as an attention of transformers.

On CPUs the backward pass of torch's bf16 attention kernel takes four times as long as that of the fp32 kernel: half of a training
step of MiniLM.

Shape legend: B sequences, H heads, T tokens, D features per head.
"""

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "sdpa_fp32_on_cpu"


def _needs_fp32(query_BHTD: Tensor) -> bool:
    return query_BHTD.dtype == torch.bfloat16 and query_BHTD.device.type == "cpu" and torch.is_grad_enabled()


def attend(
    query_BHTD: Tensor, key_BHTD: Tensor, value_BHTD: Tensor, mask: Tensor | None, dropout: float = 0.0
) -> Tensor:
    """Attention of queries to keys; (B, H, T, D) in the data type of the queries.

    Args:
        query_BHTD: Queries.
        key_BHTD: Keys.
        value_BHTD: Values.
        mask: Additive mask that broadcasts to (B, H, T, T); None for no padding.
        dropout: Dropout rate of the attention weights.
    """
    dtype, in_fp32 = query_BHTD.dtype, _needs_fp32(query_BHTD)
    if in_fp32:
        query_BHTD, key_BHTD, value_BHTD = query_BHTD.float(), key_BHTD.float(), value_BHTD.float()
    mask = None if mask is None else mask.to(query_BHTD.dtype)
    with torch.autocast("cpu", enabled=False) if in_fp32 else nullcontext():
        attended_BHTD = F.scaled_dot_product_attention(
            query_BHTD, key_BHTD, value_BHTD, attn_mask=mask, dropout_p=dropout
        )
    return attended_BHTD.to(dtype)


def _forward(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    """`sdpa` of transformers, whose results are (B, T, H, D)."""
    if not _needs_fp32(query):
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    if attention_mask is not None and attention_mask.is_floating_point():
        attention_mask = attention_mask.float()
    with torch.autocast("cpu", enabled=False):
        attended, _ = sdpa_attention_forward(
            module, query.float(), key.float(), value.float(), attention_mask, **options
        )
    return attended.to(query.dtype), None


AttentionInterface.register(NAME, _forward)
AttentionMaskInterface.register(NAME, sdpa_mask)


def use_fp32_on_cpu(network: PreTrainedModel) -> None:
    """Let an encoder that computes its attention with `sdpa` train fast in bf16 on a CPU; other networks stay as they are."""
    is_t5 = network.config.is_encoder_decoder  # it adds a position bias to the mask
    if network.config._attn_implementation == "sdpa" and not is_t5:
        network.set_attn_implementation(NAME)
