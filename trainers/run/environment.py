"""Environment of a run: commit, package versions, hardware, data digests."""

import platform
import subprocess
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from datamodules.cache.content_digests import content_digest
from datamodules.formats.file_kinds import rereadable
from datamodules.formats.open_data import local_files

ROOT = Path(__file__).parents[2]
PACKAGES = ("torch", "pytorch-lightning", "transformers", "tokenizers", "safetensors", "datasets", "wandb", "numpy")


def commit(root: Path = ROOT) -> str:
    """The repository's commit, with "+changes" if files differ from it; "unknown" outside a checkout of this project.

    Args:
        root: The checkout.  The installed package may lie in an environment inside another project's repository.
    """
    named = ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+changes"]
    if (root / ".git").exists():
        with suppress(OSError, subprocess.CalledProcessError):
            return subprocess.run(named, cwd=root, capture_output=True, text=True, check=True).stdout.strip()
    return "unknown"


def versions() -> dict[str, str]:
    """Installed versions of the packages that influence results."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):  # installed without metadata, e.g. from a vendored copy
            found[package] = version(package)
    return found


def file_digests(data: Any) -> dict[str, str]:
    """`data_digests` of the files that a data module names; empty without such files."""
    return data_digests(getattr(data, "files", []), getattr(data, "cache", None))


def data_digests(paths: list[str], cache: str | None = None) -> dict[str, str]:
    """sha256 of each local file, of `FILE:SPLIT` the whole file, of judged queries both; "hub" for a hub data set.

    Args:
        paths: As the data module names them.
        cache: Where it remembers the digests of large files.
    """
    named = [(path, local_files(path)) for path in paths]
    files = {path if own == [file] else str(file): file for path, own in named for file in own}
    return {path: content_digest(rereadable(file), cache) if file.exists() else "hub" for path, file in files.items()}


def hardware() -> dict[str, Any]:
    """Platform, threads and GPUs."""
    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]  # none without CUDA
    return {"platform": platform.platform(), "threads": torch.get_num_threads(), "gpus": gpus}
