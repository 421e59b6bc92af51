"""Uses of Lightning beyond its documented interface, which exact resume needs.

tests/trainers/run/test_checkpoints.py fails when a release of Lightning changes it.
"""

import pytorch_lightning as pl


def validation_follows(trainer: pl.Trainer) -> bool:
    """In `on_train_batch_end`: whether a validation follows this batch, before which a checkpoint must say so."""
    return trainer.fit_loop.epoch_loop._should_check_val_fx(trainer.fit_loop._data_fetcher)


def validate_now(trainer: pl.Trainer) -> None:
    """Before the first step of a start, in `on_train_..._start`: run the whole validation with all its hooks."""
    validation = trainer.fit_loop.epoch_loop.val_loop
    validation.restarting = False
    validation.batch_progress.reset()
    trainer.validating = True
    validation.run()
    validation._has_run = False  # a run resumed at an epoch's end does not go on exactly otherwise
    trainer.training = True


def set_max_steps(trainer: pl.Trainer, steps: int) -> None:
    """Change the number of optimizer steps at which `fit` ends."""
    trainer.fit_loop.epoch_loop.max_steps = steps
