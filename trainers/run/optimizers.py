"""AdamW with parameter groups and learning-rate schedules, and the length of a run in optimizer steps."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import pytorch_lightning as pl
from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from transformers import get_scheduler

from common.errors import UserError
from common.ranges import NonNegativeFloat, NonNegativeInt, PositiveFloat, Share


@dataclass(frozen=True)
class Optimizer:
    """AdamW; vectors are not decayed.

    Args:
        learning_rate: Peak learning rate, per optimizer step.
        weight_decay: Weight decay, on matrices only.
        warmup_steps: Optimizer steps of linear warm-up.
        schedule: After the warm-up: `constant`, `linear` decay to 0 at the end of training, or `inverse_sqrt`, which
            needs no end.
    """

    learning_rate: PositiveFloat = 1e-4
    weight_decay: NonNegativeFloat = 0.0
    warmup_steps: NonNegativeInt = 0
    schedule: Literal["constant", "linear", "inverse_sqrt"] = "linear"

    def adamw(self, groups: list[dict[str, Any]], trainer: pl.Trainer) -> dict[str, Any]:
        """What `configure_optimizers` returns, for groups as of `decay_groups`.  Errors as `total_steps`."""
        steps = total_steps(trainer, self.warmup_steps) if self.schedule == "linear" else None
        return scheduled_adamw(groups, self.schedule, self.warmup_steps, steps)


@dataclass(frozen=True)
class HeadOptimizer:
    """AdamW for a network with a new head; vectors are not decayed; linear warm-up, then linear decay to 0.

    Args:
        learning_rate: Peak learning rate of the body, per optimizer step.
        head_learning_rate: Peak learning rate of the classification head, which is initialized at random.
        weight_decay: Weight decay, on matrices only.
        warmup_fraction: Share of all optimizer steps spent on linear warm-up.
    """

    learning_rate: PositiveFloat = 1e-4
    head_learning_rate: PositiveFloat = 1e-3
    weight_decay: NonNegativeFloat = 0.01
    warmup_fraction: Share = 0.1

    def adamw(self, model: nn.Module, trainer: pl.Trainer) -> dict[str, Any]:
        """What `configure_optimizers` returns.  Errors as `total_steps`."""
        groups: list[dict[str, Any]] = []
        for head, rate in ((False, self.learning_rate), (True, self.head_learning_rate)):
            own = (each for name, each in model.named_parameters() if (".classifier." in name) == head)
            groups += decay_groups(own, rate, self.weight_decay)
        steps = total_steps(trainer)
        return scheduled_adamw(groups, "linear", round(self.warmup_fraction * steps), steps)


def decay_groups(parameters: Iterable[nn.Parameter], learning_rate: float, weight_decay: float) -> list[dict[str, Any]]:
    """Non-empty parameter groups for AdamW: weight decay for matrices, none for biases, norms and other vectors.

    No frozen parameters.
    """
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    matrices = {"params": [p for p in trained if p.ndim > 1], "lr": learning_rate, "weight_decay": weight_decay}
    vectors = {"params": [p for p in trained if p.ndim <= 1], "lr": learning_rate, "weight_decay": 0.0}
    return [group for group in (matrices, vectors) if group["params"]]


def scheduled_adamw(
    groups: list[dict[str, Any]], schedule: str, warmup_steps: int, steps: int | None = None
) -> dict[str, Any]:
    """What Lightning's `configure_optimizers` returns: AdamW, linear warm-up, then a schedule that advances every step.

    Args:
        groups: Parameter groups with learning rates and weight decay.
        schedule: `constant`, `inverse_sqrt`, or `linear` decay to 0.
        warmup_steps: Optimizer steps of warm-up.
        steps: Optimizer steps of the whole run; for `linear`.
    """
    optimizer = AdamW(groups, fused=True)  # on a CPU four times as fast as the default
    # Lightning does not clip for optimizers that could unscale fp16 gradients; fp16 is refused, so there is no scale.
    optimizer._step_supports_amp_scaling = False
    name = "constant_with_warmup" if schedule == "constant" else schedule
    scheduler = get_scheduler(name, optimizer, warmup_steps, steps)
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


def follow_schedule(trainer: pl.Trainer) -> None:
    """Give a resumed run's next step its rate: a checkpoint has the one of a run that may have had another length."""
    for each in trainer.lr_scheduler_configs:
        scheduler = each.scheduler
        if isinstance(scheduler, LambdaLR):
            groups = scheduler.optimizer.param_groups
            for group, rate, share in zip(groups, scheduler.base_lrs, scheduler.lr_lambdas, strict=True):
                group["lr"] = rate * share(scheduler.last_epoch)


def total_steps(trainer: pl.Trainer, warmup_steps: int = 0) -> int:
    """Optimizer steps of the whole run, from the data module's steps per epoch and the trainer's limits.

    Not trainer.estimated_stepping_batches: it creates the loader before a checkpoint's loop state is restored, and a
    resumed run would then start its epoch over.

    Raises:
        UserError: If the run has no end, or ends within the warm-up.
    """
    epochs_steps = trainer.datamodule.steps_per_epoch * (trainer.max_epochs or 0)
    steps = min((n for n in (trainer.max_steps, epochs_steps) if n > 0), default=0)
    if not steps:
        raise UserError("the learning rate's schedule needs an end: give trainer.max_epochs or trainer.max_steps.")
    if steps <= warmup_steps:
        raise UserError(
            f"the schedule ends after {steps} steps, within warmup_steps {warmup_steps}: raise trainer.max_steps or "
            "trainer.max_epochs, or lower model.optimizer.warmup_steps."
        )
    return steps
