"""Forward and backward passes of BigBird-base on long sequences: block-sparse, fused full, and of transformers."""

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification

from benchmarks.gpu_day.models import save_encoder
from benchmarks.gpu_day.sizes import BenchmarkSizes
from benchmarks.gpu_day.turns import OURS, Row, compared
from models.drrag.triple_classifier import TripleClassifier


def measure(sizes: BenchmarkSizes, device: torch.device, peak_tflops: float | None) -> Iterator[Row]:
    """Rows of the three, in bf16; on a CPU in fp32: transformers' block-sparse attention has no bf16 there."""
    with TemporaryDirectory() as folder:
        model = save_encoder(
            Path(folder) / "model", "big_bird", sizes, device, attention_type="block_sparse", block_size=sizes.block,
            num_random_blocks=3 if sizes.block == 64 else 1, num_labels=2,
        )  # fmt: skip
        most = sizes.long_tokens - sizes.block  # of the text: transformers makes the last block a global one
        ours = {
            name: TripleClassifier.build(model, most, kind).to(device).train()
            for name, kind in ((OURS, "block_sparse"), ("ours, fused full attention", "fused"))
        }
        plain = (
            AutoModelForSequenceClassification.from_pretrained(model, attention_type="block_sparse").to(device).train()
        )
        ids_PT = torch.randint(5, 100, (sizes.long_rows, sizes.long_tokens), device=device)
        attention_PT = torch.ones_like(ids_PT)
        attention_PT[:, most:] = 0

        def step(scores: Callable[[Tensor, Tensor], Tensor], network: torch.nn.Module) -> None:
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                loss = scores(ids_PT, attention_PT).float().square().mean()
            loss.backward()
            network.zero_grad()

        steps = {name: lambda each=each: step(each, each) for name, each in ours.items()}
        theirs = {"transformers, block_sparse": lambda: step(lambda *batch: plain(*batch).logits, plain)}
        what = f"forward and backward, BigBird-base, {sizes.long_tokens:,} tokens"
        for variants in (steps, {OURS: steps[OURS], **theirs}):
            yield from compared(what, variants, sizes.long_rows * most, "tokens", sizes.steps)
