"""Loggers: metrics.jsonl, written by every run, and W&B."""

import json
import netrc
import os
import secrets
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any, Literal

from pytorch_lightning.loggers import Logger, WandbLogger
from pytorch_lightning.utilities import rank_zero_only

from common.files import write_text

METRICS_FILE = "metrics.jsonl"
WANDB_ID_FILE = "wandb_run_id"


class JsonlLogger(Logger):
    """Writes one JSON object per line and flushes every line, so that a killed run loses none.

    Args:
        folder: The run's folder; an existing file is continued, without an incomplete last line.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self._file: Any = None

    name = "metrics"
    version = ""

    @rank_zero_only
    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        """Append {"step": ..., name: value, ...}."""
        if self._file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / METRICS_FILE
            if path.exists():
                whole = path.read_bytes()
                write_text(path, whole[: whole.rfind(b"\n") + 1].decode())
            self._file = path.open("a", encoding="utf-8")
        self._file.write(json.dumps({"step": step, **{k: float(v) for k, v in metrics.items()}}) + "\n")
        self._file.flush()

    def log_hyperparams(self, params: dict[str, Any] | Namespace, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the run folder contains config.yaml."""

    @rank_zero_only
    def finalize(self, status: str) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


class RunWandbLogger(WandbLogger):
    """W&B for a run folder: offline without a key, one run under DDP, the same run on resume; never a prompt.

    Args:
        project: W&B project.
        entity: W&B user or team; that of the key when None.
        group: W&B group.
        tags: W&B tags.
        mode: `auto` follows WANDB_MODE; if that is unset: online with a key, offline without.
    """

    def __init__(
        self,
        project: str = "lightning-rag",
        entity: str | None = None,
        group: str | None = None,
        tags: list[str] | None = None,
        mode: Literal["auto", "online", "offline", "disabled"] = "auto",
    ) -> None:
        import wandb

        chosen = os.environ.get("WANDB_MODE", "") if mode == "auto" else mode
        self.mode = chosen or ("online" if has_key() else "offline")
        settings = wandb.Settings(x_transaction_log_flush_interval=1.0)  # the default loses 15 s of a killed run
        super().__init__(project=project, entity=entity, group=group, tags=tags, mode=self.mode, settings=settings)

    def attach(self, folder: Path) -> None:
        """Use a run folder for W&B's files and for the run id, which a resumed run keeps."""
        file = folder / WANDB_ID_FILE
        if rank_zero_only.rank == 0 and not file.exists():
            write_text(file, secrets.token_hex(4))
            if self.mode == "offline":
                print(f"W&B offline (no key set): later `wandb sync {folder}/wandb/offline-run-*`", file=sys.stderr)
        self._wandb_init.update(name=folder.name, dir=str(folder), resume="allow")
        if file.exists():
            self._wandb_init["id"] = file.read_text().strip()

    @property
    @rank_zero_only
    def experiment(self) -> Any:
        """The W&B run; offline if the key is refused."""
        import wandb

        try:
            return super().experiment
        except (wandb.errors.UsageError, wandb.errors.CommError) as error:
            print(f"W&B stays offline: {str(error).splitlines()[0]}", file=sys.stderr)
            self._wandb_init["mode"] = "offline"
            return super().experiment


def has_key() -> bool:
    """Whether a W&B key is set in the environment or in ~/.netrc."""
    if os.environ.get("WANDB_API_KEY"):
        return True
    try:
        return netrc.netrc().authenticators("api.wandb.ai") is not None
    except (FileNotFoundError, netrc.NetrcParseError):
        return False
