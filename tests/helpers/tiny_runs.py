"""Tiny runs of train.py in the test's own process, and what the tests of several trainers check.

Ranks, resuming, refusals, model cards.

A run reads `config.yaml` in the present folder.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
import pytorch_lightning as pl
import torch
import yaml
from huggingface_hub import ModelCard
from pytorch_lightning.cli import instantiate_module
from pytorch_lightning.strategies import SingleDeviceStrategy
from safetensors.torch import load_file
from torch import Tensor

import train
from datamodules.examples.step_loader import StepData

Data = TypeVar("Data", bound=StepData)
Module = TypeVar("Module", bound=pl.LightningModule)


def write_config(
    folder: Path,
    trainer: str,
    model: Mapping[str, Any],
    data_module: str,
    data: Mapping[str, Any],
    monitor: str,
    mode: str = "max",
    **training: Any,
) -> None:
    """`config.yaml` of a tiny run of two epochs, which logs every step and which no early stopping ends.

    Args:
        folder: To write into.
        trainer: Its class, below `trainers`.
        model: The trainer's options.
        data_module: Its class, below `datamodules`.
        data: The data module's options.
        monitor: The measure that chooses the checkpoint.
        mode: Whether more of it is better, max or min.
        training: Further options of Lightning's trainer.
    """
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "log_every_n_steps": 1}
    config = {
        "name": "tiny",
        "seed_everything": 0,
        "model": {"class_path": f"trainers.{trainer}", "init_args": dict(model)},
        "data": {"class_path": f"datamodules.{data_module}", "init_args": dict(data)},
        "trainer": {"accelerator": "cpu", "max_epochs": 2, "num_sanity_val_steps": 1, **quiet, **training},
        "checkpoint": {"monitor": monitor, "mode": mode},
        "early_stopping": {"mode": mode, "patience": 100},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))


def use(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, which becomes the present one."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.argv", ["train.py"])  # Lightning warns of others
    return folder


def fit(name: str, *extra: str) -> Path:
    """Run the command line; the run's folder."""
    train.main(["fit", "--config", "config.yaml", "--name", name, *extra])
    return Path("checkpoints", name)


def metrics(folder: Path) -> list[dict[str, Any]]:
    """What a run has logged, line by line."""
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def checkpoint_of(folder: Path, file: str = "best.ckpt") -> dict[str, Any]:
    """A checkpoint of a run."""
    return torch.load(folder / file, weights_only=True)


def best_of(folder: Path, trainer: type[Module], **changed: Any) -> Module:
    """What a run's best checkpoint holds, in evaluation mode, with some options changed."""
    best = checkpoint_of(folder)
    options = {name: value for name, value in best["hyper_parameters"].items() if not name.startswith("_")}
    module = instantiate_module(trainer, {**options, **changed})
    module.load_state_dict(best["state_dict"])
    return module.eval()


def served(serving: Path) -> dict[str, Tensor]:
    """The weights of the models in a serving folder, by part and name."""
    files = serving.glob("*/model.safetensors")
    return {f"{each.parent.name}.{name}": value for each in files for name, value in load_file(each).items()}


class Bench:
    """What data modules and trainers ask of Lightning's trainer, for any rank."""

    is_global_zero = False
    overfit_batches = 0

    def __init__(self, module: pl.LightningModule, rank: int = 0, ranks: int = 1, accumulate: int = 1) -> None:
        self.lightning_module, self.global_rank, self.world_size = module, rank, ranks
        self.accumulate_grad_batches = accumulate
        self.strategy: Any = SingleDeviceStrategy(torch.device("cpu"))


def set_up(data: Data, module: pl.LightningModule, rank: int = 0, ranks: int = 1, accumulate: int = 1) -> Data:
    """A data module, set up for training on a rank; both know each other by a `Bench`."""
    data.trainer = module.trainer = bench = Bench(module, rank, ranks, accumulate)  # type: ignore[assignment]
    bench.datamodule = data  # type: ignore[attr-defined]
    data.setup("fit")
    return data


def divided_steps(
    load: Callable[[int, int, int], StepData], ranks: int, accumulate: int
) -> Iterator[tuple[Any, list[Any]]]:
    """The batch of every optimizer step of an epoch on one rank, and those that ranks and accumulation make of it.

    Args:
        load: Rank, ranks, accumulated batches -> data module.
        ranks: Number of processes.
        accumulate: Batches accumulated per step.
    """
    whole = list(load(0, 1, 1).train_dataloader())
    parts = [list(load(rank, ranks, accumulate).train_dataloader()) for rank in range(ranks)]
    assert whole
    assert {len(each) for each in parts} == {accumulate * len(whole)}
    for number, batch in enumerate(whole):
        yield batch, [each[number * accumulate + n] for each in parts for n in range(accumulate)]


def run_card(serving: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[ModelCard, dict[str, Any]]:
    """The model card of a serving folder, and what its Python defines when it is run there, block after block."""
    card = ModelCard.load(serving / "README.md")
    blocks = re.findall(r"```python\n(.*?)```", card.text, flags=re.DOTALL)
    assert blocks
    monkeypatch.chdir(serving)
    found: dict[str, Any] = {"__name__": "card"}
    for code in blocks:
        exec(compile(code, "README.md", "exec"), found)
    return card, found
