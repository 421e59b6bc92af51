"""An index of the rivers, and RE-RAG's models without training, for the tests of all systems."""

import pytest

from harness.retrievers.bm25 import Bm25Retriever
from tests.helpers.rerag_world import write_serving
from tests.helpers.river_corpus import write_index


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory):
    return write_index(tmp_path_factory.mktemp("rivers"))


@pytest.fixture(scope="module")
def bm25(index) -> Bm25Retriever:
    return Bm25Retriever(index)


@pytest.fixture(scope="session")
def serving(tmp_path_factory: pytest.TempPathFactory, checkpoints):
    return write_serving(checkpoints["t5"], tmp_path_factory.mktemp("rerag") / "serving")
