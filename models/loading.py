"""Loads and saves networks of transformers without its bars and tables.

A checkpoint that lacks weights is refused or told.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel
from transformers.utils import logging as transformers_logging

from common.errors import ArtifactError
from common.progress import Progress, say

NAMED = 3  # weights that a message names


def load_network(family: Any, folder: str | Path, *, new_head: bool = False, **options: Any) -> PreTrainedModel:
    """Load a network with one of transformers' classes, all of whose weights must be in the folder.

    Args:
        family: Such as `AutoModelForSequenceClassification`.
        folder: The model's folder.
        new_head: Whether weights of the head may be missing or of another shape: they start at random, which is told in
            one line. The pooler of a BERT counts as a part of the head: its encoder never uses it.
        options: Of `from_pretrained`.

    Raises:
        ArtifactError: If other weights are missing or of another shape: they would be random.
    """
    with quiet(), Progress(f"loading {folder}"):
        network, found = family.from_pretrained(
            folder, output_loading_info=True, ignore_mismatched_sizes=True, **options
        )
    random = {*found["missing_keys"], *(name for name, *_ in found["mismatched_keys"])}
    body = f"{network.base_model_prefix}."
    has_head = any(not name.startswith(body) for name in network.state_dict())  # a bare encoder has no such prefix
    head = {name for name in random if ".pooler." in f".{name}" or (has_head and not name.startswith(body))}
    lacking = sorted(random - head if new_head else {name for name in random if not name.startswith("pooler.")})
    if lacking:
        raise ArtifactError(
            f"{folder} lacks {len(lacking)} weights of a {type(network).__name__}, such as "
            f"{', '.join(lacking[:NAMED])}: they would be random. Name a complete checkpoint of this family."
        )
    if new_head and head:
        say(f"{folder}: new head, from random weights: {', '.join(sorted(head))}.")
    return network


def save_network(network: PreTrainedModel, folder: str | Path, **options: Any) -> None:
    """Save a network's config.json and model.safetensors; `options` are those of `save_pretrained`."""
    with quiet():
        network.save_pretrained(folder, **options)


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
    report = (
        "LOAD REPORT" in text and "CONVERSION" not in text
    )  # transformers' error after the latter refers to the table
    return not report and "so we will NOT tie them" not in text
