"""Memory of DR-RAG's classifier at inference, from the manifest and `config.json` of its serving folder."""

from pathlib import Path

from transformers import AutoModelForSequenceClassification

from models.drrag.triple_classifier import (
    PART,
    TOKENS_PER_BATCH,
    TripleClassifier,
    attention_options,
    read_classifier_manifest,
)
from models.drrag.triple_tokenizer import TripleEncoder
from models.live_memory import Compute, PartMemory, batch_size, empty_network, forward_memory


def classifier_memory(serving: Path, triples: int, compute: Compute) -> PartMemory:
    """Memory of scoring triples or chains of the maximum length.

    Args:
        serving: Folder that training exported; no weights are read.
        triples: Number scored at once.
        compute: Precision and device.

    Raises:
        MissingInputError: If the folder does not exist.
        ArtifactError: If its manifest is corrupt or of another kind or text format, or a file is missing.
    """
    manifest = read_classifier_manifest(serving, check_files=False)
    folder, kind, max_tokens = serving / PART, manifest["attention"], manifest["max_tokens"]
    network, weights = empty_network(
        AutoModelForSequenceClassification, folder, **attention_options(folder, kind, max_tokens)
    )
    classifier = TripleClassifier(network, TripleEncoder(str(folder), max_tokens), kind)
    tokens = classifier.padded_length(max_tokens)
    rows, at_once = batch_size(triples, tokens, TOKENS_PER_BATCH[compute.device], compute)
    return forward_memory(network, weights, classifier, (rows, tokens), at_once, compute)
