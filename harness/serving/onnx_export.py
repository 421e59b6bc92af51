"""ONNX export of DR-RAG's classifier: dynamic batch size and length, verified against the PyTorch model."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from common.errors import ArtifactError, UserError
from common.files import whole_folder
from common.packages import require
from common.progress import Progress
from common.records import Passage
from common.warning_filters import unwanted_hidden
from models.drrag.triple_classifier import KIND, TripleClassifier, read_classifier_manifest
from models.pair_export import log_odds_of
from models.serving_manifest import write_manifest

if TYPE_CHECKING:
    from models.drrag.triple_tokenizer import TripleEncoder

MODEL_FILE = "model.onnx"
PROBES = (
    (
        "who directed it",
        Passage.of("A film", "A film was directed by someone."),
        Passage.of("Someone", "Born in 1960."),
    ),
    ("where", Passage.of("", "short"), Passage.of("Long", "many words follow here " * 40)),
    ("which of the two is older", Passage.of("One", "founded in 1900"), Passage.of("Two", "founded in 1950")),
)


class _LogOdds(nn.Module):
    """The network only: token ids to log-odds."""

    def __init__(self, classifier: TripleClassifier) -> None:
        super().__init__()
        self.network = classifier.network

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return log_odds_of(self.network(input_ids=input_ids, attention_mask=attention_mask).logits)


def export_onnx(serving: Path, out: Path, tolerance_nats: float = 1e-4) -> float:
    """Write `model.onnx`, tokenizer and manifest.

    Its inputs are input_ids and attention_mask, int64 (P, T), its output log_odds (P,).

    Args:
        serving: Folder that training exported.
        out: Folder to write; an existing one is replaced: `infer.py export` checks that it is an earlier export.
        tolerance_nats: Maximum difference in log-odds on the probe triples.

    Returns:
        The maximum difference, nats.

    Raises:
        UserError: If the ONNX packages are not installed, or the model uses block-sparse attention, which ONNX export
            cannot trace.
        ArtifactError: If the difference exceeds the tolerance; nothing is written.
    """
    require("onnx", "an export to ONNX")
    import onnxruntime

    manifest = read_classifier_manifest(serving)
    classifier = TripleClassifier.load(serving, device="cpu", attention="full")
    if classifier.network.config.model_type != "big_bird" or manifest["max_tokens"] > 1024:
        raise UserError("ONNX export supports BigBird classifiers of up to 1,024 tokens (full attention) only.")
    ids_PT, attention_PT = _probe(classifier.encode)
    with Progress(f"exporting and checking {out}"), unwanted_hidden(), whole_folder(out) as folder:
        batch, tokens = torch.export.Dim("batch", min=1), torch.export.Dim("tokens", min=2, max=manifest["max_tokens"])
        torch.onnx.export(
            _LogOdds(classifier).eval(), (ids_PT, attention_PT), folder / MODEL_FILE, dynamo=True, external_data=False,
            input_names=["input_ids", "attention_mask"], output_names=["log_odds"], verbose=False,
            dynamic_shapes={"input_ids": {0: batch, 1: tokens}, "attention_mask": {0: batch, 1: tokens}},
        )  # fmt: skip
        classifier.encode.tokenizer.save_pretrained(folder)
        session = onnxruntime.InferenceSession(folder / MODEL_FILE, providers=["CPUExecutionProvider"])
        difference = 0.0
        for rows in (slice(0, 3), slice(0, 1)):  # the second has another batch size and length than the traced input
            width = int(attention_PT[rows].sum(1).max())
            ids, mask = ids_PT[rows, :width], attention_PT[rows, :width]
            (onnx_log_odds,) = session.run(None, {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})
            with torch.inference_mode():
                log_odds = classifier(ids, mask).numpy()
            difference = max(difference, float(np.abs(log_odds - onnx_log_odds).max()))
        if not difference <= tolerance_nats:
            raise ArtifactError(
                f"{out}: ONNX differs by {difference:.1e} nats, allowed {tolerance_nats:.1e}: not written."
            )
        copied = {
            key: manifest[key] for key in ("threshold", "validation", "data", "versions", "commit") if key in manifest
        }
        write_manifest(folder, f"{KIND}_onnx", manifest["text_format"], manifest["max_tokens"], **copied)
    print(f"{out}: {MODEL_FILE}, maximum difference {difference:.1e} nats")
    return difference


def _probe(encode: "TripleEncoder") -> tuple[Tensor, Tensor]:
    return encode.pad([encode(*triple) for triple in PROBES])
