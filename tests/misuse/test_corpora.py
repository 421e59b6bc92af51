"""Indexes of another corpus are refused by fingerprint, wherever two indexes, or an index and questions, meet."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import ArtifactError
from common.files import digests
from harness.commands import evaluate
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.corpora import indexes_of
from harness.retrievers.fusion import FusedRetriever
from harness.selection.options import SelectionOptions
from harness.systems.drrag import DrRag
from tests.helpers.commands import command


def test_the_same_corpus_is_fused(made: Callable[[str], Path], tmp_path: Path) -> None:
    place = made("asking")
    before = digests(place)
    parts = [
        {"class_path": "harness.retrievers.bm25.Bm25Retriever", "init_args": {"index": index}}
        for index in ("bm25", "again")
    ]
    fused = {"class_path": "harness.retrievers.fusion.FusedRetriever", "init_args": {"retrievers": parts}}
    typed = ("--questions", "rivers.json", "--out", str(tmp_path / "out"), "--resamples", "10", "--system",
             "harness.systems.drrag.DrRag", "--system.selection.method", "sm", "--system.retriever",
             json.dumps(fused))  # fmt: skip
    ended = command(place, "infer.py", "evaluate", *typed)
    assert ended.code == 0, ended.err
    assert digests(place) == before


class Reranked:
    """A retriever around another one, as RerankedRetriever is."""

    def __init__(self, retriever: object) -> None:
        self.retriever = retriever


def test_indexes_inside_other_retrievers_are_found(made: Callable[[str], Path], tmp_path: Path) -> None:
    place = made("asking")
    one, other = Bm25Retriever(place / "bm25"), Bm25Retriever(place / "other")
    assert [index.folder.name for index in indexes_of(Reranked(FusedRetriever([one, one])))] == ["bm25", "bm25"]
    with pytest.raises(ArtifactError, match="different corpora"):
        FusedRetriever([one, Reranked(other)]).load()
    system = DrRag(Reranked(other), selection=SelectionOptions("sm"))
    with pytest.raises(
        ArtifactError, match="other is an index of another corpus: it holds none of the 6 gold passages"
    ):
        evaluate.evaluate(system, tmp_path / "out", questions=str(place / "rivers.json"))
