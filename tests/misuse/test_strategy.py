"""Every strategy that Lightning allows is either trained with or refused in one line, before a model is loaded."""

from pathlib import Path

import pytest
import pytorch_lightning as pl
from pytorch_lightning.strategies import ModelParallelStrategy, StrategyRegistry

from common.errors import UserError
from trainers.drrag import DrRagTrainer
from trainers.run.strategies import SHOWN, refuse_strategy


def test_every_strategy_of_lightning_is_decided() -> None:
    for name in {*StrategyRegistry.available_strategies(), "auto"}:
        if name in SHOWN:
            refuse_strategy(name, DrRagTrainer)
        else:
            with pytest.raises(UserError, match=f"trainer.strategy is {name}, which has not been shown"):
                refuse_strategy(name, DrRagTrainer)
    refuse_strategy("fsdp2", DrRagTrainer.shardable)


def test_a_trainer_made_in_python_is_refused_too(checkpoints: dict[str, Path]) -> None:
    module = DrRagTrainer(str(checkpoints["bert"]), 96)
    module.trainer = pl.Trainer(
        accelerator="cpu", devices=1, strategy=ModelParallelStrategy(), logger=False, enable_checkpointing=False
    )
    with pytest.raises(UserError, match=r"trainer\.strategy is ModelParallelStrategy"):
        module.setup("fit")
