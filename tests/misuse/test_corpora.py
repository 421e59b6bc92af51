"""Indexes of another corpus are refused by fingerprint, wherever two indexes, or an index and questions, meet."""

from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import ArtifactError
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.corpora import indexes_of
from harness.retrievers.fusion import FusedRetriever


class Reranked:
    """A retriever around another one, as RerankedRetriever is."""

    def __init__(self, retriever: object) -> None:
        self.retriever = retriever


def test_indexes_inside_other_retrievers_are_found(made: Callable[[str], Path]) -> None:
    place = made("asking")
    one, other = Bm25Retriever(place / "bm25"), Bm25Retriever(place / "other")
    assert [index.folder.name for index in indexes_of(Reranked(FusedRetriever([one, one])))] == ["bm25", "bm25"]
    FusedRetriever([one, Bm25Retriever(place / "again")]).load()  # another index of the same corpus
    with pytest.raises(ArtifactError, match="different corpora"):
        FusedRetriever([one, Reranked(other)]).load()
