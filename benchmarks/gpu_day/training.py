"""Training steps of three trainers beside the same models and rows in plain transformers.

Lightning trains ours on their own data modules; before each step, transformers takes one on the same rows, so that both
meet the card in the same state.  A step is forward, loss, backward and AdamW, in bf16, without making its batch.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import pytorch_lightning as pl
import torch
from torch.optim import AdamW
from transformers import PreTrainedModel

from benchmarks.gpu_day.sizes import BenchmarkSizes
from benchmarks.gpu_day.training_cases import CASES, TrainingCase
from benchmarks.gpu_day.turns import GIB, OURS, Peak, Row, choose_attention, room, row
from benchmarks.training import wait
from trainers.run.throughput import flops_per_token
from trainers.run.trainer import RunTrainer

THEIRS = "transformers"


@dataclass
class MeasuredSteps:
    """The timed steps of a variant."""

    seconds: list[float] = field(default_factory=list)
    inputs: int = 0  # tokens without padding
    flops: int = 0
    peak: int = 0  # bytes on the card, with the variant's weights, gradients and moments


def held(networks: list[PreTrainedModel], optimizer: Any) -> int:
    """Bytes of weights, gradients and moments."""
    parameters = [parameter for network in networks for parameter in network.parameters()]
    moments = [v for state in optimizer.state.values() for v in state.values() if isinstance(v, torch.Tensor)]
    tensors = [*parameters, *(p.grad for p in parameters if p.grad is not None), *moments]
    return sum(each.nbytes for each in tensors)


class InTurns(pl.Callback):
    """Times a trainer's steps, and one of transformers before each.

    Args:
        case: What is trained.
        warm_up: First steps that are not timed.
    """

    def __init__(self, case: TrainingCase, warm_up: int) -> None:
        self.case, self.warm_up = case, warm_up
        self.measured: dict[str, MeasuredSteps] = {OURS: MeasuredSteps(), THEIRS: MeasuredSteps()}
        self.missing: dict[str, str] = {}

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Put the networks of transformers beside ours."""
        for network in self.case.plain:
            network.to(module.device).train()
        weights = [p for network in self.case.plain for p in network.parameters() if p.requires_grad]
        self.optimizer = AdamW(weights, lr=1e-5, fused=True)

    def on_train_batch_start(self, trainer: pl.Trainer, module: pl.LightningModule, batch: Any, index: int) -> None:
        """A step of transformers, then the start of ours."""
        prepared = self.case.prepare(batch)
        if THEIRS not in self.missing:
            with room(THEIRS, self.missing):
                self._begin(THEIRS, self.case.plain, self.optimizer)
                with torch.autocast(module.device.type, torch.bfloat16):
                    loss = self.case.loss(prepared)
                loss.backward()
                self.optimizer.step()
                self._end(THEIRS, self.case.plain, batch, index)
            self.optimizer.zero_grad()
        self._begin(OURS, self.case.ours, trainer.optimizers[0])

    def on_train_batch_end(
        self, trainer: pl.Trainer, module: pl.LightningModule, outputs: Any, batch: Any, index: int
    ) -> None:
        """The end of our step."""
        self._end(OURS, self.case.ours, batch, index)

    def _begin(self, name: str, networks: list[PreTrainedModel], optimizer: Any) -> None:
        choose_attention(name)
        wait()
        self._peak, self._held, self._started = Peak(), held(networks, optimizer), perf_counter()

    def _end(self, name: str, networks: list[PreTrainedModel], batch: Any, index: int) -> None:
        wait()
        seconds, into = perf_counter() - self._started, self.measured[name]
        into.peak = max(into.peak, self._held + self._peak.bytes())
        if index < self.warm_up:
            return
        into.seconds.append(seconds)
        for network, (inputs, targets) in zip(networks, self.case.tokens(batch), strict=True):
            per_input, per_target = flops_per_token(network)
            into.flops += per_input * inputs + per_target * targets
            into.inputs += inputs


def measure(
    make: Callable[[Path, BenchmarkSizes, torch.device], TrainingCase],
    sizes: BenchmarkSizes,
    device: torch.device,
    peak_tflops: float | None,
) -> Iterator[Row]:
    """Rows of a trainer: tokens per second, share of the card's own matrix rate, memory.

    Args:
        make: Prepares the case in a folder.
        sizes: Of models and steps.
        device: Where it is trained.
        peak_tflops: Of a bf16 matrix product on this device; None where it has not been measured.
    """
    with TemporaryDirectory() as folder:
        case = make(Path(folder), sizes, device)
        turns = InTurns(case, sizes.warm_up)
        trainer = RunTrainer(
            accelerator="gpu" if device.type == "cuda" else "cpu", devices=1, precision="bf16-mixed", callbacks=[turns],
            max_steps=sizes.warm_up + sizes.steps, max_epochs=-1, limit_val_batches=0, logger=False,
            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, default_root_dir=folder,
        )  # fmt: skip
        with room(OURS, turns.missing):
            trainer.fit(case.module, case.data)
    done = {name: each for name, each in turns.measured.items() if each.seconds}
    details = {"seconds": {name: each.seconds for name, each in done.items()}, "no_room": turns.missing}
    tflops = {name: each.flops / sum(each.seconds) / 1e12 for name, each in done.items()}
    yield row(case.name, "tokens/s", {k: each.inputs / sum(each.seconds) for k, each in done.items()}, **details)
    if peak_tflops is not None:
        yield row(case.name, "% of the matrix rate", {name: 100 * rate / peak_tflops for name, rate in tflops.items()})
    yield row(case.name, "peak GiB", {name: each.peak / GIB for name, each in done.items()})


def measures(name: str) -> Callable[[BenchmarkSizes, torch.device, float | None], Iterator[Row]]:
    """`measure` of a case by its name in `CASES`."""
    return lambda sizes, device, peak_tflops: measure(CASES[name], sizes, device, peak_tflops)
