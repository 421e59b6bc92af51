"""The folders of `places.py`, each made when a test first asks for it."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.misuse.places import PLACES


@pytest.fixture(scope="session")
def made(
    tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path], plain_lm: Path
) -> Callable[[str], Path]:
    """The folder of a place, by its name; what a test writes there it removes."""

    @cache
    def make(place: str) -> Path:
        folder = tmp_path_factory.mktemp(place)
        PLACES[place](folder, {**checkpoints, "plain_lm": plain_lm})
        return folder

    return make
