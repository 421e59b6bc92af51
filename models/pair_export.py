"""Exports pair classifiers for other tools.

AutoTokenizer's pair call and sentence-transformers' CrossEncoder give our scores.

Shape legend: P pairs, L labels.
"""

import copy
import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from common.errors import UserError
from common.files import write_json
from models.loading import save_network
from models.lora import adapters_of, merged_weights

# CrossEncoder applies this function to the logit; its default for one label is the sigmoid.
IDENTITY = {"activation_fn": "torch.nn.modules.linear.Identity"}
SENTENCE_TRANSFORMERS = "sentence-transformers"  # as the hub names the library
TRANSFORMER = {
    "idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer",
}  # fmt: skip
TRANSFORMER_FILE, LIBRARY_FILE = "sentence_bert_config.json", "config_sentence_transformers.json"
SPECIAL_NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


def log_odds_of(logits_PL: Tensor) -> Tensor:
    """Log-odds (P,) of relevance: the logit of a one-label head, or logit of label 1 minus logit of label 0."""
    return logits_PL[:, 0] if logits_PL.shape[1] == 1 else logits_PL[:, 1] - logits_PL[:, 0]


def output_layer(network: PreTrainedModel) -> tuple[str, nn.Linear]:
    """Name and module of the last layer of a sequence classifier."""
    labels = network.config.num_labels
    layers = [(n, m) for n, m in network.named_modules() if isinstance(m, nn.Linear) and m.out_features == labels]
    return layers[-1]


def widen(network: PreTrainedModel) -> None:
    """Turn a one-label head into a two-label head with the same log-odds, in place."""
    name, head = output_layer(network)
    wide = nn.Linear(head.in_features, 2)
    with torch.no_grad():
        wide.weight.copy_(torch.cat([-head.weight / 2, head.weight / 2]))
        wide.bias.copy_(torch.cat([-head.bias / 2, head.bias / 2]))
    network.set_submodule(name, wide)
    network.num_labels = 2


def save_one_score(network: PreTrainedModel, folder: Path) -> None:
    """Save a classifier of one or two labels with a one-label head, whose logit is the log-odds of relevance.

    A LoRA adapter is merged.
    """
    weights = merged_weights(network) if adapters_of(network.base_model) else dict(network.state_dict())
    labels = dict(network.config.id2label)
    if network.config.num_labels == 2:
        name, head = output_layer(network)
        weights[f"{name}.weight"] = head.weight[1:] - head.weight[:1]
        weights[f"{name}.bias"] = head.bias[1:] - head.bias[:1]
        labels = {0: labels[1]}
    save_network(network, folder, state_dict=weights)
    config = copy.deepcopy(network.config)  # after saving: `architectures` and `dtype` are set there
    config.id2label, config.label2id = labels, {label: 0 for label in labels.values()}
    config.sentence_transformers = IDENTITY
    config.save_pretrained(folder)


def with_max_tokens(tokenizer: PreTrainedTokenizerBase, max_tokens: int) -> PreTrainedTokenizerBase:
    """A copy of a tokenizer that truncates at `max_tokens` unless told otherwise."""
    copied = copy.deepcopy(tokenizer)
    copied.model_max_length = max_tokens
    return copied


def pair_tokenizer(
    tokenizer: PreTrainedTokenizerBase, max_tokens: int, token_types: bool, separator_inside: bool
) -> PreTrainedTokenizerBase:
    """A copy of a tokenizer whose pair call gives a classifier's input.

    Args:
        tokenizer: Of the classifier.
        max_tokens: Length that it truncates at unless told otherwise.
        token_types: Whether it returns token type ids: exactly if the classifier was trained with them.
        separator_inside: Whether the second text of a pair contains separators, as in `x [SEP] y`.  A pair then becomes
            `[CLS] A [SEP] B [SEP]` (RoBERTa's tokenizers would write two separators after A), blanks around a separator
            are dropped, and the text after it is tokenized as if it stood alone.

    Raises:
        UserError: If it is not a fast tokenizer (tokenizer.json).
    """
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise UserError(f"{tokenizer.name_or_path} has no fast tokenizer: save one as tokenizer.json in its folder.")
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    state["truncation"] = state["padding"] = None
    if separator_inside:
        for token in state["added_tokens"]:
            if token["content"] == tokenizer.sep_token:
                token["lstrip"] = token["rstrip"] = True
        prefix_every_part(state["pre_tokenizer"])
    backend = Tokenizer.from_str(json.dumps(state))
    if separator_inside:
        cls, sep = tokenizer.cls_token, tokenizer.sep_token
        backend.post_processor = TemplateProcessing(
            single=f"{cls} $A {sep}",
            pair=f"{cls} $A {sep} $B {sep}",
            special_tokens=[(cls, tokenizer.cls_token_id), (sep, tokenizer.sep_token_id)],
        )
    return rebuilt(tokenizer, backend, max_tokens, token_types)


def rebuilt(
    tokenizer: PreTrainedTokenizerBase, backend: Tokenizer, max_tokens: int, token_types: bool = False, **options: Any
) -> PreTrainedTokenizerBase:
    """A tokenizer with another backend; see `pair_tokenizer`.

    Of the base class: a model's own tokenizer class would write its parts over those of the backend when it is loaded.
    """
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_max_length=max_tokens,
        model_input_names=["input_ids", *["token_type_ids"] * token_types, "attention_mask"],
        clean_up_tokenization_spaces=False,
        extra_special_tokens=list(tokenizer.extra_special_tokens),
        **{name: getattr(tokenizer, name) for name in SPECIAL_NAMES if getattr(tokenizer, name) is not None},
        **options,
    )


def prefix_every_part(pre_tokenizer: dict[str, Any] | None) -> None:
    """Let SentencePiece's word-start mark stand first in every part between special tokens, in place."""
    for part in (pre_tokenizer or {}).get("pretokenizers", [pre_tokenizer or {}]):
        if part.get("type") == "Metaspace" and part.get("prepend_scheme") == "first":
            part["prepend_scheme"] = "always"


def pad_always_to(folder: Path, tokens: int) -> None:
    """Make CrossEncoder pad every batch to `tokens`; by default it pads to the longest text of the batch."""
    text = {"method": "forward", "method_output_name": "logits"}
    write_json(
        folder / TRANSFORMER_FILE,
        {
            "transformer_task": "sequence-classification",
            "modality_config": {"text": text},
            "module_output_name": "scores",
            "processing_kwargs": {"text": {"padding": "max_length", "max_length": tokens}},
        },
    )
    write_json(folder / "modules.json", [TRANSFORMER])
    write_json(folder / LIBRARY_FILE, {"model_type": "CrossEncoder", **IDENTITY})
