"""`infer.py export`: a serving folder in another form, proven to answer alike."""

from pathlib import Path
from typing import Literal


def export(serving: Path, out: Path, form: Literal["onnx"] = "onnx", tolerance: float = 1e-4) -> None:
    """Turn a serving folder's classifier into ONNX (dynamic batch and length), with its tokenizer and the same manifest.

    Args:
        serving: Folder that training exported.
        out: Folder to write; an earlier one there is replaced.
        form: What to write.
        tolerance: Largest difference in log-odds (nats) allowed between both forms on probe triples.
    """
    from harness.serving.onnx_export import export_onnx

    export_onnx(serving, out, tolerance)
