"""A small world with rephrased questions, generated and written once; nobody changes it."""

from pathlib import Path

import pytest

from datamodules.world.world import World, generate
from datamodules.world.writing import write_world
from tests.helpers.small_world import REPHRASED


@pytest.fixture(scope="session")
def world() -> World:
    return generate(REPHRASED)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("world") / "out"
    write_world(REPHRASED, out)
    return out
