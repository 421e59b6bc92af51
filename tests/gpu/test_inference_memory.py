"""What a classifier takes at inference, on the CPU and on a GPU, against its memory plan."""

from pathlib import Path

import pytest
import torch

from models.drrag.classifier_memory import classifier_memory
from models.drrag.triple_classifier import TOKENS_PER_BATCH, TripleClassifier
from models.live_memory import Compute, LiveBytes
from tests.helpers.devices import cpu_and_gpu
from tests.helpers.planned_world import save_classifier

TOKENS = 64


@cpu_and_gpu("the peak of allocated memory at inference is what `infer.py plan` says")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_largest_batch_takes_what_is_planned(
    checkpoints: dict[str, Path], tmp_path: Path, device: str, precision: str
) -> None:
    serving = save_classifier(tmp_path / "serving", TripleClassifier.build(str(checkpoints["bert"]), TOKENS))
    planned = classifier_memory(serving, 10**6, Compute(device == "cuda", precision == "bf16", threads=1))
    before = torch.cuda.memory_allocated() if device == "cuda" else 0
    loaded = TripleClassifier.load(serving, device, precision=precision)  # type: ignore[arg-type]
    ids = torch.full((TOKENS_PER_BATCH[device] // TOKENS, TOKENS), 5, device=device)
    attention = torch.ones_like(ids)
    attention[:, -3:] = 0
    tensors = [*loaded.network.parameters(), *loaded.network.buffers()]
    live = LiveBytes([*tensors, ids, attention])
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    with torch.inference_mode(), torch.autocast(device, torch.bfloat16, enabled=precision == "bf16"), live:
        loaded(ids, attention)
    measured = sum(tensor.nbytes for tensor in tensors) + live.peak
    if device == "cuda":
        measured = torch.cuda.max_memory_allocated() - before - ids.nbytes - attention.nbytes
    assert planned.weights + planned.activations == pytest.approx(measured, rel=0.2)
