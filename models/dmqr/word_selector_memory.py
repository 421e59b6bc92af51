"""Memory of the extractive rewriter at inference, from the manifest and `config.json` of its serving folder."""

from pathlib import Path

from torch import Tensor
from transformers import AutoModelForTokenClassification, AutoTokenizer

from models.dmqr.word_selector import KIND, PART, TOKENS_PER_BATCH, WordSelector
from models.dmqr.word_tokenizer import TEXT_FORMAT, WordPairEncoder
from models.live_memory import Compute, PartMemory, batch_size, empty_network, forward_memory
from models.serving_manifest import read_manifest


def word_selector_memory(serving: Path, pairs: int, compute: Compute) -> PartMemory:
    """Memory of scoring the words of pairs of the maximum length.

    Args:
        serving: Folder that training exported; no weights are read.
        pairs: Number of (question, passage) pairs scored at once.
        compute: Precision and device.

    Raises:
        MissingInputError: If the folder does not exist.
        ArtifactError: If its manifest is corrupt or of another kind or text format, or a file is missing.
    """
    manifest = read_manifest(serving, KIND, TEXT_FORMAT, check_files=False)
    folder, max_tokens = serving / PART, manifest["max_tokens"]
    network, weights = empty_network(AutoModelForTokenClassification, folder)
    selector = WordSelector(network, WordPairEncoder(AutoTokenizer.from_pretrained(folder), max_tokens))
    rows, at_once = batch_size(pairs, max_tokens, TOKENS_PER_BATCH[compute.device], compute)

    def forward(ids_PT: Tensor, attention_PT: Tensor) -> Tensor:
        scores_PTL: Tensor = selector(ids_PT, attention_PT, attention_PT)
        return scores_PTL

    return forward_memory(network, weights, forward, (rows, max_tokens), at_once, compute)
