"""A Lightning callback that sends this process a signal at a given optimizer step, as a user or a scheduler would."""

import os
import signal

import pytorch_lightning as pl


class SignalAt(pl.Callback):
    """Sends the signal when the step has been made.

    Args:
        step: Optimizer step, from 0.
        name: Of the signal, such as SIGTERM.
    """

    def __init__(self, step: int, name: str = "SIGTERM") -> None:
        self.step, self.number = step, signal.Signals[name]

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: object, batch_idx: int
    ) -> None:
        """Send it once."""
        if trainer.global_step == self.step:
            os.kill(os.getpid(), self.number)
