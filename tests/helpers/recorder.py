"""A Lightning callback that keeps weights, gradients and learning rates of every optimizer step, to be compared."""

from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.optim import Optimizer

from tests.helpers.tolerances import assert_gradients_close

FILE = "steps.pt"
HARDLY = "1.0e-12"  # a learning rate that leaves fp32 weights where they are, with a schedule that can still be seen
RECORDED = ("--trainer.callbacks+=tests.helpers.recorder.StepRecorder",)


class StepRecorder(pl.Callback):
    """Writes `steps.pt` to the run's folder.

    What the optimizer was given at every step, after ranks and batches were summed.

    Give it to a run by the arguments RECORDED.
    """

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []

    def on_before_optimizer_step(self, trainer, pl_module: pl.LightningModule, optimizer: Optimizer) -> None:
        """Weights and their gradients by name, and the rate of every parameter group."""
        named = [*pl_module.named_parameters()]
        gradients = {name: parameter.grad.clone() for name, parameter in named if parameter.grad is not None}
        weights = {name: parameter.detach().clone() for name, parameter in named}
        rates = [group["lr"] for group in optimizer.param_groups]
        self.steps.append({"gradients": gradients, "weights": weights, "rates": rates})

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Rank 0 writes."""
        if trainer.is_global_zero:
            torch.save(self.steps, Path(trainer.default_root_dir) / FILE)


def recorded(folder: Path) -> list[dict[str, Any]]:
    """The steps of a run, in order."""
    return torch.load(folder / FILE, weights_only=True)


def assert_same_steps(here: Path, there: Path, rows: int) -> None:
    """Two runs that cut the same steps differently gave their optimizers the same gradients, at the same rates.

    Trained weights would not tell: AdamW divides a gradient by its own size, so a gradient that is nothing but rounding
    moves a weight by a whole learning rate, and one that is wrong by a factor moves it as the right one does. Gradients
    can be compared closely, as long as both runs have the same weights: let them train at HARDLY.

    Args:
        here: A run's folder.
        there: The other run's.
        rows: Sequences of a step, at most.
    """
    ours, theirs = recorded(here), recorded(there)
    assert len(ours) == len(theirs) > 2
    assert [step["rates"] for step in ours] == [step["rates"] for step in theirs]
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        assert_gradients_close(one["gradients"], other["gradients"], rows, f"{here.name}, step {number}")


def adamw(steps: list[dict[str, Any]], name: str, rates: list[float], weight_decay: float) -> list[Tensor]:
    """AdamW (Loshchilov and Hutter 2019, Algorithm 2) written out in double precision, with PyTorch's default moments.

    Args:
        steps: Of a run; the gradients are taken from them.
        name: Of the weight.
        rates: The learning rate of every step.
        weight_decay: Decoupled; multiplied by the rate.

    Returns:
        The weight before every step.
    """
    weight = steps[0]["weights"][name].double()
    first, second = torch.zeros_like(weight), torch.zeros_like(weight)
    weights = []
    for number, (step, rate) in enumerate(zip(steps, rates, strict=True), 1):
        weights.append(weight)
        gradient = step["gradients"][name].double()
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        scaled = first / (1 - 0.9**number) / ((second / (1 - 0.999**number)).sqrt() + 1e-8)
        weight = weight - rate * weight_decay * weight - rate * scaled
    return weights
