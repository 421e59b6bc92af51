"""Loads and saves networks and tokenizers of transformers without its bars and tables.

A checkpoint that lacks weights or a vocabulary is refused, or a line says so. No code of a model's folder is run.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import safe_open
from transformers import AutoConfig, AutoTokenizer, PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from common.errors import ArtifactError, MissingInputError, UserError
from common.progress import Progress, say

NAMED = 3  # weights that a message names
_VOCABULARIES = ("tokenizer*.json", "vocab.*", "*.model", "*.tiktoken", "tekken.json")  # files with a tokenizer's words
_NO_VOCABULARY = "tokenizer_config.json"
TRAINED = "trained_on"  # the chat template of a causal cross-encoder that is not its default; empty without one


def load_config(folder: str | Path) -> PretrainedConfig:
    """The configuration of a model's folder.

    Raises:
        UserError: If transformers knows such a model by code in its folder alone.
    """
    try:
        config: PretrainedConfig = AutoConfig.from_pretrained(str(folder), trust_remote_code=False)
    except ValueError as error:
        raise UserError(
            f"{folder}: its config.json names no model of this version of transformers, and code in a model's folder "
            "is not run. Name a model that transformers has."
        ) from error
    return config


def load_tokenizer(folder: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer of a model's folder.

    Raises:
        MissingInputError: If the folder has no file with the tokenizer's words: transformers would make one that knows
            none.
        UserError: If it is one by code in its folder alone.
    """
    found = {file.name for pattern in _VOCABULARIES for file in Path(folder).glob(pattern)} - {_NO_VOCABULARY}
    if not found:
        raise MissingInputError(
            f"{folder} has no tokenizer.json, nor vocab.txt, vocab.json, spiece.model or tokenizer.model: every word "
            "would be unknown. Save the tokenizer that belongs to the model there."
        )
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
    except ValueError as error:
        raise UserError(
            f"{folder}: its tokenizer cannot be loaded by this version of transformers, and code in a model's folder "
            f"is not run ({str(error).splitlines()[0]})."
        ) from error
    if isinstance(tokenizer.chat_template, dict) and TRAINED in tokenizer.chat_template:
        tokenizer.chat_template = tokenizer.chat_template[TRAINED] or None
        tokenizer.truncation_side = "right"  # the other side is for CrossEncoder, which cuts whole prompts
    return tokenizer


def check_vocabulary(tokenizer: PreTrainedTokenizerBase, network: PreTrainedModel, folder: str | Path) -> None:
    """Raise UserError if a tokenizer is another model's: it has more words than the network, or less than half."""
    rows = network.get_input_embeddings().weight.shape[0]
    if tokenizer.vocab_size > rows or 2 * len(tokenizer) < rows:
        raise UserError(
            f"{folder}: its tokenizer has {len(tokenizer):,} tokens, its network embeddings for {rows:,}: save the "
            "tokenizer that belongs to it in that folder."
        )


def load_network(family: Any, folder: str | Path, *, new_head: bool = False, **options: Any) -> PreTrainedModel:
    """Load a network with one of transformers' classes, all of whose weights must be in the folder.

    Args:
        family: Such as `AutoModelForSequenceClassification`.
        folder: The model's folder.
        new_head: Whether weights of the head may be missing or of another shape: they start at random, and a line says
            so. The pooler of a BERT counts as a part of the head: its encoder never uses it.
        options: Of `from_pretrained`.

    Raises:
        ArtifactError: If other weights are missing or of another shape: they would be random.
    """
    with quiet(), Progress(f"loading {folder}"):
        network, found = family.from_pretrained(
            folder, output_loading_info=True, ignore_mismatched_sizes=True, trust_remote_code=False, **options
        )
    random = {*found["missing_keys"], *(name for name, *_ in found["mismatched_keys"])}
    body = f"{network.base_model_prefix}."
    has_head = any(not name.startswith(body) for name in network.state_dict())  # a bare encoder has no such prefix
    head = {name for name in random if ".pooler." in f".{name}" or (has_head and not name.startswith(body))}
    lacking = sorted(random - head if new_head else {name for name in random if not name.startswith("pooler.")})
    if not lacking and network.config.is_encoder_decoder and _head_alone(Path(folder)):
        lacking = ["shared.weight"]
    if lacking:
        raise ArtifactError(
            f"{folder} lacks {len(lacking)} weights of a {type(network).__name__}, such as "
            f"{', '.join(lacking[:NAMED])}: they would be random. Name a complete checkpoint of this family."
        )
    if new_head and head:
        say(f"{folder}: new head, from random weights: {', '.join(sorted(head))}.")
    return network


def _head_alone(folder: Path) -> bool:
    """Whether an untied T5's file has an output layer and no embedding: transformers takes the one for the other."""
    if json.loads((folder / "config.json").read_text(encoding="utf-8")).get("tie_word_embeddings", True):
        return False
    names: set[str] = set()
    for file in folder.glob("*.safetensors"):
        with safe_open(file, framework="pt") as weights:
            names.update(weights.keys())
    return "lm_head.weight" in names and not any("shared." in name or "embed_tokens." in name for name in names)


def save_network(network: PreTrainedModel, folder: str | Path, tokenizer: Any = None, **options: Any) -> None:
    """Save a network, and its tokenizer; `options` are those of `save_pretrained`."""
    with quiet():
        network.save_pretrained(folder, **options)
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from showing its bars (over files and tensors) and its table of weights, not warnings."""
    loader = logging.getLogger("transformers.modeling_utils")
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    loader.addFilter(_is_no_report)
    try:
        yield
    finally:
        loader.removeFilter(_is_no_report)
        if shown:
            transformers_logging.enable_progress_bar()


def _is_no_report(record: logging.LogRecord) -> bool:
    """False for the table of missing and unexpected weights, whose content is checked above, and for untied heads.

    T5 v1.1, Flan-T5 and mT5 have an output layer that is not the embedding.  transformers keeps it, and warns.
    """
    text = record.getMessage()
    # transformers' error after CONVERSION refers to the table
    report = "LOAD REPORT" in text and "CONVERSION" not in text
    return not report and "so we will NOT tie them" not in text
