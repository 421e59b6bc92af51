"""Loggers: metrics.jsonl, written by every run, and W&B."""

import json
import netrc
import os
import secrets
import sys
from argparse import Namespace
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from pytorch_lightning.loggers import Logger, WandbLogger
from pytorch_lightning.utilities import rank_zero_only

from common.errors import ArtifactError
from common.files import write_text

METRICS_FILE = "metrics.jsonl"
WANDB_ID_FILE = "wandb_run_id"


class JsonlLogger(Logger):
    """Writes one JSON object per line and flushes every line, so that a killed run loses none.

    Step k is the optimizer step that takes `trainer.global_step` from k to k + 1.  Its training metrics and those of the
    validation that follows it are logged with k.  So a checkpoint of global step g goes with the lines below g.

    Args:
        folder: The run's folder; an existing file is continued, without an incomplete last line.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self._file: Any = None

    name = "metrics"
    version = ""

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / METRICS_FILE

    @rank_zero_only
    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        """Append {"step": ..., name: value, ...}; a value that is infinite or not a number is written as null."""
        if self._file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            if self.path.exists():
                whole = self.path.read_bytes()
                write_text(self.path, whole[: whole.rfind(b"\n") + 1].decode())
            self._file = self.path.open("a", encoding="utf-8")
        numbers = {name: float(value) for name, value in metrics.items()}
        row = {"step": step, **{name: value if isfinite(value) else None for name, value in numbers.items()}}
        self._file.write(json.dumps(row, allow_nan=False) + "\n")
        self._file.flush()

    @rank_zero_only
    def cut(self, step: int, validation_due: bool = False) -> None:
        """Drop the lines that were logged after a checkpoint, before a run resumes from it.  The file is replaced atomically.

        Args:
            step: `global_step` of the checkpoint: lines with this step or a later one are dropped.
            validation_due: Whether the checkpoint was written before a validation, which will be repeated: its lines are
                dropped too.

        Raises:
            ArtifactError: If a complete line is not a JSON object, or the file cannot be written.
        """
        self.finalize("cut")
        if not self.path.exists():
            return
        text = self.path.read_text(encoding="utf-8", errors="replace")
        lines = text[: text.rfind("\n") + 1].splitlines(keepends=True)
        rows = [(line, self._row(line, number)) for number, line in enumerate(lines, 1)]
        kept = "".join(
            line
            for line, (logged, names) in rows
            if logged < step
            and not (validation_due and logged == step - 1 and any(n.startswith("val/") for n in names))
        )
        if kept != text:
            write_text(self.path, kept)

    def _row(self, line: str, number: int) -> tuple[int, list[str]]:
        """The step of a line, -1 if it has none, and the names in it."""
        try:
            row = json.loads(line)
            step = row["step"]
        except (ValueError, KeyError, TypeError) as error:
            raise ArtifactError(f"{self.path}:{number}: not a line of metrics. Delete that line.") from error
        return -1 if step is None else step, list(row)

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
