"""What must not move: a change of any value in `values/` is a decision, and is told with its reason.

The values were written by the command in `tests/exactness/__main__.py`, from tiny models in fp32 on one thread.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.exactness.computing import NAMES, compute, prepare
from tests.exactness.values import FOLDER, check_answers, check_training, stored
from tests.exactness.workplace import write_workplace

pytestmark = pytest.mark.numeric
LARGEST = ("training/rerag_released_encoder", "training/rerag_paper_encoder", "training/rerag_paper_t5")


def _of(kind: str) -> list[Any]:
    names = [name for name in NAMES if name.startswith(kind)]
    return [pytest.param(name, marks=pytest.mark.whole_run) if name in LARGEST else name for name in names]


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Kind of values -> the folder in which they are computed, which is written once."""
    workplace, copies = write_workplace(tmp_path_factory.mktemp("workplace")), tmp_path_factory.mktemp("copies")
    return cache(lambda kind: prepare(workplace, copies / kind, kind))


@pytest.fixture
def folder(request: pytest.FixtureRequest, prepared: Callable[[str], Path]) -> Path:
    """The folder of a test's kind of values."""
    return prepared(request.function.__name__.removeprefix("test_"))


def test_every_file_has_a_test() -> None:
    assert sorted(str(file.relative_to(FOLDER).with_suffix("")) for file in FOLDER.rglob("*.json")) == sorted(NAMES)


@pytest.mark.parametrize("name", _of("training"))
def test_training(name: str, folder: Path) -> None:
    check_training(compute(name, folder), stored(name))


@pytest.mark.parametrize("name", _of("answers"))
def test_answers(name: str, folder: Path) -> None:
    kept = stored(name)
    assert len(kept["answers"]) >= 30  # of fifty
    check_answers(compute(name, folder), kept)


@pytest.mark.parametrize("name", ["token_ids", "passage_ids"])
def test_ids(name: str, folder: Path) -> None:
    kept = stored(name)
    del kept["made by"]
    assert compute(name, folder) == kept
