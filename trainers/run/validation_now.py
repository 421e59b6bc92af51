"""A validation outside Lightning's schedule, at the present state of a run."""

import pytorch_lightning as pl


def validate_now(trainer: pl.Trainer) -> None:
    """Run the whole validation within `fit`, with all its hooks, between two optimizer steps or before the first."""
    validation = trainer.fit_loop.epoch_loop.val_loop
    validation.restarting = False
    validation.batch_progress.reset()
    trainer.validating = True
    validation.run()
    validation._has_run = False
    trainer.training = True
