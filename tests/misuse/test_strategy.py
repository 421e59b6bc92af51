"""Every strategy that Lightning allows is either trained with or refused in one line, before a model is loaded."""

from pathlib import Path

import pytest
import pytorch_lightning as pl
from pytorch_lightning.strategies import ModelParallelStrategy, StrategyRegistry

from common.errors import UserError
from tests.helpers.commands import command, refused
from tests.trainers import test_rerag_training, test_t5
from trainers.drrag import DrRagTrainer
from trainers.rerag import ReRagTrainer
from trainers.run.strategies import SHOWN, refuse_strategy
from trainers.t5 import SpanCorruptionTrainer


def test_every_strategy_of_lightning_is_decided() -> None:
    for name in {*StrategyRegistry.available_strategies(), "auto"}:
        if name in SHOWN:
            refuse_strategy(name, DrRagTrainer)
        else:
            with pytest.raises(UserError, match=f"trainer.strategy is {name}, which has not been shown"):
                refuse_strategy(name, DrRagTrainer)
    refuse_strategy("fsdp2", SpanCorruptionTrainer)


def tried(folder: Path, *options: str) -> str:
    """The line of a run that is refused and leaves nothing."""
    before = sorted(folder.iterdir())
    line = refused(command(folder, "train.py", "fit", "--config", "config.yaml", "--name", "new", *options), 2)
    assert sorted(folder.iterdir()) == before
    return line


@pytest.mark.parametrize("strategy", ["fsdp", "deepspeed_stage_2", "ddp_spawn"])
def test_a_refused_strategy_is_one_line_before_anything_is_loaded(tmp_path: Path, strategy: str) -> None:
    test_t5.write_corpus(tmp_path / "corpus.jsonl")
    test_t5.write_config(tmp_path, tmp_path / "no-such-model")  # would be named if models were loaded first
    line = tried(tmp_path, "--trainer.strategy", strategy, "--trainer.devices", "2")
    assert f"trainer.strategy is {strategy}, which has not been shown" in line
    assert "type --trainer.strategy ddp" in line


def test_a_strategy_given_as_a_class_is_refused_too(tmp_path: Path) -> None:
    test_t5.write_corpus(tmp_path / "corpus.jsonl")
    test_t5.write_config(tmp_path, tmp_path / "no-such-model")
    given = ("--trainer.strategy", "pytorch_lightning.strategies.ModelParallelStrategy",
             "--trainer.strategy.init_args.data_parallel_size", "2")  # fmt: skip
    line = tried(tmp_path, *given)
    assert "ModelParallelStrategy, which has not been shown" in line
    assert "--trainer.strategy fsdp2" in line


def test_fsdp2_is_refused_for_rerag_whose_ranks_would_wait_for_each_other(tmp_path: Path) -> None:
    test_rerag_training.write_config(tmp_path, tmp_path / "no-such-model")
    line = tried(tmp_path, "--trainer.strategy", "fsdp2", "--trainer.devices", "2")
    assert "the ranks of ReRagTrainer run different numbers of forward passes" in line
    with pytest.raises(UserError, match="ReRagTrainer"):
        refuse_strategy("fsdp2", ReRagTrainer)


def test_a_trainer_made_in_python_is_refused_too(checkpoints: dict[str, Path]) -> None:
    module = SpanCorruptionTrainer(str(checkpoints["t5"]))
    module.trainer = pl.Trainer(
        accelerator="cpu", devices=1, strategy=ModelParallelStrategy(), logger=False, enable_checkpointing=False
    )
    with pytest.raises(UserError, match=r"trainer\.strategy is ModelParallelStrategy"):
        module.setup("fit")
