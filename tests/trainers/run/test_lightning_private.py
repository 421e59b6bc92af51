"""What `trainers.run.lightning_private` uses of Lightning does what it is used for, in plain runs of Lightning."""

import pytest
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader

from trainers.run.lightning_private import set_max_steps, validate_now, validation_follows


class Recorder(pl.Callback):
    """Notes after which steps a validation is foretold, and after which one begins."""

    def __init__(self, first: bool = False) -> None:
        self.first = first  # whether to run a validation before the first step
        self.foretold: list[int] = []
        self.begun: list[int] = []

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Run a validation."""
        if self.first:
            validate_now(trainer)
            assert trainer.training

    def on_train_batch_end(self, trainer: pl.Trainer, *args: object) -> None:
        """Note what is foretold."""
        if validation_follows(trainer):
            self.foretold.append(trainer.global_step)

    def on_validation_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Note what has begun."""
        self.begun.append(trainer.global_step)


class Line(pl.LightningModule):
    """One weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        """A loss."""
        return (self.weight - batch.mean()).square().sum()

    def validation_step(self, batch: torch.Tensor, index: int) -> None:
        """Nothing."""

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """SGD."""
        return torch.optim.SGD(self.parameters(), 0.1)


def run(recorder: Recorder, steps: int | None = None, **options: object) -> pl.Trainer:
    class Longer(pl.Callback):
        """Changes the end of the run."""

        def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
            """Change it."""
            if steps is not None:
                set_max_steps(trainer, steps)

    trainer = pl.Trainer(
        accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, num_sanity_val_steps=0,
        enable_model_summary=False, callbacks=[recorder, Longer()], **options,
    )  # fmt: skip
    data = torch.arange(10.0)
    trainer.fit(Line(), DataLoader(data), DataLoader(data[:2]))
    return trainer


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"max_epochs": 2, "val_check_interval": 4}, [4, 8, 14, 18]),
        ({"max_epochs": 2, "check_val_every_n_epoch": 2}, [20]),
        ({"max_steps": 9, "val_check_interval": 3, "check_val_every_n_epoch": None}, [3, 6, 9]),
    ],
)
def test_validations_are_foretold(options, expected) -> None:
    run(recorder := Recorder(), **options)
    assert recorder.foretold == recorder.begun == expected


def test_a_validation_can_be_run_before_the_first_step() -> None:
    trainer = run(recorder := Recorder(first=True), max_epochs=1)
    assert (recorder.begun, trainer.global_step) == ([0, 10], 10)


def test_the_last_step_can_be_changed() -> None:
    assert run(Recorder(), steps=7, max_steps=3).global_step == 7
