"""Memory estimate of a RE-RAG training step: weights, gradients, AdamW states and activations.

Activations are counted: a copy of each network on the `meta` device (shapes without storage) runs one bucket forward, and
the tensors that autograd saves for the backward pass are added up.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

GIB = 2**30


def saved_bytes(network: PreTrainedModel, run: Callable[[PreTrainedModel], Tensor]) -> int:
    """Bytes that autograd saves for the backward pass of `run(network)`: each storage once, without parameters."""
    own = {parameter.untyped_storage()._cdata for parameter in network.parameters()}
    kept: dict[int, int] = {}
    alive: list[Any] = []  # keeps storages alive: the id of a freed one could be reused

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = storage.nbytes()
            alive.append(storage)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        run(network)
    return sum(kept.values())


def activation_bytes(network: PreTrainedModel, rows: int, tokens: int, answer_tokens: int, half: bool) -> int:
    """Bytes of one bucket's activations in one network.

    Args:
        network: A T5-family model or a sequence classifier; only its shapes are used.
        rows: Rows of the bucket.
        tokens: Tokens per row.
        answer_tokens: Decoder tokens per row; ignored without a decoder.
        half: Whether activations are bfloat16.
    """
    shape = copy.deepcopy(network).to("meta").train(network.training)
    if half:
        shape = shape.to(torch.bfloat16)
    ids = torch.zeros(rows, tokens, dtype=torch.long, device="meta")

    # Four-dimensional: transformers reads the values of a two-dimensional mask, and meta tensors have none.
    mask = torch.zeros(rows, 1, tokens, tokens, device="meta", dtype=shape.dtype)

    def run(model: PreTrainedModel) -> Tensor:
        if not model.config.is_encoder_decoder:
            return model(input_ids=ids, attention_mask=mask).logits
        states = model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
        written = torch.zeros(rows, answer_tokens, dtype=torch.long, device="meta")
        logits = model(
            encoder_outputs=BaseModelOutput(last_hidden_state=states), decoder_input_ids=written, use_cache=False
        ).logits
        return logits.float().log_softmax(dim=-1)

    return saved_bytes(shape, run)


def memory_plan(
    networks: Mapping[str, PreTrainedModel],
    rows: int,
    rows_per_bucket: int,
    tokens: int,
    answer_tokens: int,
    half: bool,
    one_bucket: bool,
    device: torch.device,
) -> list[str]:
    """Lines with the memory of a step on one device at the longest inputs, and whether it fits the GPU.

    Args:
        networks: By name: estimator, generator.
        rows: (question, context) rows of one forward and backward pass.
        rows_per_bucket: Most rows computed together.
        tokens: Tokens of the longest row.
        answer_tokens: Tokens of the longest answer.
        half: Whether activations are bfloat16.
        one_bucket: Whether the activations of only one bucket are kept at a time.
        device: The device that trains.
    """
    weights = sum(p.numel() * p.element_size() for n in networks.values() for p in n.parameters())
    trained = sum(p.numel() * p.element_size() for n in networks.values() for p in n.parameters() if p.requires_grad)
    states = weights + trained * 3 + (weights // 2 if half else 0)  # + gradients, two AdamW moments, autocast copies
    rows_per_bucket = min(rows, rows_per_bucket)
    bucket = sum(
        activation_bytes(n, rows_per_bucket, tokens, 1 if name == "estimator" else answer_tokens, half)
        for name, n in networks.items()
    )
    buckets = 1 if one_bucket else rows / rows_per_bucket
    total = states + bucket * buckets
    sizes = ", ".join(f"{name} {sum(p.numel() for p in n.parameters()) / 1e6:.1f} M" for name, n in networks.items())
    lines = [
        f"memory  parameters: {sizes}; weights, gradients, AdamW: {states / GIB:.2f} GiB",
        f"memory  activations of one bucket ({rows_per_bucket} rows of {tokens} tokens): {bucket / GIB:.2f} GiB",
        f"memory  {rows} rows a pass at full length, {buckets:.1f} buckets kept at once: {total / GIB:.2f} GiB in all",
    ]
    if device.type == "cuda":
        capacity = torch.cuda.get_device_properties(device).total_memory
        lines.append(f"memory  this GPU has {capacity / GIB:.1f} GiB")
        if total > capacity:
            lines.append(
                "memory  too much: set model.bucket_checkpointing, lower data.tokens_per_bucket or accumulate more batches"
            )
    return lines
