"""`infer.py export`: convert a serving folder's classifier to ONNX and verify it."""

from pathlib import Path
from typing import Literal

from common.outputs import OutputFolder, listed_files
from common.ranges import NonNegativeFloat
from models.serving_manifest import MANIFEST

ONNX = "_onnx"  # end of the manifest's `kind`
EXPORT = OutputFolder(
    "`infer.py export`", "an export", listed_files(MANIFEST, lambda manifest: str(manifest.get("kind")).endswith(ONNX))
)


def export(serving: Path, out: Path, form: Literal["onnx"] = "onnx", tolerance: NonNegativeFloat = 1e-4) -> None:
    """Export a serving folder's classifier to ONNX (dynamic batch size and length), with tokenizer and manifest.

    Args:
        serving: Folder that training exported.
        out: Folder to write; an earlier export there is replaced, anything else is refused.
        form: Output format.
        tolerance: Maximum difference in log-odds (nats) between ONNX and PyTorch on probe triples.
    """
    with EXPORT.locked(out):
        from harness.serving.onnx_export import export_onnx

        export_onnx(serving, out, tolerance)
