"""Which checkpoint a run continues from, and whether a folder holds a run at all."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common.errors import ArtifactError
from trainers.run.durable_checkpoints import checkpoints_in, holds_training, read_checkpoint, verify_checkpoint
from trainers.run.loggers import METRICS_FILE


def holds_run(folder: Path) -> bool:
    """Whether a folder holds something that a new run of that name would lose: a checkpoint or logged steps."""
    metrics = folder / METRICS_FILE
    return bool(checkpoints_in(folder)) or (metrics.is_file() and metrics.stat().st_size > 0)


def newest_checkpoint(folder: Path, say: Callable[[str], object]) -> Path | None:
    """The checkpoint with the most steps that verifies; None if there is no checkpoint.

    Args:
        folder: The run's folder.
        say: Receives a line for every checkpoint that was skipped, and one for the result.

    Raises:
        ArtifactError: If there are checkpoints and none can be read.
    """
    # Not Lightning's `ckpt_path="last"`: it takes the newest file, also one that a kill or a disk has damaged.
    found: list[tuple[int, float, Path]] = []
    skipped: list[Path] = []
    for path in checkpoints_in(folder):
        try:
            checkpoint = read_checkpoint(path, mmap=True, verified=False)
            if holds_training(checkpoint):
                found.append((checkpoint["global_step"], path.stat().st_mtime, path))
            else:
                say(f"skipped: {path} holds only weights")
        except ArtifactError as error:
            say(f"skipped: {error}")
            skipped.append(path)
    for steps, _, path in sorted(found, reverse=True):  # newest first: only this one is read whole
        try:
            verify_checkpoint(path)
            say(f"resuming from {path} (step {steps:,})")
            return path
        except ArtifactError as error:
            say(f"skipped: {error}")
            skipped.append(path)
    if skipped:
        raise ArtifactError(
            f"no checkpoint of {folder} can be read ({', '.join(path.name for path in skipped)}): "
            "choose another --name, or delete them to start over."
        )
    return None


def in_folder(state: Any, folder: str) -> Any:
    """The state of a ModelCheckpoint, with the paths in its folder changed to paths in `folder`."""
    before = state.get("dirpath")

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {changed(key): changed(each) for key, each in value.items()}
        inside = isinstance(value, str) and before and (value == before or value.startswith(f"{before}{os.sep}"))
        return folder + value[len(before) :] if inside else value

    return changed(state)
