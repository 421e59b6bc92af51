"""Checkpoints of a run: best.ckpt by a metric, last.ckpt by steps and minutes; stopping after a whole step; divergence.

A step's checkpoint is written in `on_train_batch_end`, when `RunModule` and the callbacks before this one have logged
its metrics, or, where a validation follows, at its start. A run that is told to stop ends in the next hook: Lightning
writes what others have logged after `on_train_batch_end`.
"""

import time
from pathlib import Path
from typing import Any, Literal

import pytorch_lightning as pl
import torch
import torch.distributed as dist
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.trainer.states import TrainerFn
from torch import Tensor
from torch.distributed.tensor import DTensor

from common.errors import PREEMPTED, UserError
from common.ranges import NonNegativeFloat, PositiveInt
from trainers.run.lightning_private import set_max_steps, validate_now, validation_follows
from trainers.run.resume import in_folder
from trainers.run.stop_signals import RunStoppedError, StopSignals

LAST = "last.ckpt"
VALIDATION_DUE = "validation_due"  # key in a checkpoint


class DivergedError(UserError):
    """The loss or the weights are infinite or not a number."""

    exit_code = 70


class RunCheckpoint(ModelCheckpoint):
    """Writes best.ckpt when a validation improves the monitored metric, and last.ckpt, the newest state.

    last.ckpt is written after every validation, every `every_minutes`, every `every_n_train_steps`, after the last
    step, and when the run is told to stop (SIGINT, SIGTERM, SIGUSR1), which it does after a whole optimizer step on all
    ranks. A state that is not finite is never written.

    Args:
        monitor: Metric that chooses best.ckpt.
        mode: Whether a higher (`max`) or a lower (`min`) metric is better.
        filename: Name of the best checkpoint.
        every_minutes: Write last.ckpt when so many minutes have passed since it was written: what a kill can lose.
        every_n_train_steps: Write last.ckpt also after every so many optimizer steps; with a monitored training metric,
            the best checkpoints too.
        save_last: Whether to write last.ckpt.
        save_on_train_epoch_end: When the best checkpoint is chosen: after a validation by default, since at an epoch's
            end the metric may be an older validation's.
        enable_version_counter: Whether another best checkpoint of the same name gets a number.
        options: Further options of Lightning's ModelCheckpoint.
    """

    def __init__(
        self,
        monitor: str | None = None,
        mode: Literal["max", "min"] = "max",
        filename: str | None = "best",
        every_minutes: NonNegativeFloat = 5.0,
        every_n_train_steps: PositiveInt | None = None,
        save_last: bool | None = True,
        save_on_train_epoch_end: bool | None = None,
        enable_version_counter: bool = False,
        **options: Any,
    ) -> None:
        in_training = (monitor or "").startswith("train/")
        super().__init__(
            monitor=monitor,
            mode=mode,
            filename=filename,
            every_n_train_steps=every_n_train_steps if in_training else None,
            save_last=False,
            save_on_train_epoch_end=save_on_train_epoch_end if in_training else bool(save_on_train_epoch_end),
            enable_version_counter=enable_version_counter,
            **options,
        )
        self.last, self.every_minutes, self.every_steps = bool(save_last), every_minutes, every_n_train_steps
        self.signals = StopSignals()
        self._validation_due = False  # whether a validation follows the present state
        self._resumed = {VALIDATION_DUE: False}
        self._max_steps: int | None = None
        self._step = 0  # optimizer steps made
        self._loss: Tensor | float = 0.0  # sum over the accumulated batches of a step
        self._due = False  # whether last.ckpt is to be written after this step
        self._exit_code = 0  # of a run that all ranks have agreed to stop
        self._saved_step, self._saved_at = 0, 0.0

    @property
    def state_key(self) -> str:
        """Lightning's, so that checkpoints written with its ModelCheckpoint resume."""
        return super().state_key.replace(type(self).__qualname__, ModelCheckpoint.__qualname__, 1)

    # Resuming

    def on_save_checkpoint(self, trainer: pl.Trainer, module: pl.LightningModule, checkpoint: dict[str, Any]) -> None:
        """Store whether a validation follows this state."""
        checkpoint[VALIDATION_DUE] = self._validation_due

    def on_load_checkpoint(self, trainer: pl.Trainer, module: pl.LightningModule, checkpoint: dict[str, Any]) -> None:
        """Keep what `on_train_start` needs."""
        self._resumed = {VALIDATION_DUE: checkpoint.get(VALIDATION_DUE, False)}
        self._saved_step = checkpoint["global_step"]
        if self.dirpath and Path(trainer.ckpt_path or "").resolve().parent == Path(self.dirpath).resolve():
            # The folder may have been moved. Lightning would forget the best metric and overwrite best.ckpt with a
            # worse one.
            state = checkpoint["callbacks"].get(self.state_key, {})
            moved = in_folder(state, str(self.dirpath))
            if Path(moved.get("best_model_path", "")).is_file():
                checkpoint["callbacks"][self.state_key] = moved

    def on_fit_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Start a run that has made all its steps if the validation after the last step is due."""
        if self._resumed[VALIDATION_DUE] and self._saved_step >= trainer.max_steps > 0:
            self._max_steps = trainer.max_steps
            set_max_steps(trainer, self._saved_step + 1)

    def on_sanity_check_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Replace Lightning's signal handlers: its SIGTERM handler calls a collective on the signalled rank alone."""
        self.signals.install()

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Run the validation that was due, and end a run that early stopping had ended."""
        super().on_train_start(trainer, module)
        self.signals.install()
        self._step, self._saved_at = trainer.global_step, time.monotonic()
        trainer.should_stop = any(  # patience 0 allows no validation without improvement; a new run has had none
            stopping.wait_count >= max(1, stopping.patience) for stopping in trainer.early_stopping_callbacks
        )
        if self._resumed[VALIDATION_DUE]:
            # Lightning's own loop then skips it, as after a checkpoint that was written when a validation had ended.
            validate_now(trainer)
        if self._max_steps is not None:
            set_max_steps(trainer, self._max_steps)

    # Training

    def on_train_batch_end(
        self, trainer: pl.Trainer, module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """At the end of an optimizer step: agree with the other ranks on stopping and saving, and save if it is due."""
        self._loss = self._loss + outputs["loss"].detach()
        if trainer.global_step == self._step:  # within an optimizer step of several batches
            return
        self._step = steps = trainer.global_step
        loss, self._loss = self._loss, 0.0
        self._agree(trainer, loss)
        self._due |= self.last and (
            _is_last_step(trainer) or (self.every_steps is not None and steps % self.every_steps == 0)
        )
        if not validation_follows(trainer):
            self._save_due(trainer, module)

    def on_train_batch_start(self, trainer: pl.Trainer, module: pl.LightningModule, batch: Any, batch_idx: int) -> None:
        """Stop if all ranks have agreed to."""
        self._stop(trainer)

    def on_train_epoch_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Stop if all ranks have agreed to."""
        self._stop(trainer)
        super().on_train_epoch_end(trainer, module)

    def on_validation_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Write the checkpoints of the step that this validation follows, if they are due."""
        if _is_fitting(trainer):
            self._validation_due = True
            self._save_due(trainer, module)
            self._stop(trainer)
            self._validation_due = False

    def on_validation_batch_end(self, trainer: pl.Trainer, module: pl.LightningModule, *args: Any) -> None:
        """Stop within a validation, which resuming repeats."""
        if trainer.state.fn == TrainerFn.FITTING:
            self._agree(trainer)
            if self._exit_code and not trainer.sanity_checking and self._saved_step < trainer.global_step:
                self._validation_due = True
                self._save(trainer)
            self._stop(trainer)

    def on_validation_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Write best.ckpt if the metric has improved, then last.ckpt."""
        super().on_validation_end(trainer, module)
        if _is_fitting(trainer) and self.last:
            self._save(trainer)
            self._stop(trainer)

    def on_train_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Let signals interrupt at once again."""
        super().on_train_end(trainer, module)
        self.signals.restore()

    def on_exception(self, trainer: pl.Trainer, module: pl.LightningModule, exception: BaseException) -> None:
        """Restore the signal handlers."""
        super().on_exception(trainer, module, exception)
        self.signals.restore()

    # Parts

    def _agree(self, trainer: pl.Trainer, loss: Tensor | float = 0.0) -> None:
        """Find out whether any rank was told to stop or has lost its loss, and whether rank 0 wants to save.

        Reading the loss waits for the device once per step, as Lightning's throughput monitor does.

        Raises:
            DivergedError: If a rank's loss is infinite or not a number.
        """
        minutes = (time.monotonic() - self._saved_at) / 60
        facts = torch.tensor([
            float(self.signals.exit_code),
            float(self.last and trainer.is_global_zero and minutes >= self.every_minutes),
            float(not torch.as_tensor(loss).isfinite()),
        ], device=trainer.strategy.root_device)  # fmt: skip
        if trainer.world_size > 1:
            dist.all_reduce(facts, dist.ReduceOp.MAX)
        exit_code, due, diverged = facts.tolist()
        self._exit_code = int(exit_code)
        self._due |= bool(due)
        if diverged:
            self._refuse(trainer, "the loss")

    def _save_due(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Write the checkpoints of a step that are due."""
        super().on_train_batch_end(trainer, module, None, None, 0)
        if self._due or self._exit_code:
            self._save(trainer)

    def _save(self, trainer: pl.Trainer) -> None:
        """Write last.ckpt, unless it is a dry run; a state that is not finite ends the run."""
        weights = [p.detach() for p in trainer.lightning_module.parameters()]
        mine = [p.to_local() if isinstance(p, DTensor) else p for p in weights]
        finite = bool(torch.stack([p.isfinite().all() for p in mine]).all())
        if any(isinstance(p, DTensor) for p in weights):  # of which every rank has a part
            finite = trainer.strategy.reduce_boolean_decision(finite)
        if not finite:
            self._refuse(trainer, "a weight")
        self._due = False
        if trainer.fast_dev_run:
            return
        trainer.save_checkpoint(self._path(trainer))
        self._saved_step, self._saved_at = trainer.global_step, time.monotonic()

    def _stop(self, trainer: pl.Trainer) -> None:
        """End the run if all ranks have agreed to.

        Raises:
            RunStoppedError: On rank 0; on other ranks SystemExit, so that one line is printed.
        """
        if not self._exit_code:
            return
        path = self._path(trainer)
        cause = "SIGTERM" if self._exit_code == PREEMPTED else "Ctrl-C"
        message = f"stopped by {cause} before the first step: nothing to resume."
        if self._saved_step and path.is_file():
            message = (
                f"stopped by {cause}; {path} holds step {self._saved_step:,}. Resume: train.py fit --config "
                f"{path.parent / 'config.yaml'} --resume auto"
            )
        if trainer.is_global_zero:
            raise RunStoppedError(message, self._exit_code)
        raise SystemExit(self._exit_code)

    def _refuse(self, trainer: pl.Trainer, what: str) -> None:
        """End a run that has diverged.

        Raises:
            DivergedError: On rank 0; on other ranks SystemExit, so that one line is printed.
        """
        path = self._path(trainer)
        saved = f"{path} holds step {self._saved_step:,}" if path.is_file() else "no checkpoint was written"
        if trainer.is_global_zero:
            raise DivergedError(
                f"{what} is infinite or not a number at step {trainer.global_step:,} (epoch {trainer.current_epoch}); "
                f"{saved}. Lower model.optimizer.learning_rate, set trainer.gradient_clip_val, or train in 32-true."
            )
        raise SystemExit(DivergedError.exit_code)

    def _path(self, trainer: pl.Trainer) -> Path:
        return Path(self.dirpath or trainer.default_root_dir) / LAST


def _is_fitting(trainer: pl.Trainer) -> bool:
    """Whether this is training or a validation within it, not the check of a few batches before."""
    return trainer.state.fn == TrainerFn.FITTING and not trainer.sanity_checking


def _is_last_step(trainer: pl.Trainer) -> bool:
    """Whether the run ends with this optimizer step."""
    loop = trainer.fit_loop
    last_epoch = trainer.max_epochs is not None and 0 < trainer.max_epochs <= trainer.current_epoch + 1
    return 0 < trainer.max_steps <= trainer.global_step or (last_epoch and loop.epoch_loop.batch_progress.is_last_batch)
