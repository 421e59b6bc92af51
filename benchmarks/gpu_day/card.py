"""What the card is and what it can do: its matrix rate and memory rate, which the other figures are shares of."""

import importlib.metadata
import platform
from collections.abc import Iterator

import torch

from benchmarks.gpu_day.sizes import BenchmarkSizes
from benchmarks.gpu_day.turns import OURS, Row, row
from benchmarks.training import medians

PACKAGES = ("torch", "transformers", "pytorch-lightning", "sentence-transformers", "peft", "faiss-gpu", "flash-attn")
COPY = 2**28  # numbers, 1 GiB


def version(package: str) -> str:
    """Of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def measure(sizes: BenchmarkSizes, device: torch.device, peak_tflops: float | None) -> Iterator[Row]:
    """Rows of the card: the rate of matrix products of random numbers in bf16 and fp32, and of copying memory."""
    on_card = device.type == "cuda"
    name = torch.cuda.get_device_name() if on_card else f"CPU, {platform.machine()}"
    details = {"python": platform.python_version(), "packages": {each: version(each) for each in PACKAGES}}
    if on_card:
        details["memory_gib"] = torch.cuda.get_device_properties(0).total_memory / 2**30
    for dtype in (torch.bfloat16, torch.float32):
        a, b = (torch.randn(sizes.matrix, sizes.matrix, device=device, dtype=dtype) for _ in range(2))
        seconds = medians({OURS: lambda a=a, b=b: a @ b}, 5 * sizes.steps)[OURS]
        kind = str(dtype).removeprefix("torch.")
        yield row(
            f"{name}, matrix product in {kind}", "TFLOP/s", {OURS: 2 * sizes.matrix**3 / seconds / 1e12}, **details
        )
    memory = torch.empty(COPY if on_card else COPY // 64, device=device)
    seconds = medians({OURS: memory.clone}, 5 * sizes.steps)[OURS]
    yield row(f"{name}, copy of memory", "GB/s", {OURS: 2 * memory.nbytes / seconds / 1e9})
