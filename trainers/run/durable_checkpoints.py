"""Checkpoints written atomically and verified by sha256 when they are loaded.

Lightning writes a checkpoint to $TMPDIR and moves it; a kill while it moves between file systems leaves a truncated
file. Here it is written beside its destination, fsync'd and renamed; `<name>.sha256` is written before the rename.
"""

import json
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from lightning_fabric.plugins import CheckpointIO

from common.errors import ArtifactError, MissingInputError
from common.files import TEMPORARY, sha256, write_atomically, write_text

_CURE = "Resume from another checkpoint: --resume auto takes the newest one that can be read."
_DIGEST = re.compile("[0-9a-f]{64}")


class DurableCheckpointIO(CheckpointIO):
    """Writes and reads one-file checkpoints of plain types and tensors (`weights_only`)."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any | None = None) -> None:
        """Write atomically; at any time the digest file lists the digest of the checkpoint that is in place.

        Raises:
            ArtifactError: If it cannot be written; the previous checkpoint stays.
        """
        path = Path(path)
        for stale in path.parent.glob(f"{TEMPORARY}*{path.suffix}"):  # left by a killed writer
            stale.unlink(missing_ok=True)
        try:
            previous = _accepted(path)[-1:]
        except ArtifactError:  # the previous checkpoint cannot be loaded anyway
            previous = []

        def write(temporary: Path) -> None:
            torch.save(checkpoint, temporary)
            write_text(_digest_file(path), json.dumps([*previous, sha256(temporary)]))

        write_atomically(path, write)

    def load_checkpoint(
        self, path: str | Path, map_location: Any | None = None, weights_only: bool | None = None
    ) -> dict[str, Any]:
        """Load a checkpoint.  Errors as `read_checkpoint`."""
        return read_checkpoint(Path(path), map_location=map_location or "cpu")

    def remove_checkpoint(self, path: str | Path) -> None:
        """Delete a checkpoint and its digest file."""
        Path(path).unlink(missing_ok=True)
        _digest_file(Path(path)).unlink(missing_ok=True)


def read_checkpoint(path: Path, map_location: Any = "cpu", mmap: bool = False, verified: bool = True) -> dict[str, Any]:
    """Verify and read a checkpoint.

    Args:
        path: The file.
        map_location: Where its tensors go.
        mmap: Whether tensors stay on disk until they are used.
        verified: Whether to compare its sha256 with the digest file.

    Raises:
        MissingInputError: If it does not exist.
        ArtifactError: If it is truncated, corrupt or not a checkpoint of a run.
    """
    if verified:
        verify_checkpoint(path)
    try:
        checkpoint = torch.load(path, map_location=map_location, weights_only=True, mmap=mmap)
    except (RuntimeError, EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
        raise ArtifactError(f"{path} cannot be read ({reason}). {_CURE}") from error
    if not isinstance(checkpoint, dict) or not checkpoint.keys() >= {"global_step", "state_dict", "loops"}:
        raise ArtifactError(f"{path} is not a checkpoint of a training run. {_CURE}")
    return checkpoint


def holds_training(checkpoint: Mapping[str, Any]) -> bool:
    """Whether a run can be resumed from a checkpoint.

    With checkpoint.save_weights_only the best one holds weights alone.
    """
    return "optimizer_states" in checkpoint


def checkpoints_in(folder: Path) -> list[Path]:
    """The checkpoints of a run's folder, without incomplete files."""
    return sorted(path for path in folder.glob("*.ckpt") if not path.name.startswith(TEMPORARY))


def verify_checkpoint(path: Path) -> None:
    """Check that a checkpoint exists and, if it has a digest file, that its sha256 is listed there.

    Raises:
        MissingInputError: If it does not exist; the message lists the folder's checkpoints.
        ArtifactError: If it, or its digest file, is truncated or corrupt.
    """
    if not path.is_file():
        files = ", ".join(map(str, checkpoints_in(path.parent)))
        raise MissingInputError(f"{path} does not exist; checkpoints in that folder: {files or 'none'}.")
    if _digest_file(path).is_file() and sha256(path) not in _accepted(path):
        raise ArtifactError(f"{path} is corrupt: its sha256 is not in {_digest_file(path)}. {_CURE}")


def _digest_file(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _accepted(path: Path) -> list[str]:
    """The digests in a checkpoint's digest file: of the file before and of the one that replaces it."""
    file = _digest_file(path)
    if not file.is_file():
        return []
    try:
        accepted = json.loads(file.read_bytes())
    except ValueError:
        accepted = None
    if not isinstance(accepted, list) or not accepted or not all(_DIGEST.fullmatch(str(one)) for one in accepted):
        raise ArtifactError(f"{file} is corrupt: it must list sha256 digests. {_CURE}")
    return accepted
