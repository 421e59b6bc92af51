"""What a run ran on: commit, versions, hardware, data digests."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from common.files import sha256

PACKAGES = ("torch", "pytorch-lightning", "transformers", "tokenizers", "safetensors", "datasets", "wandb", "numpy")


def commit() -> str:
    """The repository's commit, with "+changes" if the tree differs from it; "unknown" outside a checkout."""
    root = Path(__file__).parent
    try:
        head, changes = (
            subprocess.run(["git", *command], cwd=root, capture_output=True, text=True, check=True).stdout.strip()
            for command in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+changes" if changes else "")


def versions() -> dict[str, str]:
    """Installed versions of the packages that decide results."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "missing"
    return found


def data_digests(paths: list[str]) -> dict[str, str]:
    """sha256 of each local file; a hub data set is named by its id alone."""
    return {path: sha256(Path(path)) if Path(path).is_file() else "hub" for path in paths}


def hardware() -> dict[str, Any]:
    """Processor, threads and GPUs."""
    gpus = (
        [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    )
    return {"platform": platform.platform(), "threads": torch.get_num_threads(), "gpus": gpus}
