"""Computes the values: all that one name of `values/` stands for, in a folder that holds what it needs."""

import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from tests.exactness import systems, texts, training
from tests.exactness.tiny_models import save_bert
from tests.exactness.training import number
from tests.exactness.values import ID_DIGITS
from tests.exactness.workplace import words_of_the_world

NAMES = [
    "token_ids", "passage_ids",
    *(f"training/{run}" for run in training.RUNS), *(f"answers/{system}" for system in systems.SYSTEMS),
]  # fmt: skip


@contextlib.contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """In a folder, on one thread, as a command."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with contextlib.chdir(folder), mock.patch.object(sys, "argv", ["train.py"]):  # Lightning warns of others
            yield
    finally:
        torch.set_num_threads(threads)


def prepare(workplace: Path, folder: Path, kind: str, noise: int | None = None) -> Path:
    """Write what a kind of values needs into a copy of the workplace.

    Args:
        workplace: Of `write_workplace`.
        folder: The copy, which is not there yet.
        kind: What the names begin with, such as training.
        noise: Of `tests.exactness.tiny_models.fill`, for the models of the systems.
    """
    shutil.copytree(workplace, folder)
    with working_in(folder):
        if kind == "training":
            training.write_training_files()
        elif kind == "answers":
            Path("encoder").mkdir()
            save_bert(Path("encoder"), words_of_the_world(Path()), noise=noise)
            systems.write_indexes()
            systems.write_serving(noise)
    return folder


def compute(name: str, folder: Path) -> dict[str, Any]:
    """The values of a name, in a folder that `prepare` has written."""
    kind, _, rest = name.partition("/")
    with working_in(folder):
        if kind == "training":
            return training.measure(rest)
        if kind == "answers":
            found = systems.answers(rest)
            return {"answers": {question: _short(*answer) for question, answer in found.items()}}
        return texts.token_ids() if kind == "token_ids" else texts.passage_ids()


def _short(text: str, queries: str, ids: list[str], scores: list[float]) -> list[Any]:
    return [text, queries, [id_[:ID_DIGITS] for id_ in ids], [number(score) for score in scores]]
