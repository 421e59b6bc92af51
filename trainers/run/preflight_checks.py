"""Checks of a run's configuration before the first step."""

import math

import pytorch_lightning as pl

from common.errors import UserError
from trainers.run.module import RunModule

EXAMPLES_PER_RANK = 8  # with fewer, a device spends most of a step waiting for its kernels to start and for other ranks


def refuse_unknown_metric(trainer: pl.Trainer, module: RunModule) -> None:
    """Check before the first step that validation measures the metric that chooses the best checkpoint.

    Raises:
        UserError: If it does not; training metrics (train/...) are not checked.
    """
    monitor = getattr(trainer.checkpoint_callback, "monitor", None)
    measured = [f"val/{name}" for name in module.metric_names]
    if monitor is not None and not monitor.startswith("train/") and monitor not in measured:
        raise UserError(
            f"checkpoint.monitor is {monitor}, which this run's validation does not measure: type --checkpoint.monitor "
            f"{measured[0]} (others: {', '.join(measured[1:])})."
        )


def refuse_validation_interval(trainer: pl.Trainer) -> None:
    """Check before the first step that an epoch reaches its first validation, and that validations follow whole steps.

    A checkpoint written between two accumulated batches would lose the first one's gradient.

    Raises:
        UserError: If val_check_interval is a number of batches that an epoch does not have, or not a multiple of
            accumulate_grad_batches.
    """
    accumulate, limit = trainer.accumulate_grad_batches, trainer.limit_train_batches
    batches = trainer.datamodule.steps_per_epoch * accumulate
    batches = min(batches, limit) if isinstance(limit, int) else int(batches * limit)
    interval = getattr(trainer, "val_check_interval", None)  # absent if it is a duration
    if isinstance(interval, int) and trainer.check_val_every_n_epoch is not None and interval > batches:
        raise UserError(
            f"trainer.val_check_interval is {interval}, but an epoch has {batches} batches: lower it, or set "
            "trainer.check_val_every_n_epoch to null, which counts batches over all epochs."
        )
    every = int(batches * interval) if isinstance(interval, float) else interval
    if accumulate > 1 and (every is None or every % accumulate):
        given = "a duration" if every is None else f"{interval} ({every} batches)"
        raise UserError(
            f"trainer.val_check_interval is {given}, which may end within an optimizer step: give a number of batches "
            f"that is a multiple of trainer.accumulate_grad_batches, {accumulate}."
        )


def warn_of_small_steps(trainer: pl.Trainer) -> None:
    """Print one line on rank 0 if a step gives each of several ranks fewer than `EXAMPLES_PER_RANK` examples."""
    data, ranks = trainer.datamodule, trainer.world_size
    units, per_unit = data.units_per_step, data.examples_per_unit
    needed = max(ranks, ranks * EXAMPLES_PER_RANK / per_unit)  # a question is not divided among ranks
    if ranks == 1 or round(units, 6) >= needed or not trainer.is_global_zero:
        return
    whole = units * data.steps_per_epoch  # an epoch is divided into whole steps of equal size
    enough = getattr(data, data.step_option) / units * whole / max(1, whole // needed)
    print(
        f"warning: an optimizer step gives each of the {ranks} processes {units * per_unit / ranks:.1f} "
        f"{data.examples_name}: type --data.{data.step_option} {math.ceil(enough / ranks) * ranks} and scale "
        "model.optimizer.learning_rate (docs/operate.md#the-size-of-a-step), or use fewer processes.",
        flush=True,
    )
