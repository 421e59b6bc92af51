"""Loggers: metrics.jsonl, written by every run, and W&B; they start when training does."""

import json
import os
import secrets
import ssl
import threading
from argparse import Namespace
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import Any, Literal
from urllib.error import HTTPError
from urllib.request import urlopen

import pytorch_lightning as pl
import yaml
from pytorch_lightning import loggers
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.loggers import Logger, WandbLogger
from pytorch_lightning.utilities import rank_zero_only

from common.errors import ArtifactError, UserError
from common.files import write_text
from common.packages import require
from common.progress import say
from models.serving_manifest import without_places

METRICS_FILE = "metrics.jsonl"
WORDS = {  # short for a class
    "wandb": "trainers.run.loggers.RunWandbLogger",
    "tensorboard": "pytorch_lightning.loggers.TensorBoardLogger",
    "csv": "pytorch_lightning.loggers.CSVLogger",
}
PACKAGES = {"RunWandbLogger": "wandb", "WandbLogger": "wandb", "MLFlowLogger": "mlflow"}  # of loggers
WANDB_ID_FILE = "wandb_run_id"
WANDB_MODES = ("online", "offline", "disabled", "dryrun", "shared")  # those of W&B
WANDB_START_SECONDS = 15.0  # longest wait for a W&B run to be created, after its server has answered
QUIET: dict[str, Any] = {"show_info": False, "quiet": True}  # of wandb.Settings: warnings and errors are shown
WANDB_STOP_SECONDS = 5.0  # longest wait for wandb's process to end


# Not Lightning's CSVLogger: it rewrites the file in place for every new column, and deletes that of a resumed run.
class JsonlLogger(Logger):
    """Writes one JSON object per line and flushes every line, so that a killed run loses none.

    Step k is the optimizer step that takes `trainer.global_step` from k to k + 1. Its training metrics and those of the
    validation that follows it are logged with k. So a checkpoint of global step g goes with the lines below g.

    Args:
        folder: The run's folder; an existing file is continued, without an incomplete last line.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.path = folder, folder / METRICS_FILE
        self._file: Any = None

    name = "metrics"
    version = ""

    @rank_zero_only
    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        """Append {"step": ..., name: value, ...}; a value that is infinite or not a number is written as null."""
        if self._file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            if self.path.exists():
                whole = self.path.read_bytes()
                write_text(self.path, whole[: whole.rfind(b"\n") + 1].decode())
            self._file = self.path.open("a", encoding="utf-8")
        row = {"step": step} | {name: float(value) if isfinite(value) else None for name, value in metrics.items()}
        self._file.write(json.dumps(row, allow_nan=False) + "\n")
        self._file.flush()

    @rank_zero_only
    def cut(self, step: int, validation_due: bool = False) -> None:
        """Drop the lines that were logged after a checkpoint, before a run resumes from it.

        The file is replaced atomically.

        Args:
            step: `global_step` of the checkpoint: lines with this step or a later one are dropped.
            validation_due: Whether the checkpoint was written before a validation, which will be repeated: its lines
                are dropped too.

        Raises:
            ArtifactError: If a complete line is not a JSON object, or the file cannot be written.
        """
        self.finalize("cut")
        if not self.path.exists():
            return
        text = self.path.read_text(encoding="utf-8", errors="replace")
        kept = ""
        for number, line in enumerate(text[: text.rfind("\n") + 1].splitlines(keepends=True), 1):
            try:
                row = json.loads(line)
                logged = -1 if row["step"] is None else row["step"]
            except (ValueError, KeyError, TypeError) as error:
                raise ArtifactError(f"{self.path}:{number}: not a line of metrics. Delete that line.") from error
            repeated = validation_due and logged == step - 1 and any(name.startswith("val/") for name in row)
            kept += line * (logged < step and not repeated)
        if kept != text:
            write_text(self.path, kept)

    def log_hyperparams(self, params: dict[str, Any] | Namespace, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the run folder contains config.yaml."""

    @rank_zero_only
    def finalize(self, status: str) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


class RunWandbLogger(WandbLogger):
    """W&B for a run folder: offline without a key or a server, one run under DDP, the same run on resume.

    Never a prompt.

    The W&B run is created when the first thing is logged.

    Args:
        project: W&B project.
        entity: W&B user or team; that of the key when None.
        group: W&B group.
        tags: W&B tags.
        mode: `auto` follows WANDB_MODE; if that is unset: online with a key, offline without.

    Raises:
        UserError: If W&B has no such mode.
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

        chosen = (os.environ.get("WANDB_MODE") if mode == "auto" else mode) or "online"
        if chosen not in WANDB_MODES:
            raise UserError(f"WANDB_MODE is {chosen}: set it to one of {', '.join(WANDB_MODES)}, or unset it.")
        settings = wandb.Settings(
            x_transaction_log_flush_interval=1.0,  # the default loses 15 s of a killed run
            init_timeout=WANDB_START_SECONDS,
            **QUIET,
        )
        super().__init__(project=project, entity=entity, group=group, tags=tags, mode=chosen, settings=settings)
        del self._wandb_init["anonymous"]  # Lightning's; W&B warns of it
        self._folder = Path()

    def attach(self, folder: Path) -> None:
        """Use a run folder for W&B's files and for the run id, which a resumed run keeps."""
        self._folder = folder
        self._wandb_init.update(name=folder.name, dir=str(folder), resume="allow")

    @property
    @rank_zero_only
    def experiment(self) -> Any:
        """The W&B run; offline if there is no key, or if the server refuses it or cannot be reached."""
        if self._experiment is None:
            self._start()
        return super().experiment

    @rank_zero_only
    def describe(self, checkpoint: Any, data: Mapping[str, str]) -> None:
        """Let the table of runs show the best value of what chooses the checkpoint, and name the data as an artifact.

        Args:
            checkpoint: With `monitor` and `mode`.
            data: sha256 by file; the files stay where they are.
        """
        import wandb

        if monitor := getattr(checkpoint, "monitor", None):
            step = "trainer/global_step"
            self.experiment.define_metric(monitor, step_metric=step, summary=f"{checkpoint.mode},last")
        artifact = wandb.Artifact(f"{self._folder.name}-data", type="dataset")
        with artifact.new_file("sha256.json", encoding="utf-8") as file:
            json.dump(without_places(data), file, indent=1)
        self.experiment.log_artifact(artifact)

    def _start(self) -> None:
        """Create the W&B run, online if that is possible within half a minute."""
        import wandb

        wandb.setup(wandb.Settings(**QUIET))
        file = self._folder / WANDB_ID_FILE
        if not file.exists():
            write_text(file, os.environ.get("WANDB_RUN_ID") or secrets.token_hex(4))  # a sweep names its trials
        self._wandb_init["id"] = file.read_text().strip()
        if self._wandb_init["mode"] == "online" and (reason := why_offline()) is not None:
            self._go_offline(reason)
        try:
            _ = super().experiment
        except wandb.errors.Error as error:
            # Its service keeps the run's id in use, and sometimes hangs when it is stopped.
            stopping = threading.Thread(target=wandb.teardown, daemon=True)
            stopping.start()
            stopping.join(WANDB_STOP_SECONDS)
            self._go_offline(_brief(error), "disabled" if stopping.is_alive() else "offline")
            _ = super().experiment
        if self._wandb_init["mode"] == "online":
            say(f"W&B: {super().experiment.url}")

    def _go_offline(self, reason: str, mode: str = "offline") -> None:
        self._wandb_init["mode"] = mode
        later = (
            f"later `wandb sync {self._folder}/wandb/offline-run-*`" if mode == "offline" else "metrics.jsonl goes on"
        )
        say(f"W&B {mode} ({reason}): {later}")

    @rank_zero_only
    def finalize(self, status: str) -> None:
        """Finish the W&B run, so that what W&B has buffered is written or sent also when the run was stopped."""
        super().finalize(status)
        if self._experiment is not None:
            self._experiment.finish(exit_code=int(status != "success"))


def why_offline() -> str | None:
    """Why W&B cannot be used online: no key, a server that cannot be reached, a refused key; None if it can.

    The server is asked here first: wandb's own process may never end after a request that was not answered.
    """
    import wandb
    from wandb.sdk.lib import wbauth

    url = wandb.setup().settings.base_url
    try:
        if wbauth.authenticate_session(host=url, source="train.py", prompt=False, update_session=False) is None:
            return "no key set"
        try:
            urlopen(url, timeout=float(os.environ.get("WANDB_HTTP_TIMEOUT", "10"))).close()
        except HTTPError as error:
            if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                return f"{url}: {error}"
        except OSError as error:
            cause = getattr(error, "reason", error)
            if not isinstance(cause, ssl.SSLCertVerificationError):  # wandb may know the certificate
                return f"{url}: {cause}"
        wandb.login(prompt=False, verify=True)
    except wandb.errors.Error as error:
        return _brief(error)
    return None


def _brief(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")


def check_loggers(action: Any, value: Any, append: bool = False, cfg: Any = None, mode: Any = None) -> Any:
    """Parse a value of the option `trainer.logger`, which may also be words in `WORDS`; see `common.command_line`.

    A word becomes the class that it stands for, so that its options can be given after it, and config.yaml names all.
    """
    if isinstance(value, str) and value[:1] == "[":
        with suppress(yaml.YAMLError):
            value = yaml.safe_load(value)
    words = value if isinstance(value, list) else [value]
    classes = [WORDS.get(each, each) if isinstance(each, str) else each for each in words]
    given = classes if isinstance(value, list) else classes[0]
    try:
        return type(action)._check_type(action, given, append=append, cfg=cfg, mode=mode)
    except TypeError as error:
        short = [each for each in classes if isinstance(each, str) and "." not in each]
        unknown = [each for each in short if not isinstance(getattr(loggers, each, None), type)]
        if not unknown:
            raise
        raise TypeError(
            f'Parser key "{action.dest}":\n{unknown[0]!r} is no logger: give {", ".join(WORDS)}, false, or a '
            "class_path such as pytorch_lightning.loggers.MLFlowLogger"
        ) from error


def require_loggers(given: Any) -> None:
    """Check that the packages of a run's loggers are installed; nothing is imported.

    Args:
        given: The option `trainer.logger`: one logger, a list of them, or none.

    Raises:
        UserError: If one is missing.
    """
    for each in given if isinstance(given, list) else [given]:
        name = str(getattr(each, "class_path", "")).rpartition(".")[2]
        if name == "TensorBoardLogger" and find_spec("tensorboardX") is None:  # it takes either
            require("tensorboard", f"trainer.logger {name}", "name another logger, such as CSVLogger")
        package = PACKAGES.get(name)
        if package and find_spec(package) is None:
            raise UserError(f"trainer.logger {name} needs {package}, not installed here: pip install {package}.")


def loggers_of(trainer: pl.Trainer, kind: type[Logger]) -> list[Any]:
    """The loggers of a trainer that are of a class."""
    return [logger for logger in trainer.loggers if isinstance(logger, kind)]


class LateLoggers(Callback):
    """Keeps loggers from a trainer until training starts: some create files or a W&B run when they are first touched.

    So a run that is refused, or whose data have an error, leaves nothing behind. They also receive the module's
    arguments.
    """

    def __init__(self) -> None:
        self._loggers: list[Logger] = []

    def hold(self, trainer: pl.Trainer) -> None:
        """Take the trainer's loggers."""
        self._loggers, trainer.loggers = trainer.loggers, []

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Give them back."""
        for logger in self._loggers:
            logger.log_hyperparams({name: value for name, value in module.hparams.items() if not name.startswith("_")})
        trainer.loggers = [*self._loggers, *trainer.loggers]
