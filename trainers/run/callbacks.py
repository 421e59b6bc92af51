"""Callbacks of every run: run records, validation plots, random states in checkpoints, export of the serving folder."""

import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
import torch.distributed as dist
from pytorch_lightning.callbacks import Callback

from common.errors import ArtifactError
from common.files import whole_folder, write_json
from common.progress import Progress, say
from common.shown_text import terminal
from trainers.run.checkpoints import VALIDATION_DUE
from trainers.run.environment import commit, file_digests, hardware, versions
from trainers.run.learning import CURE, doubts
from trainers.run.loggers import JsonlLogger, RunWandbLogger, loggers_of
from trainers.run.preflight_checks import refuse_unknown_metric, refuse_validation_interval, warn_of_small_steps
from trainers.run.resumed_options import FORMAT, INPUTS, RECORD
from trainers.run.stop_signals import RunStoppedError
from trainers.run.validation_plots import save_figures

EXPORT_TOLERANCE_NATS = 1e-5
EXAMPLES = 16  # validation examples shown in W&B, always the same ones


class RunRecord(Callback):
    """Writes env.json, audit.json, state.json and plots/; sends plots and a table of examples to W&B.

    Args:
        inputs: Files and folders that the run's options name, with their sha256, for env.json; filled until it starts.
    """

    def __init__(self, inputs: Mapping[str, str] | None = None) -> None:
        self._inputs = {} if inputs is None else inputs
        self._resumed_step, self._validation_due, self._begun = 0, False, False

    def on_load_checkpoint(self, trainer: pl.Trainer, module: pl.LightningModule, checkpoint: dict[str, Any]) -> None:
        """Keep the position in metrics.jsonl."""
        self._resumed_step = checkpoint["global_step"]
        self._validation_due = checkpoint.get(VALIDATION_DUE, False)

    def on_fit_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Check the monitored metric, the validation interval and the size of a step."""
        refuse_unknown_metric(trainer, module)
        refuse_validation_interval(trainer)
        warn_of_small_steps(trainer)

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Record environment and data, and cut metrics.jsonl back to the checkpoint."""
        self._begun = True
        self._state(trainer, "running")
        if trainer.is_global_zero:
            folder = Path(trainer.default_root_dir)
            facts = {FORMAT: 1, INPUTS: self._inputs, "hardware": hardware(), "precision": str(trainer.precision)}
            known = provenance(trainer)
            write_json(folder / RECORD, known | facts)
            write_json(folder / "audit.json", getattr(trainer.datamodule, "audit", {}))
            for logger in loggers_of(trainer, JsonlLogger):
                logger.cut(self._resumed_step, self._validation_due)
            for logger in loggers_of(trainer, RunWandbLogger):
                logger.describe(trainer.checkpoint_callback, known["data"])

    def on_validation_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Save and send the plots and examples of this validation."""
        figures = getattr(module, "figures", {})
        if trainer.sanity_checking or not trainer.is_global_zero or not figures:
            return
        folder = Path(trainer.default_root_dir) / "plots"
        save_figures(figures, folder)
        for logger in loggers_of(trainer, RunWandbLogger):
            for name in figures:
                logger.log_image(f"val/{name}", [str(folder / f"{name}.png")], step=trainer.global_step - 1)
            columns, rows = module.examples(EXAMPLES)
            shown = [[terminal(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
            logger.log_table("val/examples", columns=columns, data=shown, step=trainer.global_step - 1)

    def on_fit_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Record that training has ended."""
        self._state(trainer, "done")

    def on_exception(self, trainer: pl.Trainer, module: pl.LightningModule, exception: BaseException) -> None:
        """Record the failure of a run that had begun."""
        if self._begun:
            stopped = isinstance(exception, (KeyboardInterrupt, RunStoppedError))
            self._state(trainer, "preempted" if stopped else "failed")

    def _state(self, trainer: pl.Trainer, status: str) -> None:
        if trainer.is_global_zero:
            state = {"status": status, "epoch": trainer.current_epoch, "step": trainer.global_step}
            write_json(Path(trainer.default_root_dir) / "state.json", state)


class RandomState(Callback):
    """Stores the random states of every rank (Python, NumPy, torch, CUDA) in checkpoints, so that resuming is exact."""

    def __init__(self) -> None:
        self._loaded: list[dict[str, Any]] | None = None

    def state_dict(self) -> dict[str, Any]:
        """The states of all ranks; called on every rank."""
        ranks = [self.capture()] * (dist.get_world_size() if dist.is_initialized() else 1)
        if dist.is_initialized():
            dist.all_gather_object(ranks, ranks[0])
        return {"ranks": ranks}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Keep the states until training starts."""
        self._loaded = state_dict["ranks"]

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Restore this rank's states; with another number of ranks the generators start from the seed."""
        if self._loaded is not None and len(self._loaded) == trainer.world_size:
            self.restore(self._loaded[trainer.global_rank])
        self._loaded = None

    @staticmethod
    def capture() -> dict[str, Any]:
        """The states of this process."""
        state: Any = np.random.get_state()
        name, keys, *rest = state
        return {
            "python": random.getstate(),
            "numpy": [name, keys.tolist(), *rest],  # torch loads no arrays with weights_only
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        }

    @staticmethod
    def restore(state: dict[str, Any]) -> None:
        """Set the generators to what `capture` gave."""
        random.setstate(state["python"])
        np.random.set_state(tuple(state["numpy"]))
        torch.set_rng_state(state["torch"])
        if state["cuda"] and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["cuda"])


class ServingExport(Callback):
    """Exports the best checkpoint to checkpoints/<name>/serving and compares it with the module on examples."""

    def on_fit_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Export on rank 0, or print why there is no best checkpoint.

        Raises:
            ArtifactError: If the exported model's scores differ from the module's.
        """
        best_path = getattr(trainer.checkpoint_callback, "best_model_path", "")
        folder = Path(trainer.default_root_dir) / "serving"
        if not trainer.is_global_zero:
            return
        if trainer.fast_dev_run or not best_path:
            cure = "resume with a larger --trainer.max_steps or --trainer.max_epochs, or lower "
            unchosen = f"no validation has chosen a checkpoint: {cure}--trainer.val_check_interval"
            reason = "trainer.fast_dev_run keeps no checkpoint" if trainer.fast_dev_run else unchosen
            say(f"{folder}: not written, because {reason}.", sys.stdout)
            return
        best = trainer.strategy.checkpoint_io.load_checkpoint(best_path)
        module = module.whole()
        module.load_state_dict(best["state_dict"])
        module.on_load_checkpoint(best)
        if controls := module.controls():
            module.validation_metrics |= controls
            for logger in loggers_of(trainer, JsonlLogger):
                logger.cut(trainer.global_step)  # what this run had measured when it ended before
            # As of the next step, which no checkpoint holds yet: a run that goes on drops the line.
            module.send({f"val/{name}": value for name, value in controls.items()}, trainer.global_step)
        with Progress(f"exporting and checking {folder}"), whole_folder(folder) as temporary:
            found = doubts(module.validation_metrics)
            module.export(temporary, {**provenance(trainer), "not_learned": found})
            difference = module.export_difference(temporary, trainer.datamodule.proof_batch())
            if difference > EXPORT_TOLERANCE_NATS:
                told = f"not written, the export differs from the module by {difference:.2e} nats"
                raise ArtifactError(f"{folder}: {told}.")
        best_file = folder.with_name(Path(best_path).name)
        source = best_file if best_file.is_file() else best_path  # the shorter path, unless it lies elsewhere
        say(f"{folder}: exported from {source}; largest difference to the module {difference:.1e} nats", sys.stdout)
        if found:
            say(f"warning: {folder} holds a model that has not learned: {'; '.join(found)}. {CURE}", sys.stdout)
        for logger in loggers_of(trainer, RunWandbLogger):
            import wandb

            artifact = wandb.Artifact(f"{folder.parent.name}-serving", type="model")
            artifact.add_dir(str(folder))
            logger.experiment.log_artifact(artifact, aliases=["latest", "best"])


def provenance(trainer: pl.Trainer) -> dict[str, Any]:
    """Commit, package versions and data digests of a run."""
    return {"commit": commit(), "versions": versions(), "data": file_digests(trainer.datamodule)}
