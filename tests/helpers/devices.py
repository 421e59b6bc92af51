"""Tests that run on the CPU in the fast suite and on a GPU in `make test-gpu`, so that all bodies are executed."""

import pytest
import torch


def cpu_and_gpu(shows: str, *cpu_marks: pytest.MarkDecorator) -> pytest.MarkDecorator:
    """Parametrize `device` with cpu and cuda; without a GPU the second is skipped with what it would have shown.

    Args:
        shows: Completes "needs a GPU: ...".
        cpu_marks: Marks of the run on the CPU, e.g. slow.
    """
    without = pytest.mark.skipif(not torch.cuda.is_available(), reason=f"needs a GPU: {shows}")
    return pytest.mark.parametrize(
        "device", [pytest.param("cpu", marks=cpu_marks), pytest.param("cuda", marks=(pytest.mark.gpu, without))]
    )


def training_options(device: str, devices: int = 1) -> list[str]:
    """Options of train.py that train on a device; the tests' configs name the CPU."""
    return ["--trainer.accelerator", "gpu", "--trainer.devices", str(devices)] if device == "cuda" else []
