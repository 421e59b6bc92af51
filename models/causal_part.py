"""A causal LM as a part of RE-RAG, estimator or generator: loaded, computed with its adapter, saved."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from common.errors import UserError
from models.causal_lm import CausalLanguageModel, is_causal
from models.loading import load_config, save_network
from models.lora import AdapterSwitch, AdapterUse, Lora, adapters_of, add_adapter, load_adapters, merged_weights
from models.pretrained import resolve
from models.prompt_tokenizer import PromptEncoder


def reads_prompts(pretrained: str) -> bool:
    """Whether a model is a causal LM."""
    return is_causal(load_config(resolve(pretrained)))


def load_causal(
    pretrained: str,
    what: str,
    dropout: float | None = None,
    gradient_checkpointing: bool = False,
    lora: Lora | None = None,
    adapters: Sequence[str] = (),
) -> CausalLanguageModel:
    """Load a causal LM as a part of RE-RAG, or as both.

    Args:
        pretrained: Folder or hub id.
        what: Name of the part, for messages.
        dropout: Of a T5; None here.
        gradient_checkpointing: Recompute activations in the backward pass.
        lora: New adapters for training, which train in the place of all other weights.
        adapters: Their names.

    Raises:
        MissingInputError: If the model is not on this machine.
        UserError: If an option does not fit a causal LM.
    """
    if dropout is not None:
        raise UserError(f"dropout is for a T5, and {what} {pretrained} is a causal LM: omit it; see lora.dropout.")
    lm = CausalLanguageModel.build(pretrained)
    contexts: dict[str, Any] = {}
    if lora is not None and adapters:
        for name in adapters:
            add_adapter(lm.network, pretrained, lora, name)
        contexts = {"context_fn": AdapterSwitch(lm.network).checkpoint_contexts}
    if gradient_checkpointing:
        lm.network.activation_checkpointing_enable({"use_reentrant": False, **contexts})
    return lm


def load_adapted(serving: Path, base: str, adapters: Sequence[str]) -> CausalLanguageModel:
    """The base model of a serving folder, with the adapters of its parts by these names."""
    lm = CausalLanguageModel.build(str(serving / base))
    if adapters:
        load_adapters(lm.network, {name: serving / name for name in adapters})
    return lm


def use_of(network: PreTrainedModel, name: str) -> AdapterUse | None:
    """How a part computes with a network: with the adapter of its name, or without any if others have one."""
    names = adapters_of(network)
    return AdapterUse(network, name if name in names else None) if names else None


def save_causal(network: PreTrainedModel, encode: PromptEncoder, folder: Path) -> None:
    """Write config.json, generation_config.json, model.safetensors without adapters, and the tokenizer."""
    weights = {"state_dict": merged_weights(network, None)} if adapters_of(network) else {}
    save_network(network, folder, encode.tokenizer, **weights)


def computing(adapter: AdapterUse | None) -> AbstractContextManager[Any]:
    """Within the context an adapter computes; without one the network as it is."""
    return adapter.on() if adapter is not None else nullcontext()
