"""`infer.py export`: convert a serving folder's classifier to ONNX and verify it."""

from pathlib import Path
from typing import Literal


def export(serving: Path, out: Path, form: Literal["onnx"] = "onnx", tolerance: float = 1e-4) -> None:
    """Export a serving folder's classifier to ONNX (dynamic batch size and length), with tokenizer and manifest.

    Args:
        serving: Folder that training exported.
        out: Folder to write; an existing one is replaced.
        form: Output format.
        tolerance: Maximum difference in log-odds (nats) between ONNX and PyTorch on probe triples.
    """
    from harness.serving.onnx_export import export_onnx

    export_onnx(serving, out, tolerance)
