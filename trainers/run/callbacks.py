"""What a run leaves behind besides checkpoints: records, plots, random states and the serving folder."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
import torch.distributed as dist
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.utilities.exceptions import SIGTERMException

from common.errors import ArtifactError
from common.files import whole_folder, write_json
from trainers.run.environment import commit, data_digests, hardware, versions
from trainers.run.loggers import RunWandbLogger
from trainers.run.validation_plots import save_figures

PROOF_TOLERANCE_NATS = 1e-5
EXAMPLES = 16  # fixed validation triples shown in W&B


class RunRecord(Callback):
    """env.json, state.json, plots/, audit.json; plots and a table of fixed examples to W&B."""

    def on_fit_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Say what this run runs on."""
        self._state(trainer, "running")
        if trainer.is_global_zero:
            folder = Path(trainer.default_root_dir)
            write_json(folder / "env.json", {**run_facts(trainer), "hardware": hardware()})
            write_json(folder / "audit.json", getattr(trainer.datamodule, "audit", {}))

    def on_validation_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Plots and examples of this validation."""
        figures = getattr(module, "figures", {})
        if trainer.sanity_checking or not trainer.is_global_zero or not figures:
            return
        folder = Path(trainer.default_root_dir) / "plots"
        save_figures(figures, folder)
        for logger in trainer.loggers:
            if isinstance(logger, RunWandbLogger):
                for name in figures:
                    logger.log_image(f"val/{name}", [str(folder / f"{name}.png")], step=trainer.global_step)
                columns, rows = module.examples(EXAMPLES)
                logger.log_table("val/examples", columns=columns, data=rows, step=trainer.global_step)

    def on_fit_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Done."""
        self._state(trainer, "done")

    def on_exception(self, trainer: pl.Trainer, module: pl.LightningModule, exception: BaseException) -> None:
        """Interrupted or failed; a run told to stop saves where it is (all ranks agree on SIGTERM, not on Ctrl-C)."""
        interrupted = isinstance(exception, (KeyboardInterrupt, SIGTERMException))
        if isinstance(exception, SIGTERMException) or (interrupted and trainer.world_size == 1):
            trainer.save_checkpoint(Path(trainer.default_root_dir) / "last.ckpt")
        self._state(trainer, "preempted" if interrupted else "failed")

    def _state(self, trainer: pl.Trainer, status: str) -> None:
        if trainer.is_global_zero:
            state = {"status": status, "epoch": trainer.current_epoch, "step": trainer.global_step}
            write_json(Path(trainer.default_root_dir) / "state.json", state)


class RandomState(Callback):
    """Random generators of every rank (Python, NumPy, torch, CUDA) travel with the checkpoint: resume is exact."""

    def __init__(self) -> None:
        self._loaded: list[dict[str, Any]] | None = None

    def state_dict(self) -> dict[str, Any]:
        """All ranks' states; called on every rank."""
        here = self._capture()
        if not dist.is_initialized():
            return {"ranks": [here]}
        ranks: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(ranks, here)
        return {"ranks": ranks}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Keep them until training starts."""
        self._loaded = state_dict["ranks"]

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Put this rank's generators back; with another number of ranks they start from the seed."""
        if self._loaded is not None and len(self._loaded) == trainer.world_size:
            self._restore(self._loaded[trainer.global_rank])
        self._loaded = None

    @staticmethod
    def _capture() -> dict[str, Any]:
        name, keys, position, has_gauss, gauss = np.random.get_state()
        version, internal, following = random.getstate()
        return {
            "python": [version, list(internal), following],
            "numpy": [str(name), [int(k) for k in keys], int(position), int(has_gauss), float(gauss)],
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        }

    @staticmethod
    def _restore(state: dict[str, Any]) -> None:
        version, internal, following = state["python"]
        random.setstate((version, tuple(internal), following))
        name, keys, *rest = state["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        torch.set_rng_state(state["torch"])
        if state["cuda"] and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["cuda"])


class ServingExport(Callback):
    """After training, write the best checkpoint to checkpoints/<name>/serving, proven to answer as the module does."""

    def on_fit_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Export on rank 0; without a validation there is no best checkpoint, and a line says so.

        Raises:
            ArtifactError: If the exported folder's scores differ from the module's on a validation batch.
        """
        best_path = getattr(trainer.checkpoint_callback, "best_model_path", "")
        folder = Path(trainer.default_root_dir) / "serving"
        if not trainer.is_global_zero:
            return
        if not best_path:
            print(
                f"{folder}: not written, for no validation was reached: resume with a larger --trainer.max_steps or "
                "--trainer.max_epochs, or set --trainer.val_check_interval lower.",
                flush=True,
            )
            return
        best = trainer.strategy.checkpoint_io.load_checkpoint(best_path)
        module.load_state_dict(best["state_dict"])
        module.on_load_checkpoint(best)
        with whole_folder(folder) as temporary:
            module.export(temporary, run_facts(trainer))
            probe = next(iter(trainer.datamodule.val_dataloader()))
            difference = module.proves(temporary, probe)
            if difference > PROOF_TOLERANCE_NATS:
                raise ArtifactError(
                    f"the export differs from the trained module by {difference:.2e} nats: not written."
                )
        print(
            f"{folder}: exported from {best_path}; largest difference to the module {difference:.1e} nats", flush=True
        )
        for logger in trainer.loggers:
            if isinstance(logger, RunWandbLogger):
                import wandb

                artifact = wandb.Artifact(f"{Path(trainer.default_root_dir).name}-serving", type="model")
                artifact.add_dir(str(folder))
                logger.experiment.log_artifact(artifact, aliases=["latest", "best"])


def run_facts(trainer: pl.Trainer) -> dict[str, Any]:
    """Commit, versions and data digests of a run."""
    files = getattr(trainer.datamodule, "files", [])
    return {"commit": commit(), "versions": versions(), "data": data_digests(files)}
