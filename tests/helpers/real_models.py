"""Real models for tests, made by `scripts/real_models.py` into a folder that the environment names."""

import os
from pathlib import Path

import pytest

VARIABLE = "LIGHTNING_RAG_MODELS"


def real_model(name: str) -> Path:
    """The folder of a model; skips the test, and says so, where there is none."""
    folder = Path(os.environ.get(VARIABLE, ""), name)
    if VARIABLE not in os.environ or not folder.is_dir():
        pytest.skip(f"{VARIABLE} names no folder with {name}: python -m scripts.real_models {name} FOLDER/{name}")
    return folder
