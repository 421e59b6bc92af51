"""What train.py prints: progress with the time left, a line per validation, what was written and what to type next."""

import sys
import time
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Callback, Timer
from pytorch_lightning.trainer.states import TrainerFn

from common.errors import as_typed
from common.progress import Progress, in_time, say
from trainers.run.collapse import collapse_of
from trainers.run.module import RunModule


class _Training(Progress):
    """Optimizer steps, with the epoch and the loss of the last step that was logged."""

    def __init__(self, trainer: pl.Trainer) -> None:
        steps = trainer.estimated_stepping_batches
        super().__init__("training", int(steps) if 0 < steps < float("inf") else None)
        self.trainer = trainer
        self.done = self._skipped = trainer.global_step

    def text(self) -> str:
        """As `training, epoch 1 of 3, step: 20 of 477, 3 min 40 s left, train/loss_nats 0.613`."""
        epochs = self.trainer.max_epochs
        of = f" of {epochs}" if epochs is not None and epochs > 0 else ""
        self.what = f"training, epoch {self.trainer.current_epoch + 1}{of}, step"
        # not the trainer's own metrics: reading them may start a collective, and this is called by a thread of rank 0
        loss = getattr(self.trainer.lightning_module, "last_loss", "")
        return ", ".join([super().text(), *([loss] if loss else [])])


class Console(Callback):
    """Prints progress on standard error, and validations and a summary on standard output, on rank 0.

    Args:
        progress: Whether to show progress.
    """

    def __init__(self, progress: bool = True) -> None:
        self.progress = progress
        self._shown: list[Progress] = []  # outermost first
        self._began = time.monotonic()
        self._first_step = 0

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Start to show the steps."""
        self._began, self._first_step = time.monotonic(), trainer.global_step
        self._show(_Training(trainer))

    def on_train_batch_end(self, trainer: pl.Trainer, module: pl.LightningModule, *args: Any) -> None:
        """Count the optimizer steps."""
        if self._shown:
            self._shown[0].advance(trainer.global_step - self._shown[0].done)

    def on_validation_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Start to show the batches of a validation."""
        batches = sum(trainer.num_val_batches)
        if trainer.state.fn != TrainerFn.FITTING:
            trainer.validate_loop.verbose = False  # Lightning's table, with seventeen digits
        if not trainer.sanity_checking:
            self._show(Progress("validation, batch", int(batches) if batches < float("inf") else None))

    def on_validation_batch_end(self, trainer: pl.Trainer, module: pl.LightningModule, *args: Any) -> None:
        """Count them."""
        if self._shown and not trainer.sanity_checking:
            self._shown[-1].advance()

    def on_validation_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Print the metrics: in training in one line, else as a table."""
        if trainer.sanity_checking:
            return
        if self._shown:
            self._shown.pop().__exit__(None, None, None)
        metrics = {f"val/{name}": value for name, value in getattr(module, "validation_metrics", {}).items()}
        if not trainer.is_global_zero or not metrics:
            return
        if trainer.state.fn != TrainerFn.FITTING:
            say("\n".join(table(metrics)), sys.stdout)
            return
        chooser = trainer.checkpoint_callback
        monitor = getattr(chooser, "monitor", None)
        # not check_monitor_top_k, which reduces over the ranks: this is rank 0 alone
        best = monitor in metrics and _improves(metrics[monitor], chooser.best_model_score, chooser.mode)
        named = ", ".join(f"{name} {value:.4g}" for name, value in metrics.items())
        say(f"validation after step {trainer.global_step:,}: {named}{' (best so far)' * best}", sys.stdout)

    def on_train_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Show no more progress."""
        self._hide()

    def on_exception(self, trainer: pl.Trainer, module: pl.LightningModule, exception: BaseException) -> None:
        """Show no more progress."""
        self._hide()

    def on_fit_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Print what was written and what to type next."""
        if not trainer.is_global_zero:
            return
        folder = Path(trainer.default_root_dir)
        steps, seconds = trainer.global_step - self._first_step, time.monotonic() - self._began
        say(f"{folder}: {steps:,} steps in {in_time(seconds)}; {why_ended(trainer)}.", sys.stdout)
        for line in written(trainer, folder):
            say(f"  {line}", sys.stdout)
        if (folder / "serving").is_dir() and isinstance(module, RunModule):
            say(as_typed(f"Next: {module.next_step(folder / 'serving')}"), sys.stdout)

    def _show(self, work: Progress) -> None:
        if self.progress:
            self._shown.append(work.__enter__())

    def _hide(self) -> None:
        while self._shown:
            self._shown.pop().__exit__(None, None, None)


def _improves(value: float, best: Any, mode: str) -> bool:
    """Whether a metric is better than the best checkpoint's, if there is one."""
    return best is None or (value > float(best) if mode == "max" else value < float(best))


def why_ended(trainer: pl.Trainer) -> str:
    """Why a run has ended."""
    if collapse := collapse_of(trainer):
        return f"ended early: {collapse}"
    for stopping in trainer.early_stopping_callbacks:
        if stopping.wait_count >= max(1, stopping.patience):
            return f"ended early: {stopping.monitor} has not improved in {stopping.wait_count} validations"
    if 0 < trainer.max_steps <= trainer.global_step:
        return f"trainer.max_steps {trainer.max_steps:,} is reached"
    if any(isinstance(callback, Timer) and callback.time_remaining() <= 0 for callback in trainer.callbacks):
        return "trainer.max_time is reached"
    return f"trainer.max_epochs {trainer.max_epochs} is reached"


def written(trainer: pl.Trainer, folder: Path) -> list[str]:
    """The files of a run with what they are for."""
    chooser = trainer.checkpoint_callback
    score = getattr(chooser, "best_model_score", None)
    best = f"{chooser.monitor} {float(score):.4g}" if score is not None else "the newest state"
    resume = f"python train.py fit --config {folder / 'config.yaml'} --resume auto"
    purposes = {
        Path(getattr(chooser, "best_model_path", None) or "best.ckpt").name: best,
        "last.ckpt": as_typed(f"to go on with a larger trainer.max_epochs or max_steps: {resume}"),
        "serving": "the model of the best checkpoint, for infer.py and transformers",
        "metrics.jsonl": "all logged metrics",
        "plots": "of the last validation",
    }
    there = {name: purpose for name, purpose in purposes.items() if (folder / name).exists()}
    width = max(map(len, there), default=0)
    return [f"{name:<{width}}  {purpose}" for name, purpose in there.items()]


def table(metrics: dict[str, float]) -> list[str]:
    """Metrics as aligned lines."""
    width = max(map(len, metrics))
    return [f"{name:<{width}}  {value:.4g}" for name, value in metrics.items()]
