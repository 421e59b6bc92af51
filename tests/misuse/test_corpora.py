"""Indexes of another corpus are refused by fingerprint, wherever two indexes, or an index and questions, meet."""

import json
from pathlib import Path

import pytest

from common.errors import ArtifactError
from common.records import Passage
from harness.commands import evaluate
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.corpora import indexes_of
from harness.retrievers.fusion import FusedRetriever
from harness.selection.options import SelectionOptions
from harness.strategies.drrag import DrRag
from tests.helpers import river_corpus
from tests.helpers.commands import command

BM25 = "harness.retrievers.bm25.Bm25Retriever"
OTHER = [Passage.of("Alba", "alba mountain railway"), Passage.of("Elbe", "elbe river")]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Indexes `bm25` and `again` of one corpus, `other` of another, and questions of the first."""
    river_corpus.write_index(tmp_path)
    river_corpus.write_questions(tmp_path)
    build_bm25(river_corpus.PASSAGES.values(), tmp_path / "again", k1=1.2)
    build_bm25(OTHER, tmp_path / "other")
    return tmp_path


def fused(*indexes: str) -> str:
    """A fused retriever as it is typed."""
    parts = [{"class_path": BM25, "init_args": {"index": index}} for index in indexes]
    return json.dumps({"class_path": "harness.retrievers.fusion.FusedRetriever", "init_args": {"retrievers": parts}})


def strategy(retriever: str) -> tuple[str, ...]:
    """Arguments of a strategy without a classifier."""
    selection = ("--strategy.selection.method", "sm")
    return "--strategy", "harness.strategies.drrag.DrRag", *selection, "--strategy.retriever", retriever


def left(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def test_the_same_corpus_is_fused(place: Path) -> None:
    typed = ("--questions", "questions.json", "--out", "out", "--resamples", "10", *strategy(fused("bm25", "again")))
    ended = command(place, "infer.py", "evaluate", *typed)
    assert ended.code == 0, ended.err
    assert left(place) == ["again", "bm25", "other", "out", "questions.json"]


class Reranked:
    """A retriever around another one, as RerankedRetriever is."""

    def __init__(self, retriever: object) -> None:
        self.retriever = retriever


def test_indexes_inside_other_retrievers_are_found(place: Path) -> None:
    one, other = Bm25Retriever(place / "bm25"), Bm25Retriever(place / "other")
    assert [index.folder.name for index in indexes_of(Reranked(FusedRetriever([one, one])))] == ["bm25", "bm25"]
    with pytest.raises(ArtifactError, match="different corpora"):
        FusedRetriever([one, Reranked(other)]).load()
    with pytest.raises(
        ArtifactError, match="other is an index of another corpus: it holds none of the 6 gold passages"
    ):
        evaluate.evaluate(
            DrRag(Reranked(other), selection=SelectionOptions("sm")), str(place / "questions.json"), place / "out"
        )
