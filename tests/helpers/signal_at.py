"""A callback that sends a signal to its own process at a given moment of a run."""

import os
import signal
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Callback


class SignalAt(Callback):
    """Sends `name` in the hook `hook`, once `step` optimizer steps are done, on `rank`.

    Args:
        hook: E.g. on_train_batch_start.
        step: Optimizer steps that must be done.
        name: E.g. SIGTERM; KeyboardInterrupt sends SIGINT twice.
        rank: The rank that is signalled.
    """

    def __init__(self, hook: str, step: int = 0, name: str = "SIGTERM", rank: int = 0) -> None:
        self.hook, self.step, self.name, self.rank, self.sent = hook, step, name, rank, False

    def _at(self, hook: str, trainer: pl.Trainer) -> None:
        if hook != self.hook or self.sent or trainer.global_step < self.step or trainer.global_rank != self.rank:
            return
        self.sent = True
        twice = self.name == "KeyboardInterrupt"
        for _ in range(1 + twice):
            os.kill(os.getpid(), signal.SIGINT if twice else getattr(signal, self.name))

    def on_sanity_check_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        self._at("on_sanity_check_end", trainer)

    def on_train_batch_start(self, trainer: pl.Trainer, *args: Any) -> None:
        self._at("on_train_batch_start", trainer)

    def on_before_optimizer_step(self, trainer: pl.Trainer, *args: Any) -> None:
        self._at("on_before_optimizer_step", trainer)

    def on_train_batch_end(self, trainer: pl.Trainer, *args: Any) -> None:
        self._at("on_train_batch_end", trainer)

    def on_train_epoch_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        self._at("on_train_epoch_end", trainer)

    def on_validation_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        self._at("on_validation_start", trainer)

    def on_validation_batch_end(self, trainer: pl.Trainer, *args: Any) -> None:
        if not trainer.sanity_checking:
            self._at("on_validation_batch_end", trainer)

    def on_validation_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        if not trainer.sanity_checking:
            self._at("on_validation_end", trainer)

    def on_fit_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        self._at("on_fit_end", trainer)


def signal_at(**arguments: object) -> list[str]:
    """The options of train.py that add the callback with these arguments."""
    given = [part for key, value in arguments.items() for part in (f"--trainer.callbacks.{key}", str(value))]
    return ["--trainer.callbacks+=tests.helpers.signal_at.SignalAt", *given]
