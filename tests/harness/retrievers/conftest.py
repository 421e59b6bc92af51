"""BM25 and RE-RAG's estimator over the passages of RE-RAG's tests, made once."""

from pathlib import Path

import pytest

from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from models.cross_encoder import RelevanceEstimator
from models.rerag.model import ReRagModel
from tests.helpers.rerag_world import corpus, write_serving


@pytest.fixture(scope="session")
def bm25(tmp_path_factory: pytest.TempPathFactory) -> Bm25Retriever:
    folder = tmp_path_factory.mktemp("rerag") / "bm25"
    build_bm25(corpus(60), folder)
    return Bm25Retriever(folder)


@pytest.fixture(scope="session")
def serving(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    return write_serving(checkpoints["t5"], tmp_path_factory.mktemp("rerag") / "serving", generator=None)


@pytest.fixture(scope="session")
def estimator(serving: Path) -> RelevanceEstimator:
    return ReRagModel.load(serving, "cpu").estimator
