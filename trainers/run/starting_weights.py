"""The weights that a run starts from: a model's folder, a hub id, a serving folder, or a checkpoint of another run.

Optimizer and schedule begin anew in each case.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from common.errors import ArtifactError, UserError
from common.files import read_json, verify
from common.sealed_json import SEAL, unsealed
from models.serving_manifest import CURE, MANIFEST, refuse_left
from trainers.run.durable_checkpoints import read_checkpoint
from trainers.run.resume import holds_run


@dataclass(frozen=True)
class StartOption:
    """A parameter of a trainer that names a model to start from.

    Args:
        part: The trainer's attribute with the model.
        kinds: Kind of a serving folder -> its part that holds such a model.
    """

    part: str
    kinds: Mapping[str, str]


@dataclass(frozen=True)
class Start:
    """A model for transformers, and the weights that replace its own.

    Args:
        model: Folder or hub id of the model.
        file: The checkpoint with the weights; None if they are the model's own.
        state: The checkpoint's weights by name; empty without one.
        options: Parameters of the trainer that wrote it.
        facts: What else the checkpoint holds.
    """

    model: str
    file: str | None = None
    state: Mapping[str, Tensor] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def part(self, name: str) -> dict[str, Tensor]:
        """The checkpoint's weights of a trainer's attribute, by their names in it."""
        prefix = f"{name}."
        return {key.removeprefix(prefix): value for key, value in self.state.items() if key.startswith(prefix)}


def start_of(name: str, option: str, means: StartOption) -> Start:
    """What a trainer's option names.

    Args:
        name: Folder or hub id of a model, a serving folder, or a checkpoint (.ckpt).
        option: The trainer's parameter.
        means: What it names.

    Raises:
        MissingInputError: If a checkpoint does not exist.
        ArtifactError: If a serving folder is of another kind or corrupt, or the checkpoint is corrupt or another
            trainer's.
        UserError: If it is the folder of a run, or holds an adapter.
    """
    path = Path(name).expanduser()
    if path.suffix == ".ckpt":
        checkpoint = read_checkpoint(path, mmap=True)
        state, options = checkpoint["state_dict"], checkpoint.get("hyper_parameters", {})
        parts = sorted({key.partition(".")[0] for key in state})
        if means.part not in parts or not options.get(option):
            raise ArtifactError(
                f"{option} {name} holds {', '.join(parts) or 'no weights'}, not {means.part}: give a checkpoint of "
                "such a run, or the serving folder of this one."
            )
        return Start(start_of(options[option], option, means).model, name, state, options, checkpoint)
    if path.is_file():
        raise UserError(f"{option} {name} is a file: give a folder with a model, a hub id, or a checkpoint, FILE.ckpt.")
    if (path / MANIFEST).is_file():
        return Start(str(_part_of(path, option, means)))
    if not (path / "config.json").is_file() and path.is_dir() and holds_run(path):
        raise UserError(f"{option} {name} is the folder of a run: give {path}/serving, or one of its checkpoints.")
    return Start(name)


def _part_of(serving: Path, option: str, means: StartOption) -> Path:
    """The folder of a serving folder's part; its files are compared with the manifest's digests."""
    file = serving / MANIFEST
    manifest = read_json(file, CURE)
    if SEAL in manifest:
        manifest = unsealed(file, manifest, CURE)
    kind = manifest.get("kind")
    part = means.kinds.get(str(kind))
    refuse_left(serving, kind)
    if part is None:
        raise ArtifactError(
            f"{option} {serving} holds a {kind!r}; allowed: {', '.join(means.kinds)}. Give another folder, or one of "
            "its folders with a config.json."
        )
    digests = {name: digest for name, digest in manifest.get("sha256", {}).items() if name.startswith(f"{part}/")}
    if not digests:
        raise ArtifactError(f"{option} {serving} holds no {part}: give another folder.")
    verify(serving, digests, CURE)
    if not (serving / part / "config.json").is_file():
        raise UserError(
            f"{option} {serving} holds its {part} as an adapter: give a folder of whole models, from `infer.py export "
            f"--form merged --serving {serving} --out OUT`, as OUT/{part}, or a checkpoint of that run."
        )
    return serving / part
