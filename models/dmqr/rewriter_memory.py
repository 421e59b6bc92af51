"""Memory of a trained rewriter at inference, from the manifest and the `config.json` of its serving folder."""

from dataclasses import replace
from pathlib import Path

from models.causal_lm_memory import causal_memory
from models.dmqr.rewrite_tokenizer import FORMATS
from models.dmqr.rewriter import ADAPTER, PART, own_adapters, read_rewriter_manifest
from models.live_memory import Compute, PartMemory
from models.lora import adapter_bytes
from models.seq2seq_memory import seq2seq_memory


def rewriter_memory(serving: Path, compute: Compute, questions: int, strategies: int | None = None) -> PartMemory:
    """Memory of rewriting, with inputs and rewrites of the maximum length.

    Args:
        serving: Folder that training exported; no weights are read.
        compute: Precision and device.
        questions: Questions at once.
        strategies: Rewrites of each; all that the rewriter was trained on when None.

    Raises:
        MissingInputError: If the folder does not exist.
        ArtifactError: If its manifest is corrupt, or of another kind or text format.
    """
    manifest = read_rewriter_manifest(serving, check_files=False)
    inputs = questions * (strategies or len(manifest["strategies"]))
    max_tokens, rewrite_tokens = manifest["max_tokens"], manifest["max_rewrite_tokens"]
    network = Path(serving) / PART
    if FORMATS[manifest["text_format"]] == "seq2seq":
        memory = seq2seq_memory(network, compute, inputs, max_tokens, rewrite_tokens)
    else:
        memory = causal_memory(str(network), compute, inputs, max_tokens + rewrite_tokens, None)
    adapters = sum(adapter_bytes(Path(serving) / ADAPTER / name) for name in own_adapters(manifest))
    return replace(memory, weights=memory.weights + adapters)
