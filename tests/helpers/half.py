"""Checkpoints saved in bf16: `from_pretrained` loads them in bf16 unless told otherwise."""

import shutil
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file
from transformers import AutoConfig


def saved_in_bf16(folder: Path, out: Path) -> Path:
    """A copy of a checkpoint whose weights are bf16, as `config.json` says."""
    shutil.copytree(folder, out)
    (name,) = AutoConfig.from_pretrained(folder).architectures
    getattr(transformers, name).from_pretrained(folder, dtype=torch.bfloat16).save_pretrained(out)
    assert {value.dtype for value in load_file(out / "model.safetensors").values()} == {torch.bfloat16}
    return out
