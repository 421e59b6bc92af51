"""BigBird's attention implementations, and fused full attention.

transformers' BigBird has eager attention only, and switches permanently from `block_sparse` to `original_full` at the
first batch of at most 704 tokens.  Here the kind is fixed when the model is built, and `fused` computes `original_full`
with `torch.nn.functional.scaled_dot_product_attention`.

Shape legend: B sequences, T tokens, H heads, D features per head, E features of all heads.
"""

from typing import Any, Literal, get_args

import torch
from torch import Tensor
from transformers import BigBirdModel
from transformers.models.big_bird.modeling_big_bird import BigBirdBlockSparseAttention, BigBirdSelfAttention

from common.errors import UserError
from models.sdpa import attend

AttentionKind = Literal["auto", "fused", "full", "block_sparse"]
FULL_UP_TO_TOKENS = 1024  # below one to two thousand tokens block-sparse attention is slower


def sparse_minimum_tokens(block_size: int, num_random_blocks: int) -> int:
    """Minimum sequence length, in tokens, for block-sparse attention; below it transformers uses full attention."""
    return (5 + 2 * num_random_blocks) * block_size + 1


def resolve_kind(kind: AttentionKind, max_tokens: int) -> Literal["fused", "full", "block_sparse"]:
    """Replace `auto` by `fused` up to 1,024 tokens and by `block_sparse` above; other kinds are returned unchanged.

    Raises:
        UserError: If the kind, which a manifest may give, is unknown.
    """
    if kind not in get_args(AttentionKind):
        raise UserError(f"attention {kind!r} is unknown; allowed: {', '.join(get_args(AttentionKind))}.")
    if kind == "auto":
        return "fused" if max_tokens <= FULL_UP_TO_TOKENS else "block_sparse"
    return kind


class FusedSelfAttention(BigBirdSelfAttention):
    """BigBird's full self-attention (encoder only) in one fused kernel; equals eager attention within 1e-5 in fp32."""

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, **unused: Any
    ) -> tuple[Tensor, Tensor | None]:
        """Compute self-attention.

        Args:
            hidden_states: (B, T, E).
            attention_mask: Additive mask (B, 1, T, T) or (B, 1, 1, T); 0 at visible keys, else a large negative number.
            unused: Arguments of the eager path for decoders; must be None.

        Returns:
            Hidden states (B, T, E), and None in place of the eager path's attention probabilities.

        Raises:
            UserError: If called as a decoder.
        """
        if unused.get("encoder_hidden_states") is not None or unused.get("past_key_values") is not None:
            raise UserError("fused attention supports encoders only; set attention: full for a BigBird decoder.")
        B, T, _ = hidden_states.shape

        def heads(projected_BTE: Tensor) -> Tensor:
            return projected_BTE.view(B, T, self.num_attention_heads, self.attention_head_size).transpose(1, 2)

        query_BHTD, key_BHTD, value_BHTD = (
            heads(project(hidden_states)) for project in (self.query, self.key, self.value)
        )
        dropout = self.dropout.p if self.training else 0.0
        attended_BHTD = attend(query_BHTD, key_BHTD, value_BHTD, attention_mask, dropout)
        return attended_BHTD.transpose(1, 2).reshape(B, T, self.all_head_size), None


def freeze_pooler(model: BigBirdModel) -> None:
    """Do not train the pooler, which BigBird's sequence classifier has and does not use; its weights and names stay.

    A trained parameter without a gradient makes DDP fail at the second step.
    """
    model.pooler.requires_grad_(False)


def fuse(model: BigBirdModel) -> None:
    """Replace the self-attention of every layer by `FusedSelfAttention`, in place; weights and their names stay.

    Raises:
        UserError: If the model uses block-sparse attention.
    """
    if model.attention_type != "original_full":
        raise UserError(f"only original_full attention can be fused, but attention_type is {model.attention_type}.")
    _replace_attention(model, FusedSelfAttention)


class SparseSelfAttention(BigBirdBlockSparseAttention):
    """BigBird's block-sparse self-attention, computed in fp32 where autocast leaves a softmax in bf16: on CPUs.

    There transformers' code fails, which mixes it with fp32 masks; on GPUs autocast computes a softmax in fp32.
    """

    def bigbird_block_sparse_attention(
        self, query_BHTD: Tensor, key_BHTD: Tensor, value_BHTD: Tensor, *masks: Any, **options: Any
    ) -> tuple[Tensor, Tensor]:
        """Attention of queries to keys, see transformers."""
        heads = [query_BHTD, key_BHTD, value_BHTD]
        if query_BHTD[:, :, :1].softmax(dim=-1).dtype != torch.bfloat16:
            return super().bigbird_block_sparse_attention(*heads, *masks, **options)
        with torch.autocast("cpu", enabled=False):
            return super().bigbird_block_sparse_attention(*(head.float() for head in heads), *masks, **options)


def sparsify(model: BigBirdModel) -> None:
    """Replace the self-attention of every layer by `SparseSelfAttention`, in place; weights and their names stay."""
    _replace_attention(model, SparseSelfAttention)


def _replace_attention(model: BigBirdModel, kind: type[FusedSelfAttention | SparseSelfAttention]) -> None:
    for index, layer in enumerate(model.encoder.layer):
        plain = layer.attention.self
        with torch.device("meta"):  # the weights of the plain module are reused
            made = kind(model.config, index)  # its place, or the seed of its random blocks
        made.query, made.key, made.value = plain.query, plain.key, plain.value
        layer.attention.self = made.train(plain.training)
