"""`infer.py export`: convert a serving folder's model into another form and verify it."""

from pathlib import Path
from typing import Literal

from common.outputs import OutputFolder, listed_files
from common.ranges import NonNegativeFloat
from models.serving_manifest import CARD, MANIFEST


def _own_files(folder: Path) -> list[str] | None:
    listed = listed_files(MANIFEST, lambda manifest: str(manifest.get("kind")).endswith(("_onnx", "_merged")))(folder)
    return listed and [*listed, CARD]


EXPORT = OutputFolder("`infer.py export`", "an export", _own_files)


def export(
    serving: Path,
    out: Path,
    form: Literal["onnx", "onnx-int8", "merged"] = "onnx",
    tolerance: NonNegativeFloat | None = None,
) -> None:
    """Export the model of a serving folder in another form, with tokenizer and manifest.

    Args:
        serving: Folder that training exported.
        out: Folder to write; an earlier export there is replaced, anything else is refused.
        form: `onnx`: an encoder (of triples, of pairs, of words or of questions), with dynamic batch size and length.
            `onnx-int8`: the same in 8 bits, in two files: for processors with AVX-512 VNNI, and for others.
            `merged`: adapters of a rewriter, an estimator or a generator, each merged into its base: whole models for
            transformers and vLLM.
        tolerance: Maximum difference on probes, in nats: of log-odds between ONNX and PyTorch (1e-4 when omitted), or
            of a token's log-probability between adapter and merged model (1e-3 when omitted).
    """
    with EXPORT.locked(out):
        if form == "merged":
            from harness.serving.merged_export import export_merged

            export_merged(serving, out, tolerance)
            return
        from harness.serving.onnx_export import export_onnx

        export_onnx(serving, out, 1e-4 if tolerance is None else tolerance, form == "onnx-int8")
