"""The options that a resumed run may change.

All other options, and the content of the files that they name, must stay: else the result would be a mixture of two
runs under the config of the second.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256 as sha256_of
from pathlib import Path
from typing import Any

import yaml
from jsonargparse import ArgumentError

from common.command_line import in_one_line
from common.errors import ArtifactError, MissingInputError, UserError
from common.files import read_json
from datamodules.cache.content_digests import content_digest
from datamodules.cache.record_cache import DEFAULT
from datamodules.formats.file_kinds import rereadable
from datamodules.formats.open_data import file_of
from models.pretrained import resolve
from models.serving_manifest import MANIFEST

CONFIG, RECORD = "config.yaml", "env.json"  # of a run's folder
CLASS = "class_path"
FORMAT = "format"  # key of RECORD: a number; runs of release 0.2 have none
LAST_OF_0_2 = "9f903089"
INPUTS = "inputs"  # key of RECORD: what the options name -> sha256 of its content
TRAINER = (
    *("max_epochs", "max_steps", "min_epochs", "min_steps", "max_time"),
    *("val_check_interval", "check_val_every_n_epoch", "num_sanity_val_steps"),
    *("accelerator", "devices", "num_nodes", "strategy"),
    *("logger", "log_every_n_steps", "callbacks", "profiler", "enable_progress_bar", "enable_model_summary"),
)
MAY_CHANGE = {
    *("name", "resume", "ckpt_path", "weights_only", "data_root", "index_root"),
    *("checkpoint", "early_stopping", "card", "data.workers", "data.cache"),
    *(f"trainer.{name}" for name in TRAINER),
}  # fmt: skip
LONGEST = 80  # characters of a value in a message
_SEALED = (MANIFEST, "index.json")  # files that hold the digests of all other files of their folder
_OPENED = (*_SEALED, "config.json", "modules.json")  # a folder with one of them is an input
_UNREAD = re.compile(r"\.md$|^\.|__pycache__|\.lock$")  # files and folders that no program reads
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_ABSENT = object()


def input_digests(options: Mapping[str, Any]) -> dict[str, str]:
    """The sha256 of the files, folders and models of the hub's cache that a run's `model` and `data` name.

    Args:
        options: A run's, as plain values.
    """
    texts = {text for key in ("model", "data") for text in _texts(key, options.get(key))}
    return {text: digest for text in sorted(texts) if (digest := _digest(text))}


def _texts(option: str, value: Any) -> Iterator[str]:
    """The texts among the values of an option, but of those that may change."""
    if isinstance(value, str) and option not in MAY_CHANGE:
        yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _texts(_named(option, key), each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(option, each)


def refuse_changes(parser: Any, folder: Path, now: Mapping[str, Any], digests: Mapping[str, str]) -> None:
    """Check that a run goes on with the options and files that it began with.

    Args:
        parser: Of the command; gives the options that an earlier release did not have their defaults.
        folder: The run's, with the checkpoint that is resumed.
        now: The options of this start, as plain values.
        digests: Their files', from `input_digests`.

    Raises:
        MissingInputError: If the run's config is missing.
        UserError: If an option or a file has changed, or this release does not know an option of the run.
    """
    refuse_earlier_release(folder)
    before, known = run_options(parser, folder), run_digests(folder)

    def same_content(old: Any, new: Any) -> bool | None:
        """Of two names of files; None if it cannot be told."""
        if not (isinstance(old, str) and isinstance(new, str) and old in known and new in digests):
            return None
        split = file_of(new)[1]
        return known[old] == digests[new] and (split is None or old.endswith(f":{split}"))

    def changes(option: str, old: Any, new: Any) -> Iterator[str]:
        if option in MAY_CHANGE:
            return
        if isinstance(old, dict) and isinstance(new, dict) and old.get(CLASS) == new.get(CLASS):
            for key in {**old, **new}:
                yield from changes(_named(option, key), old.get(key, _ABSENT), new.get(key, _ABSENT))
        elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            for number, pair in enumerate(zip(old, new, strict=True)):
                yield from changes(f"{option}.{number}", *pair)
        elif (same := same_content(old, new)) is False and old == new:
            yield f"{option}: {new} has changed since the run began"
        elif same is False or (same is None and old != new):
            yield _told(option, old, new)

    _refuse(folder, list(changes("", before, now)))


def refuse_earlier_release(folder: Path) -> None:
    """Raise UserError if a run is of release 0.2, whose caches and data modules were other ones."""
    if (folder / RECORD).is_file() and FORMAT not in _record(folder):
        raise UserError(
            f"{folder} is a run of release 0.2: go on with it at commit {LAST_OF_0_2} (git checkout {LAST_OF_0_2}), or "
            "start another run from its weights, with another --name: docs/operate.md."
        )


def refuse_changed_files(folder: Path, digests: Mapping[str, str]) -> None:
    """Raise UserError if a data module of a resumed run reads a file with other content than any of the run's files.

    Args:
        folder: The run's.
        digests: Of the files that the data module names, also of those that stand beside one of the options'.
    """
    known = run_digests(folder)
    there = {file: digest for file, digest in digests.items() if digest != "hub"}
    changed = [file for file, digest in there.items() if digest not in known.values()] if known else []
    _refuse(folder, [f"{file} has changed since the run began" for file in changed])


def _refuse(folder: Path, found: Sequence[str]) -> None:
    if found:
        raise UserError(
            f"{folder} cannot be resumed with these changes: {'; '.join(found)}. Undo them; or start another run from "
            "its weights, with another --name: docs/operate.md."
        )


def refuse_fewer_steps(checkpoint: Mapping[str, Any], path: Path, trainer: Mapping[str, Any]) -> None:
    """Raise UserError if a run is to end before what its checkpoint has reached; a run that has ended may be repeated.

    Args:
        checkpoint: That is resumed.
        path: Its file.
        trainer: The options of the trainer.
    """
    epochs = checkpoint["loops"]["fit_loop"]["epoch_progress"]["current"]["completed"]
    for name, made in (("max_steps", checkpoint["global_step"]), ("max_epochs", epochs)):
        if 0 < (trainer.get(name) or -1) < made:
            raise UserError(
                f"trainer.{name} is {trainer[name]}, but {path} has made {made:,} {name[4:]}: raise it, or give "
                "another checkpoint by --ckpt_path."
            )


def run_options(parser: Any, folder: Path) -> dict[str, Any]:
    """The options of a run from its config.yaml, with the defaults of later options.  Errors as `refuse_changes`."""
    file = folder / CONFIG
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise MissingInputError(
            f"{file} cannot be read, and a resumed run must keep the options in it: put it back, or start another run "
            "from the checkpoint's weights: docs/operate.md."
        ) from error
    exits, parser.exit_on_error = parser.exit_on_error, False
    try:
        return plain(parser, parser.parse_string(text))
    except (ArgumentError, yaml.YAMLError) as error:
        raise UserError(f"{file} is not a config of this release: {in_one_line(str(error))}") from error
    finally:
        parser.exit_on_error = exits


def run_digests(folder: Path) -> dict[str, str]:
    """What a run's options named, with the sha256 of its content; empty for a run that recorded none."""
    record = _record(folder) if (folder / RECORD).is_file() else {}
    return {name: digest for key in ("data", INPUTS) for name, digest in record.get(key, {}).items() if digest != "hub"}


def _record(folder: Path) -> dict[str, Any]:
    return read_json(folder / RECORD, "Delete it, if the run's files are what they were.")


def plain(parser: Any, config: Any) -> dict[str, Any]:
    """A parsed configuration as plain values, as config.yaml holds it."""
    values: dict[str, Any] = yaml.safe_load(parser.dump(config, skip_unset=False))
    return values


def _named(option: str, key: str) -> str:
    """The name of an option within another, as it is typed."""
    return option if key == "init_args" else f"{option}.{key}".removeprefix(".")


def _told(option: str, old: Any, new: Any) -> str:
    named = [each.get(CLASS, each) if isinstance(each, dict) else each for each in (new, old)]
    told = ["absent" if each is _ABSENT else json.dumps(each) for each in named]
    is_now, was = (each if len(each) <= LONGEST else f"{each[:LONGEST]}..." for each in told)
    return f"{option} is {is_now} and was {was}"


def _digest(name: str) -> str | None:
    """The sha256 of the file or folder of a name; None if it names none, or one that cannot be read."""
    with suppress(OSError, ValueError, MissingInputError, ArtifactError):  # also of a text that is no path
        path = file_of(name)[0].expanduser()
        if not path.exists() and _HUB_ID.fullmatch(name):
            path = resolve(name)
        if path.is_dir():
            return _folder_digest(path) if any((path / each).is_file() for each in _OPENED) else None
        return content_digest(rereadable(path), DEFAULT)
    return None


def _folder_digest(folder: Path) -> str:
    """Of the file that seals a folder, else of all files that a program reads."""
    for name in _SEALED:
        if (folder / name).is_file():
            return content_digest(folder / name, None)
    files = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
    digests = {
        name: content_digest(path, DEFAULT)
        for name, path in files.items()
        if not any(_UNREAD.search(part) for part in Path(name).parts)
    }
    return sha256_of(json.dumps(digests, sort_keys=True).encode()).hexdigest()
