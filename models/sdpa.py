"""Scaled dot-product attention that trains fast on CPUs, also as attentions of transformers; elsewhere it is torch's.

On CPUs the backward pass of torch's bf16 attention kernel takes four times as long as that of the fp32 kernel: half of
a training step of MiniLM. T5 adds a trained position bias, which no kernel of a CPU takes: there torch computes step by
step and searches every row for one that is masked whole, a quarter of a training step of a small T5. No row of ours is.

Shape legend: B sequences, H heads, T tokens, Q queries, D features per head.
"""

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME, T5_NAME = "sdpa_fp32_on_cpu", "sdpa_stepwise_on_cpu"


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
        mask: Additive or boolean mask (True: visible) that broadcasts to (B, H, T, T); None for no padding.
        dropout: Dropout rate of the attention weights.
    """
    dtype, in_fp32 = query_BHTD.dtype, _needs_fp32(query_BHTD)
    if in_fp32:
        query_BHTD, key_BHTD, value_BHTD = query_BHTD.float(), key_BHTD.float(), value_BHTD.float()
    if mask is not None and mask.is_floating_point():
        mask = mask.to(query_BHTD.dtype)
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


def _forward_with_bias(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float = 1.0,
    position_bias: Tensor | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """`sdpa` of transformers for a T5, whose results are (B, Q, H, D): step by step where a CPU trains."""
    if query.device.type != "cpu" or not torch.is_grad_enabled():
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout, scaling, position_bias=position_bias, **options
        )
    scores_BHQT = query @ key.transpose(2, 3)
    if scaling != 1:
        scores_BHQT = scores_BHQT * scaling
    if position_bias is not None:
        scores_BHQT = scores_BHQT + position_bias
    queries, keys = scores_BHQT.shape[2:]
    if attention_mask is None and getattr(module, "is_causal", False) and queries > 1:
        attention_mask = torch.ones(queries, keys, dtype=torch.bool).tril()
    if attention_mask is not None:
        if attention_mask.dtype == torch.bool:  # added, not filled in: its backward pass costs nothing
            hidden = torch.finfo(scores_BHQT.dtype).min
            attention_mask = scores_BHQT.new_zeros(attention_mask.shape).masked_fill(~attention_mask, hidden)
        scores_BHQT = scores_BHQT + attention_mask
    weights_BHQT = F.dropout(scores_BHQT.softmax(dim=-1), dropout, module.training)
    return (weights_BHQT.to(value.dtype) @ value).transpose(1, 2).contiguous(), None


AttentionInterface.register(NAME, _forward)
AttentionInterface.register(T5_NAME, _forward_with_bias)
AttentionMaskInterface.register(NAME, sdpa_mask)
AttentionMaskInterface.register(T5_NAME, sdpa_mask)


def train_fast_on_cpu(network: PreTrainedModel) -> None:
    """Let a network that computes its attention with `sdpa` train fast on a CPU; other networks stay as they are."""
    if network.config._attn_implementation == "sdpa":
        network.set_attn_implementation(T5_NAME if network.config.is_encoder_decoder else NAME)
