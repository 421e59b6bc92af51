"""A callback that sends a signal to its own process at a given moment of a run."""

import os
import signal
from functools import partialmethod
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

    def at(self, hook: str, trainer: pl.Trainer, *_: Any) -> None:
        """In the hook: send it, if this is the moment."""
        if hook != self.hook or self.sent or trainer.global_step < self.step or trainer.global_rank != self.rank:
            return
        if trainer.sanity_checking and hook in ("on_validation_batch_end", "on_validation_end"):
            return
        self.sent = True
        twice = self.name == "KeyboardInterrupt"
        for _ in range(1 + twice):
            os.kill(os.getpid(), signal.SIGINT if twice else getattr(signal, self.name))


TRAINING = (
    "on_train_batch_start",
    "on_before_optimizer_step",
    "on_train_batch_end",
    "on_train_epoch_end",
    "on_fit_end",
)
VALIDATION = ("on_sanity_check_end", "on_validation_start", "on_validation_batch_end", "on_validation_end")
for _hook in (*TRAINING, *VALIDATION):
    setattr(SignalAt, _hook, partialmethod(SignalAt.at, _hook))


def signal_at(**arguments: object) -> list[str]:
    """The options of train.py that add the callback with these arguments."""
    given = [part for key, value in arguments.items() for part in (f"--trainer.callbacks.{key}", str(value))]
    return ["--trainer.callbacks+=tests.helpers.signal_at.SignalAt", *given]
