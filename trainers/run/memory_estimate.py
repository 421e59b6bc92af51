"""Memory estimate of a training step: weights, gradients, AdamW states and activations; what cannot fit is refused.

Activations are counted: a copy of each network on the `meta` device (shapes without storage) runs one batch forward,
and the tensors that autograd saves for the backward pass are added up.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from common.errors import UserError
from models.counted_autocast import CountedAutocast
from models.device_memory import available_bytes
from models.full_precision import keep_heads_in_fp32
from trainers.run.strategies import Fsdp2Strategy, transformer_layers

GIB = 2**30
BESIDES = "memory  besides the step: libraries, data, and kernels compiled for every shape of a batch: 1 GiB or more"


def saved_bytes(
    network: PreTrainedModel, run: Callable[[PreTrainedModel], Tensor], copies: Mapping[int, Tensor] | None = None
) -> int:
    """Bytes that autograd saves for the backward pass of `run(network)`: each storage once, without parameters.

    Args:
        network: The model.
        run: Computes its forward pass.
        copies: Copies of parameters, which are not counted either; `run` may add to them.
    """
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
    copied = {made.untyped_storage()._cdata for made in (copies or {}).values()}
    return sum(size for storage, size in kept.items() if storage not in copied)


class _FusedAttention(torch.autograd.Function):
    """Saves what a fused attention kernel saves: query, key, value, mask, output, and one number per query."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        output = torch.empty_like(query)
        mask = None if mask is None else mask.to(query.dtype)
        ctx.save_for_backward(query, key, value, mask, output, torch.empty_like(query[..., 0], dtype=torch.float32))
        return output


class _FusedKernels(TorchFunctionMode):
    """Runs scaled_dot_product_attention as the device's fused kernel does; the meta device has the unfused one only.

    On a CPU the kernel supports neither dropout nor a gradient of the mask (T5's position bias).
    """

    def __init__(self, on_gpu: bool) -> None:
        super().__init__()
        self.on_gpu = on_gpu

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is F.scaled_dot_product_attention:
            mask = kwargs.get("attn_mask")
            if self.on_gpu or not (kwargs.get("dropout_p") or (mask is not None and mask.requires_grad)):
                query, key, value = (*args, *(kwargs[name] for name in ("query", "key", "value")[len(args) :]))[:3]
                return _FusedAttention.apply(query, key, value, mask)
        return func(*args, **kwargs)


def on_meta(network: PreTrainedModel) -> PreTrainedModel:
    """A copy of a network on the `meta` device, made without copying its weights."""
    copied: dict[int, Any] = {}
    for parameter in network.parameters():
        copied[id(parameter)] = torch.nn.Parameter(torch.empty_like(parameter, device="meta"), parameter.requires_grad)
    for buffer in network.buffers():
        copied[id(buffer)] = torch.empty_like(buffer, device="meta")
    return copy.deepcopy(network, copied)


def activation_bytes(
    network: PreTrainedModel, rows: int, tokens: int, answer_tokens: int, half: bool, on_gpu: bool = False
) -> int:
    """Bytes of one forward pass's activations in one network.

    With gradient checkpointing these are the inputs of the layers and the activations of one layer, which are computed
    again.

    Args:
        network: A T5-family model or a sequence classifier; only its shapes are used.
        rows: Rows of the batch.
        tokens: Tokens per row, padding included.
        answer_tokens: Decoder tokens per row; ignored without a decoder.
        half: Whether activations are bfloat16.
        on_gpu: Whether attention uses a GPU's kernels.
    """
    if network.config.model_type == "longformer":
        return _longformer_bytes(network, rows, tokens, half, on_gpu)
    shape = on_meta(network)
    ids = torch.zeros(rows, tokens, dtype=torch.long, device="meta")
    if getattr(shape.config, "attention_type", None) == "block_sparse":
        mask = torch.zeros(rows, tokens, dtype=torch.long, device="meta")
    else:  # four-dimensional: transformers reads the values of a two-dimensional mask, and meta tensors have none
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

    def count() -> int:
        lower = CountedAutocast(on_gpu, fp32_attention=not on_gpu and not shape.config.is_encoder_decoder)
        with _FusedKernels(on_gpu), torch.autocast("cpu", torch.bfloat16, enabled=half), lower:
            return saved_bytes(shape, run, lower.copies)

    kept = count()
    if shape.is_activation_checkpointing:
        shape.activation_checkpointing_disable()
        kept += (count() - kept) // shape.config.num_hidden_layers
    return kept


def _longformer_bytes(network: PreTrainedModel, rows: int, tokens: int, half: bool, on_gpu: bool) -> int:
    """As `activation_bytes`.  Longformer's attention reads the values of its mask, and meta tensors have none.

    So two rows (of one, fewer tensors are copied) run on the CPU through random copies of one and of two layers;
    further rows and layers need the same again.
    """
    word = network.config.pad_token_id + 1
    ids = torch.full((2, tokens), word)

    def kept(recomputed: bool) -> tuple[int, int]:
        """Bytes of two rows in all layers, and in one of them."""
        bytes_by_layers = []
        for layers in (1, 2):
            config = copy.deepcopy(network.config)
            config.num_hidden_layers, config.vocab_size = layers, word + 1
            if not isinstance(config.attention_window, int):
                config.attention_window = config.attention_window[:layers]
            with torch.random.fork_rng(devices=[]):
                copied = type(network)(config).train(network.training)
                keep_heads_in_fp32(copied)
                if recomputed:
                    copied.activation_checkpointing_enable({"use_reentrant": False})
                lower = CountedAutocast(on_gpu, fp32_attention=False)
                with torch.autocast("cpu", torch.bfloat16, enabled=half), lower:
                    bytes_by_layers.append(saved_bytes(copied, lambda model: model(input_ids=ids).logits, lower.copies))
        one, two = bytes_by_layers
        return one + (two - one) * (network.config.num_hidden_layers - 1), two - one

    whole, layer = kept(recomputed=False)
    return rows * (kept(recomputed=True)[0] + layer if network.is_activation_checkpointing else whole) // 2


def _gathered_bytes(network: PreTrainedModel) -> int:
    """Bytes of whole weights and gradients that FSDP2 holds at a time.

    What is in no layer, a layer and the next one.
    """
    sizes = [sum(p.numel() * p.element_size() for p in layer.parameters()) for layer in transformer_layers(network)]
    outside = sum(p.numel() * p.element_size() for p in network.parameters()) - sum(sizes)
    return 2 * (outside + 2 * max(sizes))


def memory_plan(
    networks: Mapping[str, PreTrainedModel],
    batches: Sequence[tuple[int, int]],
    answer_tokens: Mapping[str, int],
    half: bool,
    one_batch: bool,
    device: torch.device,
    ranks: int = 1,
    sharded: bool = False,
    shapes: Mapping[str, PreTrainedModel] | None = None,
) -> tuple[list[str], int]:
    """Lines with the memory of a step on one device, and its bytes in all.

    Args:
        networks: By name: classifier, estimator, generator, t5.
        batches: Rows and tokens per row of every forward pass before one backward pass.
        answer_tokens: Decoder tokens per row, by network; networks without a decoder need none.
        half: Whether activations are bfloat16.
        one_batch: Whether the activations of only one forward pass are kept at a time.
        device: The device that trains.
        ranks: Processes that train together; with several, DDP keeps the gradients a second time, to send them.
        sharded: Whether FSDP2 divides weights, gradients and moments among them.
        shapes: By name, networks whose activations are counted in the place of those of `networks`: of quantized ones,
            whose layers do not compute on the meta device.
    """
    weights = sum(p.numel() * p.element_size() for n in networks.values() for p in n.parameters())
    trained = sum(p.numel() * p.element_size() for n in networks.values() for p in n.parameters() if p.requires_grad)
    copies = 3 + (ranks > 1)  # gradients, two moments of AdamW; DDP's buckets
    states = weights + trained * copies
    if sharded:
        states = (weights + trained * 3) // ranks + sum(_gathered_bytes(network) for network in networks.values())
    floating = sum(p.nbytes for n in networks.values() for p in n.parameters() if p.is_floating_point())
    states += floating // 2 if half else 0  # what autocast casts
    shapes = {**networks, **(shapes or {})}
    rows, tokens = max(batches, key=lambda shape: (shape[0] * shape[1], shape[1]))
    largest = sum(
        activation_bytes(n, rows, tokens, answer_tokens.get(name, 1), half, device.type == "cuda")
        for name, n in shapes.items()
    )
    kept = 1.0 if one_batch else sum(r * t for r, t in batches) / (rows * tokens)
    total = round(states + largest * kept)
    sizes = ", ".join(f"{name} {sum(p.numel() for p in n.parameters()) / 1e6:.1f} M" for name, n in shapes.items())
    lines = [
        f"memory  parameters: {sizes}; weights, gradients, AdamW: {states / GIB:.2f} GiB",
        f"memory  activations of {rows} rows of {tokens} tokens: {largest / GIB:.2f} GiB, of all rows before a "
        f"backward pass: {largest * kept / GIB:.2f} GiB",
        f"memory  a training step: {total / GIB:.2f} GiB in all",
    ]
    return lines, total


def check_memory(
    trainer: pl.Trainer,
    networks: Mapping[str, PreTrainedModel],
    batches: Sequence[tuple[int, int]],
    lower: str,
    answer_tokens: Mapping[str, int] | None = None,
    one_batch: bool = False,
    shapes: Mapping[str, PreTrainedModel] | None = None,
) -> None:
    """Print the memory plan of a run on rank 0, and refuse a step that cannot fit.

    Called before anything is on the device.

    Args:
        trainer: With its device and precision.
        networks: See `memory_plan`.
        batches: See `memory_plan`; of a typical or the largest step of the data.
        lower: What to lower when it does not fit; ends the message.
        answer_tokens: See `memory_plan`.
        one_batch: See `memory_plan`.
        shapes: See `memory_plan`.

    Raises:
        UserError: If the step needs more memory than there is.
    """
    device = trainer.strategy.root_device
    half = str(trainer.precision).startswith("bf16")
    lines, needed = memory_plan(
        networks,
        batches,
        answer_tokens or {},
        half,
        one_batch,
        device,
        trainer.world_size,
        isinstance(trainer.strategy, Fsdp2Strategy),
        shapes,
    )
    if device.type == "cpu":
        lines.append(BESIDES)
    if trainer.is_global_zero:
        print("\n".join(lines), flush=True)
    there = available_bytes(device)
    if there is None:
        return
    processes, place = 1, "this GPU"
    if device.type == "cpu":  # the processes share the memory, and every one holds its weights already
        processes, place = trainer.num_devices, "this machine"
        there += processes * sum(p.numel() * p.element_size() for n in networks.values() for p in n.parameters())
    if needed * processes > there:
        each = f" in each of {processes} processes" if processes > 1 else ""
        raise UserError(
            f"a training step needs about {needed / GIB:.1f} GiB{each}, and {place} has {there / GIB:.1f} GiB free: "
            f"{lower}."
        )
