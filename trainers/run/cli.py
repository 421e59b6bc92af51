"""Command line of train.py: LightningCLI with run folders, strict keys, a saved config and every run's callbacks."""

import json
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pytorch_lightning as pl
import yaml
from pytorch_lightning.callbacks import ProgressBar, TQDMProgressBar
from pytorch_lightning.cli import LightningArgumentParser, LightningCLI, SaveConfigCallback
from pytorch_lightning.utilities import rank_zero_only

from common.command_line import CommandLine, refuse_null_groups
from common.errors import ArtifactError, MissingInputError, UserError
from common.files import write_text
from common.locks import exclusive
from common.roots import add_roots, refuse_unused
from trainers.run.callbacks import RandomState, RunRecord, ServingExport
from trainers.run.changed_weights import check_callbacks
from trainers.run.checkpoints import RunCheckpoint
from trainers.run.console import Console
from trainers.run.durable_checkpoints import DurableCheckpointIO, holds_training, read_checkpoint
from trainers.run.early_stopping import EarlyStopping
from trainers.run.environment import file_digests
from trainers.run.largest_batch import LargestBatch
from trainers.run.loggers import JsonlLogger, LateLoggers, RunWandbLogger, check_loggers, loggers_of, require_loggers
from trainers.run.model_card import Card
from trainers.run.resume import holds_run, newest_checkpoint
from trainers.run.resumed_options import (
    CONFIG,
    input_digests,
    plain,
    refuse_changed_files,
    refuse_changes,
    refuse_earlier_release,
    refuse_fewer_steps,
)
from trainers.run.searching import search
from trainers.run.strategies import refuse_strategy
from trainers.run.throughput import Throughput
from trainers.run.trainer import RunTrainer

OF_A_RUN = {"serving", "plots", "wandb", "lightning_logs"}  # folders that a run writes
RESTARTS = ("SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT")  # above 0 when a scheduler restarts a run


def run_folder(name: str | None) -> str:
    """checkpoints/<name>, with a subfolder for every trial of a W&B sweep.

    Without a name, which the parser then misses, checkpoints.
    """
    trial = os.environ.get("WANDB_RUN_ID") if "WANDB_SWEEP_ID" in os.environ else None
    return str(Path("checkpoints", name or "", *([trial] if trial else [])))


def check_name(name: str) -> None:
    """Raise UserError if a run's name is empty or leaves checkpoints/, or if its folder would lie in another run's."""
    parts = Path(name).parts
    if not parts or Path(name).is_absolute() or ".." in parts:
        raise UserError(f"--name {name!r} is not a name below checkpoints/. Choose one such as first-1 or first/1.")
    folder = Path("checkpoints", name)
    outer = next((parent for parent in folder.parents[: len(parts) - 1] if holds_run(parent)), None)
    if outer or not OF_A_RUN.isdisjoint(parts[1:]):  # the outer run's export would replace the folder `serving`
        raise UserError(f"--name {name!r} lies within the run {outer or folder.parent}. Choose another --name.")


def with_files(args: Sequence[str]) -> list[str]:
    """The arguments, with the files that `--data.train FILE` or '[FILE, FILE]' names as records of them.

    Validation likewise.
    """
    given, written = iter(args), []
    for arg in given:
        name, equals, value = arg.partition("=")
        if name in ("--data.train", "--data.validation"):
            value = value if equals else next(given, "")
            with suppress(yaml.YAMLError):
                read = yaml.safe_load(value)
                files = read if isinstance(read, list) else [read]
                if files and all(isinstance(file, str) for file in files):  # else mappings, or null
                    value = json.dumps([{"path": file} for file in files])
            arg = f"{name}={value}"
        written.append(arg)
    return written


class BriefParser(CommandLine, LightningArgumentParser):
    """LightningArgumentParser with one-line errors."""

    command = "train.py"

    def parse_args(self, args: Sequence[str] | None = None, *more: Any, **kwargs: Any) -> Any:
        """Parse the arguments, see `with_files`."""
        return super().parse_args(with_files(sys.argv[1:] if args is None else args), *more, **kwargs)

    def dump(self, *args: Any, **kwargs: Any) -> str:
        """The configuration as text, without a second check: it has been parsed."""
        if "skip_none" in kwargs:  # what Lightning 2.6 gives is called skip_unset since jsonargparse 4.49
            kwargs["skip_unset"] = kwargs.pop("skip_none")
        return super().dump(*args, **{"skip_validation": True, **kwargs})


class SaveRunConfig(SaveConfigCallback):
    """Writes the complete config beside the checkpoints and sends it to the loggers, once training starts.

    Not in `setup`, as Lightning does: a run that is refused before its first step must leave nothing behind.
    """

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Do nothing yet."""

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Save the config."""
        if trainer.is_global_zero:
            self.save_config(trainer, pl_module, "fit")

    def save_config(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Write the file, without how this start was resumed, and tell the loggers."""
        config = self.config.clone()
        config.resume = config.ckpt_path = None  # the next start, perhaps of another name, must not inherit them
        text = self.parser.dump(config, skip_unset=False)
        write_text(Path(trainer.default_root_dir) / CONFIG, text)
        for logger in trainer.loggers:
            logger.log_hyperparams(yaml.safe_load(text))


class TrainCLI(LightningCLI):
    """`train.py {fit,validate}` for any trainer and data module.

    Args:
        args: The command line; sys.argv when None.
        locks: Receives the lock of the run's folder; it is held until the stack is closed.
        kwargs: Lightning's.
    """

    def __init__(self, args: list[str] | None = None, *, locks: ExitStack, **kwargs: Any) -> None:
        self.locks, self.given = locks, sys.argv[1:] if args is None else args
        words = [part for word in self.given for part in (word.split("=", 1) if word.startswith("--") else [word])]
        typed = dict(pairwise(words))
        self._config_in = Path(typed.get("--config", "")).parent
        own = self.given[:1] == ["fit"] and {"--resume", "--config"} <= typed.keys() and "--name" not in typed
        if own:  # the config is the run's
            refuse_earlier_release(Path(typed["--config"]).parent)  # before options that have left are refused
        self.inputs: dict[str, str] = {}  # what the options name -> its sha256; on rank 0
        self.resumed: Path | None = None  # folder of the run that is resumed; on rank 0
        self._values: dict[str, Any] = {}  # the options of a fit, as plain values; on rank 0
        super().__init__(
            args=args,
            auto_configure_optimizers=False,
            seed_everything_default=0,
            trainer_class=RunTrainer,
            save_config_callback=SaveRunConfig,
            save_config_kwargs={"save_to_log_dir": False},
            trainer_defaults={"logger": False, "enable_model_summary": False},
            **kwargs,
        )

    def subcommands(self) -> dict[str, set[str]]:
        """The subcommand that the arguments begin with, else Lightning's without `test` and `predict`.

        (infer.py evaluates and answers questions.)  A parser of both takes twice as long to build.
        """
        known = LightningCLI.subcommands()
        named = [name for name in ("fit", "validate") if self.given[:1] == [name]]
        return {name: known[name] for name in named or ("fit", "validate")}

    def init_parser(self, **kwargs: Any) -> LightningArgumentParser:
        """The parser with one-line errors."""
        kwargs.setdefault("dump_header", [f"pytorch-lightning=={pl.__version__}"])
        parser = BriefParser(**kwargs)
        told = "File in YAML, one of configs/train; several are merged, and later options override it."
        parser.add_argument("-c", "--config", action="config", help=told)
        return parser

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add the name, checkpoint and early-stopping options."""
        named = "The run's name: its files go to checkpoints/<name>."
        resumed = (
            "auto: take the run's newest checkpoint that verifies; fit starts if there is none, and refuses other "
            "options than the run's, but for those that docs/operate.md lists."
        )
        parser.add_argument("--name", type=str, required=True, help=named)
        parser.add_argument("--resume", type=Literal["auto"] | None, default=None, help=resumed)
        add_roots(parser)
        parser.add_lightning_class_args(RunCheckpoint, "checkpoint")
        parser.add_lightning_class_args(EarlyStopping, "early_stopping")
        parser.set_defaults({  # after a validation, before last.ckpt is written: a resumed run counts alike
            "early_stopping.check_on_train_epoch_end": False,
            "early_stopping.strict": False,  # its first validation lacks the metrics of training steps
        })  # fmt: skip
        parser.add_class_arguments(Card, "card")
        parser.link_arguments("checkpoint.monitor", "early_stopping.monitor")
        parser.link_arguments("name", "trainer.default_root_dir", compute_fn=run_folder)
        parser.link_arguments("name", "checkpoint.dirpath", compute_fn=run_folder)
        parser.link_arguments("name", "trainer.logger.init_args.save_dir", compute_fn=run_folder)  # of CSV, TensorBoard
        (logger,) = [action for action in parser._actions if action.dest == "trainer.logger"]
        # jsonargparse knows short names of subclasses, but no other words, such as wandb for this project's logger.
        logger._check_type = partial(check_loggers, logger)

    def _parse_ckpt_path(self) -> None:
        """Do nothing: Lightning would load the checkpoint unverified and let it override the user's options."""

    def before_instantiate_classes(self) -> None:
        """Lock the run's folder and find its checkpoint before anything is loaded.

        Raises:
            UserError: If a group of options is null, the strategy is refused, a logger's package is missing, the name
                is taken, another process trains a run of that name, or options or files of a resumed run have changed.
            MissingInputError: If there is no such checkpoint.
            ArtifactError: If it is corrupt, or fit is to continue from weights alone.
        """
        refuse_unused(self.given, self.parser.used_roots)
        options = self.config[self.subcommand]
        check_name(options.name)
        if options.data is None:
            raise UserError("data is null: name a data module, as the configs of configs/train do.")
        refuse_null_groups({"model": options.model, "data": options.data})
        refuse_strategy(options.trainer.strategy)
        require_loggers(options.trainer.logger)
        folder = Path(run_folder(options.name))
        fits = self.subcommand == "fit"
        first = fits and rank_zero_only.rank == 0
        if first:
            self.locks.enter_context(exclusive(folder, "Wait for it, or choose another --name."))
        restarted = fits and any(int(os.environ.get(variable, "0")) > 0 for variable in RESTARTS)
        if options.resume or restarted:  # a scheduler types the same line again: its --ckpt_path is where the run began
            newest = newest_checkpoint(folder, rank_zero_only(partial(print, flush=True)))
            options.ckpt_path = str(newest) if newest else options.ckpt_path
            if options.ckpt_path is None and not fits:
                cure = "give another --name, or --ckpt_path FILE"
                raise MissingInputError(f"{folder} holds no checkpoint to validate: {cure}.")
        elif first and holds_run(folder) and folder.resolve() != Path(options.ckpt_path or "").resolve().parent:
            raise UserError(f"{folder} already holds a run: choose another --name, or continue it with --resume auto.")
        elif not fits and options.ckpt_path is None and self._config_in.resolve() == folder.resolve():
            # a run's own config builds the model that it started from
            if not (best := folder / f"{options.checkpoint.filename}.ckpt").is_file():
                raise MissingInputError(f"{best} does not exist: give --ckpt_path FILE, or --resume auto.")
            options.ckpt_path = str(best)
            rank_zero_only(partial(print, flush=True))(f"validating {best}")
        if options.ckpt_path:
            checkpoint = read_checkpoint(Path(options.ckpt_path), mmap=True)
            if fits and not holds_training(checkpoint):
                raise ArtifactError(f"{options.ckpt_path} holds only weights: a run cannot be resumed from it.")
        if first:
            parser = self._parser(self.subcommand)
            self._values = values = plain(parser, options)
            if options.ckpt_path:
                self.inputs |= input_digests(values)
                self.resumed = Path(options.ckpt_path).parent
                refuse_changes(parser, self.resumed, values, self.inputs)
                refuse_fewer_steps(checkpoint, Path(options.ckpt_path), values["trainer"])

    def instantiate_classes(self) -> None:
        """Create what the config names.

        Raises:
            UserError: If a class, such as a progress bar, needs a package that is not installed, FSDP2 is to divide
                what cannot be divided, or a data file of a resumed run has changed.
        """
        try:
            super().instantiate_classes()
        except ValueError as error:
            cause: BaseException | None = error  # the parser wraps what constructors raise
            while cause is not None and not isinstance(cause, ModuleNotFoundError):
                cause = cause.__cause__
            if cause is None:
                raise
            raise UserError(f"a package is missing: {' '.join(str(cause).split())}") from error
        refuse_strategy(self.trainer.strategy, getattr(self.model, "shardable", False))
        if self.resumed is not None:
            refuse_changed_files(self.resumed, file_digests(self.datamodule))
        elif self._values:  # of a new run, no file is read before the options are checked
            self.inputs |= input_digests(self._values)
        self.model.card = self._get(self.config_init, "card")

    def before_fit(self) -> None:
        """Search for the training questions, where `data.search` names a retriever.

        Raises:
            UserError: If the search fails.
        """
        if self.datamodule.search_results:
            search(self.datamodule.search_results)

    before_validate = before_fit

    def instantiate_trainer(self, **kwargs: Any) -> pl.Trainer:
        """Add the callbacks, checkpoint plugin and logger of every run to those of the config."""
        config = self._get(self.config_init, "trainer")
        late = LateLoggers()
        record, export = RunRecord(self.inputs), ServingExport()
        ours = [late, record, Throughput(), RandomState(), LargestBatch(), export, Console()]
        for key, always in (("callbacks", ours), ("plugins", [DurableCheckpointIO()])):
            given = config.get(key) or []
            kwargs[key] = [*(given if isinstance(given, list) else [given]), *always]
        check_callbacks(kwargs["callbacks"][: -len(ours)])
        if not any(isinstance(callback, ProgressBar) for callback in kwargs["callbacks"]):
            shown = config.get("enable_progress_bar")  # a log file gets a line per validation
            kwargs["enable_progress_bar"] = shown = sys.stdout.isatty() if shown is None else shown
            kwargs["callbacks"] += [TQDMProgressBar()] * shown
        try:
            trainer = super().instantiate_trainer(**kwargs)
        except (ValueError, TypeError, RuntimeError) as error:  # how Lightning refuses values of its own options
            raise UserError(f"the trainer's options are refused: {' '.join(str(error).split())}") from error
        folder = Path(trainer.default_root_dir)
        for logger in loggers_of(trainer, RunWandbLogger):
            logger.attach(folder)
        late.hold(trainer)
        if self.subcommand == "fit" and not trainer.fast_dev_run:  # `validate` belongs to no step of the run
            trainer.loggers = [JsonlLogger(folder)]
        return trainer
