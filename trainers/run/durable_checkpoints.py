"""Checkpoints written atomically and verified by sha256 when they are loaded.

Lightning writes a checkpoint to $TMPDIR and moves it; a kill while it moves between file systems leaves a truncated file.
Here it is written beside its destination, fsync'd and renamed; `<name>.sha256` is written before the rename.
"""

import json
from pathlib import Path
from typing import Any

import torch
from lightning_fabric.plugins import CheckpointIO

from common.errors import ArtifactError, MissingInputError
from common.files import TEMPORARY, sha256, write_atomically, write_text


class DurableCheckpointIO(CheckpointIO):
    """Writes and reads one-file checkpoints of plain types and tensors (`weights_only`)."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any | None = None) -> None:
        """Write atomically; at any time the digest file lists the digest of the checkpoint that is in place.

        Raises:
            ArtifactError: If it cannot be written; the previous checkpoint stays.
        """
        path = Path(path)
        for stale in path.parent.glob(f"{TEMPORARY}*"):  # left by a killed writer
            stale.unlink(missing_ok=True)
        accepted = _accepted(path)

        def write(temporary: Path) -> None:
            torch.save(checkpoint, temporary)
            write_text(_digest_file(path), json.dumps([*accepted[-1:], sha256(temporary)]))

        write_atomically(path, write)

    def load_checkpoint(
        self, path: str | Path, map_location: Any | None = None, weights_only: bool | None = None
    ) -> dict[str, Any]:
        """Load a checkpoint; verify it if it has a digest file.

        Raises:
            MissingInputError: If it does not exist.
            ArtifactError: If it is truncated or corrupt.
        """
        path = Path(path)
        verify_checkpoint(path)
        try:
            return torch.load(path, map_location=map_location or "cpu", weights_only=True)
        except (RuntimeError, EOFError) as error:
            raise ArtifactError(f"{path} cannot be read ({error}). Resume from another checkpoint.") from error

    def remove_checkpoint(self, path: str | Path) -> None:
        """Delete a checkpoint and its digest file."""
        Path(path).unlink(missing_ok=True)
        _digest_file(Path(path)).unlink(missing_ok=True)


def verify_checkpoint(path: Path) -> None:
    """Check that a checkpoint exists and, if it has a digest file, that its sha256 is listed there.

    Raises:
        MissingInputError: If it does not exist; the message lists the folder's checkpoints.
        ArtifactError: If it is truncated or corrupt.
    """
    if not path.is_file():
        found = ", ".join(sorted(str(p) for p in path.parent.glob("*.ckpt"))) or "none"
        raise MissingInputError(f"{path} does not exist; checkpoints in that folder: {found}.")
    accepted = _accepted(path)
    if accepted and sha256(path) not in accepted:
        raise ArtifactError(
            f"{path} is corrupt: its sha256 is not in {_digest_file(path)}. Resume from another checkpoint."
        )


def _digest_file(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _accepted(path: Path) -> list[str]:
    file = _digest_file(path)
    return json.loads(file.read_text()) if file.is_file() else []
