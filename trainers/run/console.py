"""What train.py prints besides Lightning's progress bar.

A line per validation, and at the end what was written, why the run ended and what to type next.
"""

import sys
import time
from datetime import timedelta
from pathlib import Path

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Callback, Timer
from pytorch_lightning.trainer.states import TrainerFn

from common.errors import as_typed
from common.progress import say
from trainers.run.learning import CURE, doubts
from trainers.run.module import RunModule


class Console(Callback):
    """Prints validations and a summary on standard output, on rank 0."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._first_step = 0
        self._warned = False

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Start to count steps and time."""
        self._began, self._first_step = time.monotonic(), trainer.global_step

    def on_validation_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Leave out Lightning's table, with seventeen digits."""
        trainer.validate_loop.verbose = False

    def on_validation_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Print the metrics: in training in one line, else as a table."""
        metrics = {f"val/{name}": value for name, value in getattr(module, "validation_metrics", {}).items()}
        if trainer.sanity_checking or not trainer.is_global_zero or not metrics:
            return
        if trainer.state.fn != TrainerFn.FITTING:
            width = max(map(len, metrics))
            say("\n".join(f"{name:<{width}}  {value:.4g}" for name, value in metrics.items()), sys.stdout)
            return
        callback = trainer.checkpoint_callback
        monitor = getattr(callback, "monitor", None)
        best = False
        if monitor in metrics:  # not check_monitor_top_k, which reduces over the ranks: this is rank 0 alone
            score, sign = callback.best_model_score, 1 if callback.mode == "max" else -1
            best = score is None or sign * metrics[monitor] > sign * float(score)
        named = ", ".join(f"{name} {value:.4g}" for name, value in metrics.items())
        step, steps = trainer.global_step, getattr(module, "last_step", 0)
        say(f"validation after step {self._position(step, steps)}: {named}{' (best so far)' * best}", sys.stdout)
        late = step >= steps / 2  # before, a run may not have begun to learn
        if late and not self._warned and (found := doubts(module.validation_metrics)):
            self._warned = True
            say(f"warning: this run does not learn: {'; '.join(found)}. {CURE}", sys.stdout)

    def _position(self, step: int, steps: float) -> str:
        """As `40 of 477 (0:03:20 left)`."""
        if not self._first_step < step < steps < float("inf"):
            return f"{step:,}"
        left = (time.monotonic() - self._began) * (steps - step) / (step - self._first_step)
        return f"{step:,} of {steps:,.0f} ({_duration(left)} left)"

    def on_fit_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Print what was written and what to type next."""
        if not trainer.is_global_zero:
            return
        folder = Path(trainer.default_root_dir)
        steps, seconds = trainer.global_step - self._first_step, time.monotonic() - self._began
        say(f"{folder}: {steps:,} steps in {_duration(seconds)}; {why_ended(trainer)}.", sys.stdout)
        for line in written(trainer, folder):
            say(f"  {line}", sys.stdout)
        if (folder / "serving").is_dir() and isinstance(module, RunModule):
            say(as_typed(f"Next: {module.next_step(folder / 'serving')}"), sys.stdout)


def _duration(seconds: float) -> str:
    """As `0:03:20`."""
    return str(timedelta(seconds=round(seconds)))


def why_ended(trainer: pl.Trainer) -> str:
    """Why a run has ended."""
    for stopping in trainer.early_stopping_callbacks:
        if stopping.wait_count >= max(1, stopping.patience):
            return f"ended early: {stopping.monitor} has not improved in {stopping.wait_count} validations"
    if 0 < trainer.max_steps <= trainer.global_step:
        return f"trainer.max_steps {trainer.max_steps:,} is reached"
    if any(isinstance(callback, Timer) and callback.time_remaining() <= 0 for callback in trainer.callbacks):
        return "trainer.max_time is reached"
    return f"trainer.max_epochs {trainer.max_epochs} is reached"


def written(trainer: pl.Trainer, folder: Path) -> list[str]:
    """The files of a run with their purposes."""
    callback = trainer.checkpoint_callback
    score = getattr(callback, "best_model_score", None)
    best = f"{callback.monitor} {float(score):.4g}" if score is not None else "the newest state"
    resume = as_typed(f"python train.py fit --config {folder / 'config.yaml'} --resume auto")
    purposes = {
        Path(getattr(callback, "best_model_path", None) or "best.ckpt").name: best,
        "last.ckpt": f"to go on with a larger trainer.max_epochs or max_steps: {resume}",
        "serving": "the model of the best checkpoint, for infer.py and transformers",
        "metrics.jsonl": "all logged metrics",
        "plots": "of the last validation",
    }
    there = {name: purpose for name, purpose in purposes.items() if (folder / name).exists()}
    width = max(map(len, there), default=0)
    return [f"{name:<{width}}  {purpose}" for name, purpose in there.items()]
