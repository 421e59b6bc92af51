"""What a RE-RAG training step keeps in memory, computed before the first step: weights, gradients, AdamW, activations.

Activations are counted, not guessed: a copy of each network on the `meta` device (shapes without storage) runs one bucket
forward, and every tensor that autograd would keep for the backward pass is added up.
"""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from datamodules.errors import UserError

if TYPE_CHECKING:
    from trainers.rerag import ReRagTrainer

GIB = 2**30


def saved_bytes(network: PreTrainedModel, run: Callable[[PreTrainedModel], Tensor]) -> int:
    """Bytes that autograd keeps for the backward pass of `run(network)`, each storage once, parameters not counted."""
    own = {parameter.untyped_storage()._cdata for parameter in network.parameters()}
    kept: dict[int, int] = {}
    alive: list[Any] = []  # a storage that is freed could lend its identity to the next one

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
    """Bytes one bucket's activations take in one network.

    Args:
        network: A T5-family model or a sequence classifier; only its shape is used.
        rows: Rows of the bucket.
        tokens: Tokens per row.
        answer_tokens: Decoder tokens per row; without a decoder ignored.
        half: Whether activations are bfloat16.
    """
    shape = copy.deepcopy(network).to("meta").train(network.training)
    if half:
        shape = shape.to(torch.bfloat16)
    ids = torch.zeros(rows, tokens, dtype=torch.long, device="meta")

    # Already four-dimensional: a two-dimensional mask is looked into, which tensors without storage do not allow.
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


def memory_plan(module: "ReRagTrainer") -> list[str]:
    """Lines that say what a step takes on each device, at the longest inputs, and whether that fits the GPU.

    Raises:
        UserError: If the weights, gradients and optimizer state alone are more than the GPU has.
    """
    trainer, data, hparams = module.trainer, module.trainer.datamodule, module.hparams
    half = str(trainer.precision).startswith("bf16")
    parts = {"estimator": module.estimator, "generator": module.generator}
    networks = {name: part.network for name, part in parts.items() if part is not None}
    weights = sum(p.numel() * p.element_size() for n in networks.values() for p in n.parameters())
    trained = sum(p.numel() * p.element_size() for n in networks.values() for p in n.parameters() if p.requires_grad)
    states = weights + trained * 3 + (weights // 2 if half else 0)  # + gradients, two AdamW moments, autocast's copies
    shares = trainer.world_size * trainer.accumulate_grad_batches
    questions = -(-data.questions_per_step // shares)
    rows_all = questions * (1 if module.packed else data.contexts)
    rows_bucket = min(rows_all, max(1, data.tokens_per_bucket // hparams.max_tokens))
    bucket = sum(
        activation_bytes(
            n, rows_bucket, hparams.max_tokens, 1 if name == "estimator" else hparams.max_answer_tokens, half
        )
        for name, n in networks.items()
    )
    buckets = 1 if hparams.bucket_checkpointing else rows_all / rows_bucket
    total = states + bucket * buckets
    lines = [
        f"memory  {', '.join(f'{name} {sum(p.numel() for p in n.parameters()) / 1e6:.1f} M parameters' for name, n in networks.items())}",
        f"memory  weights, gradients, AdamW: {states / GIB:.2f} GiB",
        f"memory  activations of one bucket ({rows_bucket} rows of {hparams.max_tokens} tokens): {bucket / GIB:.2f} GiB",
        f"memory  a rank's {questions} questions x {data.contexts} contexts at full length: {rows_all} rows, "
        f"{buckets:.1f} buckets kept at once: {total / GIB:.2f} GiB in all",
    ]
    device = trainer.strategy.root_device
    if device.type == "cuda":
        capacity = torch.cuda.get_device_properties(device).total_memory
        lines.append(f"memory  this GPU has {capacity / GIB:.1f} GiB")
        if states > capacity and trainer.world_size == 1:
            raise UserError(
                f"weights, gradients and AdamW take {states / GIB:.1f} GiB, the GPU has {capacity / GIB:.1f}: take smaller "
                "models, or shard over several GPUs with --trainer.strategy fsdp."
            )
        if total > capacity:
            lines.append("memory  too much: set bucket_checkpointing, lower data.tokens_per_bucket, or accumulate more")
    return lines
