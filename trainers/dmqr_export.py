"""Export of DMQR-RAG's generative rewriters: on fp32 weights, and the comparison with the trained module."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from common.errors import ArtifactError
from common.progress import say
from datamodules.dmqr import RewriteBatch
from models.dmqr.rewriter import ADAPTER, RewriterModel
from models.length_batching import IGNORE
from models.lora import Lora, adapters_of, add_adapter

MERGED_TOLERANCE_NATS = {"float32": 1e-3, "bfloat16": 1.0}  # of a token: merging adds in another order, and rounds


def on_fp32_base(rewriter: RewriterModel, options: Mapping[str, Any], lora: Lora) -> RewriterModel:
    """The trained adapters on the model's own fp32 weights; the rewriter itself if these are what it was trained on.

    Quantized weights are not converted back: they are read again from the model that training started from.
    """
    if options["base_bits"] is None:
        return rewriter
    made = _base_of(rewriter, options)
    if rewriter.adapters is None:
        add_adapter(made.network, options["pretrained"], lora)
    else:
        made.add_adapters(adapters_of(rewriter.network), options["pretrained"], lora)
    trained = {name: value.detach().cpu() for name, value in rewriter.state_dict().items() if ".lora_" in name}
    made.load_state_dict(trained, strict=False)
    return made.eval()


def _base_of(rewriter: RewriterModel, options: Mapping[str, Any]) -> RewriterModel:
    sizes = options["max_tokens"], options["max_rewrite_tokens"]
    return RewriterModel.build(options["pretrained"], *sizes, rewriter.strategies)


def tell_quantization(rewriter: RewriterModel, exact: RewriterModel, batch: RewriteBatch, bits: int) -> None:
    """Print by how much the quantized base changes the log-probabilities of a batch's tokens."""
    tensors, device = (batch.ids_PT, batch.attention_PT, batch.labels_PA), rewriter.network.device
    with torch.inference_mode():
        trained_PA = rewriter.eval()(*(each.to(device) for each in tensors), batch.strategies).cpu()
        exact_PA = exact(*tensors, batch.strategies)
    difference = (trained_PA - exact_PA).abs()[batch.labels_PA != IGNORE]
    say(
        f"exported on fp32 weights: a token's log-probability differs from that on the {bits}-bit base by "
        f"{float(difference.mean()):.3f} nats on average, {float(difference.max()):.3f} at most",
        sys.stdout,
    )


def export_difference(
    rewriter: RewriterModel, folder: Path, batch: RewriteBatch, options: Mapping[str, Any], lora: Lora
) -> float:
    """Largest difference of a token's log-probability (nats, fp32) to the files in `folder`.

    They are a base with adapters, or all weights.

    Args:
        rewriter: The trained one, in fp32 on the CPU, in evaluation mode.
        folder: That it was exported to.
        batch: On which they are compared.
        options: The trainer's parameters.
        lora: Of the trainer.

    Raises:
        ArtifactError: If the model that serving loads differs by more than merging in its precision explains.
    """
    merged = RewriterModel.load(folder, "cpu", "fp32")
    with torch.inference_mode():
        inputs = batch.ids_PT, batch.attention_PT, batch.labels_PA, batch.strategies
        here_PA, merged_PA = rewriter(*inputs), merged(*inputs)
        difference = float((here_PA - merged_PA).abs().max())
        if not lora.rank and options["merged"] == "float32":
            return difference
        if not difference <= MERGED_TOLERANCE_NATS[options["merged"]]:
            raise ArtifactError(f"{folder}: the merged model differs from the trained one by {difference:.2e} nats.")
        if not lora.rank:
            return 0.0
        del merged, merged_PA
        reference = _base_of(rewriter, options)
        reference.load_adapters(folder / ADAPTER, [] if rewriter.adapters is None else adapters_of(rewriter.network))
        return float((here_PA - reference.eval()(*inputs)).abs().max())
