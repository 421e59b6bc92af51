"""Attention for BigBird, chosen once and explicitly.

transformers' BigBird computes its attention eagerly, and its `block_sparse` kind turns itself into `original_full` for
good on the first batch of at most 704 tokens.  Here the kind is fixed when the model is built, and `fused` computes
`original_full` by `torch.nn.functional.scaled_dot_product_attention`.

Shape legend: B sequences, T tokens, H heads, D features per head, E features of all heads.
"""

from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import BigBirdModel
from transformers.models.big_bird.modeling_big_bird import BigBirdSelfAttention

from common.errors import UserError

AttentionKind = Literal["auto", "fused", "full", "block_sparse"]
FULL_UP_TO_TOKENS = 1024  # block-sparse attention pays only above one to two thousand tokens


def sparse_minimum_tokens(block_size: int, num_random_blocks: int) -> int:
    """Shortest sequence that BigBird attends block-sparsely; at or below it transformers flips to full attention."""
    return (5 + 2 * num_random_blocks) * block_size + 1


def resolve_kind(kind: AttentionKind, max_tokens: int) -> Literal["fused", "full", "block_sparse"]:
    """`auto` is `fused` up to 1,024 tokens and `block_sparse` above; every other kind is itself.

    Raises:
        UserError: If the kind is unknown.
    """
    if kind not in ("auto", "fused", "full", "block_sparse"):
        raise UserError(f"attention {kind!r} is unknown; allowed: auto, fused, full, block_sparse.")
    if kind == "auto":
        return "fused" if max_tokens <= FULL_UP_TO_TOKENS else "block_sparse"
    return kind


class FusedSelfAttention(BigBirdSelfAttention):
    """BigBird's full self-attention (encoder only) in one fused kernel; equals it within 1e-5 in fp32."""

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, **unused: Any
    ) -> tuple[Tensor, Tensor | None]:
        """Attended features.

        Args:
            hidden_states: (B, T, E).
            attention_mask: Additive mask (B, 1, T, T) or (B, 1, 1, T); 0 keeps a key, a huge negative number hides it.
            unused: What the eager path takes for decoders; must be None.

        Returns:
            Features (B, T, E), and None where the eager path returns attention probabilities.

        Raises:
            UserError: If called as a decoder.
        """
        if unused.get("encoder_hidden_states") is not None or unused.get("past_key_values") is not None:
            raise UserError("fused attention is for encoders; choose attention: full for a BigBird decoder.")
        B, T, _ = hidden_states.shape

        def heads(projected_BTE: Tensor) -> Tensor:
            return projected_BTE.view(B, T, self.num_attention_heads, self.attention_head_size).transpose(1, 2)

        query_BHTD, key_BHTD, value_BHTD = (
            heads(project(hidden_states)) for project in (self.query, self.key, self.value)
        )
        mask = None if attention_mask is None else attention_mask.to(query_BHTD.dtype)
        attended_BHTD = F.scaled_dot_product_attention(
            query_BHTD, key_BHTD, value_BHTD, attn_mask=mask, dropout_p=self.dropout.p if self.training else 0.0
        )
        return attended_BHTD.transpose(1, 2).reshape(B, T, self.all_head_size), None


def fuse(model: BigBirdModel) -> None:
    """Replace the attention of every layer by `FusedSelfAttention`, in place, weights and names unchanged.

    Raises:
        UserError: If the model attends block-sparsely.
    """
    if model.attention_type != "original_full":
        raise UserError(f"only original_full attention can be fused, got {model.attention_type}; load it as such.")
    for index, layer in enumerate(model.encoder.layer):
        eager = layer.attention.self
        with torch.device("meta"):  # the weights are the eager module's own
            fused = FusedSelfAttention(model.config, layer_idx=index)
        fused.query, fused.key, fused.value = eager.query, eager.key, eager.value
        layer.attention.self = fused.train(eager.training)
