"""Memory of inference, counted before anything is loaded.

Weights, and the largest sum of the tensors alive in one batch.

Networks are built from `config.json` on the `meta` device (shapes without storage) and run once; every tensor counts
from the operation that makes it until it is freed.

Shape legend: P rows, T tokens.
"""

import copy
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AutoConfig, PreTrainedModel

from models.counted_autocast import CountedAutocast

_REAL_ROWS = 2  # rows of a network that runs on the CPU; further rows need the same again


@dataclass(frozen=True, slots=True)
class PartMemory:
    """Memory of a network at inference, bytes."""

    weights: int  # parameters and buffers, fp32
    copies: int = 0  # copies of weights in bf16 that autocast makes
    batch: int = 0  # largest sum of all other tensors during one batch
    batches_at_once: int = 1  # on a CPU one batch per thread is computed
    kept: int = 0  # what is kept between batches, such as the states of contexts

    @property
    def activations(self) -> int:
        """Everything but the weights."""
        return self.copies + self.batch * self.batches_at_once + self.kept


@dataclass(frozen=True, slots=True)
class Compute:
    """How a network computes."""

    on_gpu: bool
    half: bool  # matrix products in bf16
    threads: int  # CPU threads; on a CPU each computes a batch

    @property
    def device(self) -> str:
        """Key of the tables of batch sizes: cpu or cuda."""
        return "cuda" if self.on_gpu else "cpu"


class LiveBytes(TorchDispatchMode):
    """Counts the bytes of tensors that are made and not freed yet, each storage once.

    Args:
        existing: Tensors that do not count, such as the weights.
    """

    def __init__(self, existing: Sequence[Tensor]) -> None:
        super().__init__()
        self.alive = self.peak = 0
        self._known = {tensor.untyped_storage()._cdata for tensor in existing}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, Tensor):
                self._count(tensor.untyped_storage())
        return made

    def _count(self, storage: torch.UntypedStorage) -> None:
        identity, size = storage._cdata, storage.nbytes()
        if identity in self._known:
            return
        self._known.add(identity)
        self.alive += size
        self.peak = max(self.peak, self.alive)
        weakref.finalize(storage, self._freed, identity, size)

    def _freed(self, identity: int, size: int) -> None:
        self._known.discard(identity)
        self.alive -= size


class _PaddedMasks(TorchFunctionMode):
    """Answers that a mask without storage has padding.

    Transformers asks whether all of it is 1, to leave out such a mask.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is Tensor.all and args[0].is_meta:
            return torch.tensor(False)
        if func is Tensor.__bool__ and args[0].is_meta:
            return False
        return func(*args, **(kwargs or {}))


def empty_network(family: Any, folder: str | Path, **options: Any) -> tuple[PreTrainedModel, int]:
    """A network without weights, whose tensors can be counted, and the bytes of the weights in fp32, as loaded.

    Longformer reads the values of its mask, which tensors without storage lack: it gets
    two layers of random weights.

    Args:
        family: Such as `AutoModelForSequenceClassification`.
        folder: Folder with `config.json`.
        options: Values of the configuration that differ from the file.
    """
    config = AutoConfig.from_pretrained(str(folder), **options)
    with torch.device("meta"):
        network = family.from_config(config, dtype=torch.float32).eval()
    weights = sum(tensor.nbytes for tensor in (*network.parameters(), *network.buffers()))
    if config.model_type == "longformer":
        config = copy.deepcopy(config)
        config.num_hidden_layers, config.vocab_size = min(2, config.num_hidden_layers), config.pad_token_id + 2
        if not isinstance(config.attention_window, int):
            config.attention_window = config.attention_window[: config.num_hidden_layers]
        with torch.random.fork_rng(devices=[]):
            network = family.from_config(config, dtype=torch.float32).eval()
    return network, weights


def batch_size(rows: int, tokens: int, tokens_per_batch: int, compute: Compute) -> tuple[int, int]:
    """Rows of the largest batch, and how many batches are computed at once, of `rows` rows of `tokens` tokens."""
    largest = max(1, min(rows, tokens_per_batch // tokens))
    at_once = 1 if compute.on_gpu else min(compute.threads, -(-rows // largest))
    return largest, at_once


def largest_sum(network: PreTrainedModel, run: Callable[[], object], compute: Compute) -> tuple[int, int]:
    """Bytes of autocast's copies of weights, and the largest sum of all other tensors during `run`.

    Args:
        network: From `empty_network`, perhaps changed since; its weights do not count.
        run: Computes a batch, with all tensors on the network's device.
        compute: Precision and device.
    """
    lower = CountedAutocast(compute.on_gpu, fp32_attention=False)
    with (
        torch.inference_mode(),
        torch.autocast("cpu", torch.bfloat16, enabled=compute.half),
        lower,
        _PaddedMasks(),
    ):
        if compute.half:
            run()  # makes the copies, which the second run uses
        copies = list(lower.copies.values())
        live = LiveBytes([*network.parameters(), *network.buffers(), *copies])
        with live:
            run()
    return sum(each.nbytes for each in copies), live.peak


def forward_memory(
    network: PreTrainedModel,
    weights: int,
    forward: Callable[[Tensor, Tensor], object],
    batch: tuple[int, int],
    batches_at_once: int,
    compute: Compute,
) -> PartMemory:
    """Memory of a network that computes batches of token ids.

    Args:
        network: From `empty_network`.
        weights: Bytes of the weights.
        forward: Takes ids and attention mask, both (P, T).
        batch: P and T of the largest batch.
        batches_at_once: From `batch_size`.
        compute: Precision and device.
    """
    rows, tokens = batch
    counted = rows if network.device.type == "meta" else min(rows, _REAL_ROWS)
    ids_PT = torch.full((counted, tokens), (network.config.pad_token_id or 0) + 1, device=network.device)
    attention_PT = torch.ones_like(ids_PT)
    copies, peak = largest_sum(network, lambda: forward(ids_PT, attention_PT), compute)
    return PartMemory(weights, copies, peak * rows // counted, batches_at_once)
