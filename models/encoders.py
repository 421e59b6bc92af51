"""Encoders such as MiniLM with a classification head, to be trained as token or sequence classifiers."""

import re
from collections.abc import Mapping
from typing import Any

import torch
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from common.errors import UserError
from models.loading import check_vocabulary, load_config, load_network, load_tokenizer
from models.pretrained import resolve

_UNNAMED = re.compile(r"LABEL_\d+")  # the labels of a model that names none
_OFFSET_POSITIONS = ("roberta", "camembert", "longformer", "mpnet")  # in the names of model types


def is_trained(pretrained: str, family: Any, labels: Mapping[int, str]) -> bool:
    """Whether a model has been trained to tell these labels apart, by its config.json.

    Raises:
        UserError: If it was trained for as many other labels, or for these in another order: its head would be mistaken
            for theirs.
    """
    config = load_config(resolve(pretrained))
    if type(config) not in family._model_mapping:
        return False
    named = family._model_mapping[type(config)].__name__ in (config.architectures or ())
    theirs = list(config.id2label.values()) if named else []
    unnamed = all(_UNNAMED.fullmatch(label) for label in theirs)
    if not unnamed and len(theirs) == len(labels) and theirs != list(labels.values()):
        raise UserError(
            f"{pretrained} was trained for {theirs}, not for {list(labels.values())}: give these, in its order, or "
            "start from another model."
        )
    return not unnamed and len(theirs) == len(labels)


def new_classifier(
    family: Any, pretrained: str, labels: Mapping[int, str], max_tokens: int, dropout: float | None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """An encoder with a head, in fp32, and its tokenizer; the head is new unless the model has one of as many labels.

    Args:
        family: Such as `AutoModelForTokenClassification`.
        pretrained: Folder or hub id of an encoder such as MiniLM or a BERT.
        labels: Names of the head's labels.
        max_tokens: Maximum length of an input, in tokens.
        dropout: Rate for hidden states and attention; the checkpoint's when None.

    Raises:
        MissingInputError: If the model is not on this machine.
        UserError: If it is no encoder, or max_tokens exceeds its positions.
    """
    folder = str(resolve(pretrained))
    config = load_config(folder)
    check_encoder(family, pretrained, config)
    if (room := positions(config)) is not None and max_tokens > room:
        raise UserError(f"max_tokens {max_tokens} is beyond the {room} positions of {pretrained}: lower it.")
    tokenizer = load_tokenizer(folder)
    named = {"num_labels": len(labels), "id2label": dict(labels), "label2id": {name: i for i, name in labels.items()}}
    network = load_network(
        family, folder, new_head=True, dtype=torch.float32, **dropout_rates(config, dropout), **named
    )
    check_vocabulary(tokenizer, network, folder)
    return network, tokenizer


def check_encoder(family: Any, pretrained: str, config: PreTrainedConfig) -> None:
    """Raise UserError if transformers has no encoder of this configuration with such a head."""
    if type(config) not in family._model_mapping or config.is_encoder_decoder:
        raise UserError(
            f"{pretrained} is a {config.model_type!r}, not an encoder: name a MiniLM, BERT, RoBERTa, DeBERTa, MPNet or "
            "ModernBERT."
        )


def positions(config: PreTrainedConfig) -> int | None:
    """Maximum input length of an encoder, in tokens; None if its configuration names none (XLNet's says -1)."""
    room = getattr(config, "max_position_embeddings", None) or -1
    offset = any(name in config.model_type for name in _OFFSET_POSITIONS)  # which begin after the padding token
    return None if room < 0 else int(room) - (offset and (config.pad_token_id or 0) + 1)


def dropout_rates(config: PreTrainedConfig, rate: float | None) -> dict[str, float]:
    """Values of an encoder's configuration that set every dropout rate, whatever its family calls them.

    None for None: the checkpoint's stay.
    """
    return {} if rate is None else {name: rate for name in config.to_dict() if "dropout" in name}
