"""LoRA (Hu et al. 2021) by peft.

One or several adapters inside a network, their files, and the weights with one merged in.

peft takes seconds to import, so it is imported where it is used.
"""

import copy
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from common.errors import UserError
from common.ranges import DropoutRate, PositiveInt
from models.serving_manifest import without_place

ADAPTER = "default"  # peft's name of an only adapter
_FILE = "adapter_model.safetensors"
_ADAPTED = ".lora_"  # in the names of adapters' weights
_PREFIX = "base_model.model."  # of the names in a file of peft's
_BASE = ".base_layer."


@dataclass(frozen=True)
class Lora:
    """A LoRA adapter.

    Args:
        rank: Rank of the update of a matrix; null for no adapter: all weights are trained.
        alpha: The update is scaled by alpha / rank.
        dropout: Dropout rate of the adapter's input.
        targets: Layers that get an adapter, by the last part of their names, e.g. [q, v] of a T5; every linear layer
            but the head when null.
    """

    rank: PositiveInt | None = None
    alpha: PositiveInt = 32
    dropout: DropoutRate = 0.0
    targets: list[str] | None = None


def add_adapter(network: PreTrainedModel, base: str, lora: Lora, name: str = ADAPTER) -> None:
    """Put LoRA layers into a network, in place, and freeze all weights but those of its adapters.

    It computes the same as before until it is trained.  Of several adapters the one that was added last computes, until
    `AdapterSwitch` chooses another.

    Args:
        network: The network.
        base: Folder or hub id that it was loaded from, for adapter_config.json.
        lora: The adapter, with a rank.
        name: Of the adapter.

    Raises:
        UserError: If no layer has such a name, or peft cannot name an adapter so.
    """
    from peft import LoraConfig, TaskType, inject_adapter_in_model

    if not re.fullmatch(r"[\w-]+", name) or hasattr(torch.nn.ModuleDict, name):
        raise UserError(
            f"an adapter cannot be named {name!r}: name the strategy by letters, digits, _ and -, such as gqr."
        )
    assert lora.rank is not None  # callers ask
    if words := _embeddings(network, lora.targets or ()):
        raise UserError(
            f"lora.targets {lora.targets}: {', '.join(words)} of {base} looks words up, and an adapter there would "
            "train nothing or not be merged. Name linear layers, or omit the option for all of them."
        )
    transposed = any(isinstance(module, Conv1D) for module in network.modules())  # GPT-2's layers
    kind = TaskType.FEATURE_EXTRACTION  # of a body without a head
    if network.get_output_embeddings() is not None:
        kind = TaskType.SEQ_2_SEQ_LM if network.config.is_encoder_decoder else TaskType.CAUSAL_LM
    config = LoraConfig(
        task_type=kind, r=lora.rank, lora_alpha=lora.alpha, lora_dropout=lora.dropout, base_model_name_or_path=base,
        target_modules=lora.targets or "all-linear", fan_in_fan_out=transposed,
    )  # fmt: skip
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Already found a `peft_config`", UserWarning)
            inject_adapter_in_model(config, network, name)
    except ValueError as error:
        linear = sorted(
            {name.rpartition(".")[2] for name, m in network.named_modules() if isinstance(m, torch.nn.Linear)}
        )
        raise UserError(
            f"lora.targets {lora.targets or []} are no layers of {base}: omit them, or name some of "
            f"{', '.join(linear)}."
        ) from error
    for parameter_name, parameter in network.named_parameters():  # peft freezes the adapters that it added before
        parameter.requires_grad_(_ADAPTED in parameter_name)


def _embeddings(network: PreTrainedModel, targets: Iterable[str]) -> list[str]:
    """Those of the targets that name an embedding."""
    embeddings = [name for name, module in network.named_modules() if isinstance(module, torch.nn.Embedding)]
    return [target for target in targets if any(f".{name}".endswith(f".{target}") for name in embeddings)]


def adapters_of(network: PreTrainedModel) -> list[str]:
    """Names of a network's adapters, in the order in which they were added; empty without any."""
    return list(getattr(network, "peft_config", ()))


def adapter_parameters(network: PreTrainedModel, name: str) -> list[torch.nn.Parameter]:
    """The weights of one adapter."""
    return [p for key, p in network.named_parameters() if _ADAPTED in key and f".{name}." in key]


def adapter_names(state_names: Iterable[str]) -> list[str]:
    """Names of the adapters among the names of weights in a state_dict, in order."""
    found = [re.search(r"\.lora_[AB]\.([\w-]+)\.weight$", name) for name in state_names]
    return list(dict.fromkeys(match[1] for match in found if match))


class AdapterSwitch:
    """Chooses which of a network's adapters computes.  Nothing else changes; the same weights are trained.

    Args:
        network: With all its adapters.
    """

    def __init__(self, network: PreTrainedModel) -> None:
        from peft.tuners.lora import LoraLayer

        self._layers: list[Any] = [module for module in network.modules() if isinstance(module, LoraLayer)]

    @contextmanager
    def using(self, name: str | list[str]) -> Iterator[None]:
        """Within the context this adapter computes."""
        before = self._layers[0].active_adapter
        self._activate(name)
        try:
            yield
        finally:
            self._activate(before)

    def groups(self, names: Sequence[str]) -> Iterator[list[int]]:
        """Yields the rows by adapter; while they are used, their adapter computes."""
        rows: dict[str, list[int]] = {}
        for row, name in enumerate(names):
            rows.setdefault(name, []).append(row)
        for name, group in rows.items():
            with self.using(name):
                yield group

    def checkpoint_contexts(self) -> tuple[AbstractContextManager, AbstractContextManager]:
        """`context_fn` of torch.utils.checkpoint: activations are recomputed with the adapter of their forward pass."""
        return nullcontext(), self.using(self._layers[0].active_adapter)

    def _activate(self, name: str | list[str]) -> None:
        for layer in self._layers:
            layer._active_adapter = name  # peft's set_adapter would freeze the others, within a step


class AdapterUse:
    """Computation with one of a network's adapters, or with none of them.

    Args:
        network: With all its adapters.
        name: Of the adapter; None for the base model alone.

    `weights`: the adapter's.
    """

    def __init__(self, network: PreTrainedModel, name: str | None) -> None:
        self.switch, self.name = AdapterSwitch(network), name
        self.weights = adapter_parameters(network, name) if name is not None else []

    def on(self) -> AbstractContextManager[None]:
        """Within the context it computes."""
        return self.switch.using(self.name or [])


def save_adapter(network: PreTrainedModel, folder: Path, name: str = ADAPTER) -> None:
    """Write adapter_config.json and adapter_model.safetensors, which peft and transformers load."""
    from peft.utils.save_and_load import get_peft_model_state_dict

    folder.mkdir(parents=True)
    weights = get_peft_model_state_dict(network, adapter_name=name)
    save_file(
        {_PREFIX + name: value.contiguous().cpu() for name, value in weights.items()}, folder / _FILE, {"format": "pt"}
    )
    config = network.peft_config[name]
    saved = copy.copy(config)
    saved.inference_mode, saved.base_model_name_or_path = True, without_place(config.base_model_name_or_path)
    saved.save_pretrained(str(folder))


def load_adapters(network: PreTrainedModel, folders: Mapping[str, Path]) -> None:
    """Put the adapters of folders, by name, into a freshly loaded base network, in place, as peft does."""
    from peft import PeftModel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of transformers, about a name that peft uses
        (first, folder), *others = folders.items()
        model = PeftModel.from_pretrained(network, str(folder), adapter_name=first)
        for name, folder in others:
            model.load_adapter(str(folder), adapter_name=name)


def merged_weights(network: PreTrainedModel, adapter: str | None = ADAPTER) -> dict[str, Tensor]:
    """Weights by their names in the base network, with an adapter's update added, or without any.

    The update is in the weights' precision.

    The network stays as it is.
    """
    from peft.tuners.lora import LoraLayer

    layers: dict[str, Any] = {name: module for name, module in network.named_modules() if isinstance(module, LoraLayer)}
    merged = {}
    with torch.no_grad():
        for name, value in network.state_dict().items():
            layer, inside, parameter = name.rpartition(_BASE)
            if inside:
                changed = adapter is not None and parameter == "weight"
                update = layers[layer].get_delta_weight(adapter) if changed else 0
                merged[f"{layer}.{parameter}"] = value + update
            elif not any(name.startswith(f"{layer}.lora_") for layer in layers):
                merged[name] = value
    return merged
