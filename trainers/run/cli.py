"""Command line of train.py: LightningCLI with run folders, strict keys, a saved config and the callbacks of every run."""

import os
from pathlib import Path
from typing import Any, ClassVar

import pytorch_lightning as pl
import yaml
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from pytorch_lightning.cli import LightningArgumentParser, LightningCLI, SaveConfigCallback

from common.command_line import CommandLine
from common.errors import UserError
from common.files import write_text
from trainers.run.callbacks import RandomState, RunRecord, ServingExport
from trainers.run.durable_checkpoints import DurableCheckpointIO, verify_checkpoint
from trainers.run.help import GROUPS
from trainers.run.loggers import JsonlLogger, RunWandbLogger
from trainers.run.throughput import Throughput

STRICT = {"allow_abbrev": False}  # `--trainer.max_epoch` is an error, not an abbreviation
RESTARTS = ("SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT")  # above 0 when a scheduler restarts a run


def run_folder(name: str) -> str:
    """checkpoints/<name>, with a subfolder for every trial of a W&B sweep."""
    trial = os.environ.get("WANDB_RUN_ID") if "WANDB_SWEEP_ID" in os.environ else None
    return str(Path("checkpoints", name, *([trial] if trial else [])))


def check_name(name: str) -> None:
    """Raise UserError if a run's name is empty or leaves checkpoints/."""
    if not Path(name).parts or Path(name).is_absolute() or ".." in Path(name).parts:
        raise UserError(f"--name {name!r} is not a name below checkpoints/. Choose one such as drrag-1 or drrag/1.")


class BriefParser(CommandLine, LightningArgumentParser):
    """LightningArgumentParser with one-line errors."""

    command = "train.py"
    built_in_checks: ClassVar = (pl.LightningDataModule,)
    explained_groups: ClassVar = tuple(GROUPS)


class SaveRunConfig(SaveConfigCallback):
    """Writes the complete config beside the checkpoints and sends it to the loggers."""

    def save_config(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Save the config; called on rank 0 before training."""
        text = self.parser.dump(self.config, skip_unset=False)
        write_text(Path(trainer.default_root_dir) / "config.yaml", text)
        for logger in trainer.loggers:
            logger.log_hyperparams(yaml.safe_load(text))


class TrainCLI(LightningCLI):
    """`train.py {fit,validate,test}` for any trainer and data module."""

    def __init__(self, args: list[str] | None = None, **kwargs: Any) -> None:
        super().__init__(
            args=args,
            auto_configure_optimizers=False,
            seed_everything_default=0,
            save_config_callback=SaveRunConfig,
            save_config_kwargs={"save_to_log_dir": False},
            trainer_defaults={"logger": False},
            parser_kwargs={**STRICT, **{command: STRICT for command in self.subcommands()}},
            **kwargs,
        )

    @staticmethod
    def subcommands() -> dict[str, set[str]]:
        """Lightning's subcommands without `predict`: infer.py answers questions."""
        return {name: skipped for name, skipped in LightningCLI.subcommands().items() if name != "predict"}

    def init_parser(self, **kwargs: Any) -> LightningArgumentParser:
        """The parser with one-line errors."""
        kwargs.setdefault("dump_header", [f"pytorch-lightning=={pl.__version__}"])
        parser = BriefParser(**kwargs)
        parser.add_argument("-c", "--config", action="config", help="Path to a configuration file in YAML.")
        return parser

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add the name, checkpoint and early-stopping options."""
        parser.add_argument(
            "--name", type=str, required=True, help="The run's name: its files go to checkpoints/<name>."
        )
        parser.add_lightning_class_args(ModelCheckpoint, "checkpoint")
        parser.set_defaults(
            {
                "checkpoint.filename": "best",
                "checkpoint.save_last": True,
                "checkpoint.enable_version_counter": False,
                "checkpoint.mode": "max",
            }
        )
        parser.add_lightning_class_args(EarlyStopping, "early_stopping")
        # Not strict: a run stopped during a validation resumes after it, without that validation's metric.
        # A misspelt metric is still found: ModelCheckpoint monitors the same one.
        parser.set_defaults(
            {"early_stopping.mode": "max", "early_stopping.patience": 3, "early_stopping.strict": False}
        )
        parser.link_arguments("checkpoint.monitor", "early_stopping.monitor")
        parser.link_arguments("name", "trainer.default_root_dir", compute_fn=run_folder)
        parser.link_arguments("name", "checkpoint.dirpath", compute_fn=run_folder)

    def _parse_ckpt_path(self) -> None:
        """Do nothing: Lightning would load the checkpoint unverified and let it override the user's options."""

    def before_instantiate_classes(self) -> None:
        """Check the run's name and checkpoint before anything is loaded."""
        options = self.config[self.subcommand]
        check_name(options.name)
        folder = Path(run_folder(options.name))
        last = folder / "last.ckpt"
        if options.ckpt_path:
            verify_checkpoint(Path(options.ckpt_path))
        if self.subcommand == "fit" and (folder / "config.yaml").exists() and not options.ckpt_path:
            if any(int(os.environ.get(name, "0")) > 0 for name in RESTARTS):
                options.ckpt_path = str(last) if last.is_file() else None
            elif "LOCAL_RANK" not in os.environ or os.environ["LOCAL_RANK"] == "0":
                raise UserError(
                    f"{folder} already holds a run: choose another --name, or resume it with --ckpt_path {last}."
                )

    def instantiate_trainer(self, **kwargs: Any) -> pl.Trainer:
        """Add the callbacks, checkpoint plugin and logger of every run to those of the config."""
        config = self._get(self.config_init, "trainer")
        always: dict[str, list[Any]] = {
            "callbacks": [RunRecord(), Throughput(), RandomState(), ServingExport()],
            "plugins": [DurableCheckpointIO()],
        }
        for key, ours in always.items():
            given = config.get(key) or []
            kwargs[key] = [*(given if isinstance(given, list) else [given]), *ours]
        trainer = super().instantiate_trainer(**kwargs)
        folder = Path(trainer.default_root_dir)
        for logger in trainer.loggers:
            if isinstance(logger, RunWandbLogger):
                logger.attach(folder)
        trainer.loggers = [*trainer.loggers, JsonlLogger(folder)]
        return trainer
