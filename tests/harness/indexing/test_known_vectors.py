"""Vectors of an earlier index: taken only where encoder, precision and text are the same."""

from pathlib import Path

import numpy as np
import pytest

from common.records import Passage
from harness.indexing.known_vectors import KnownVectors, text_keys, vectors_of_index
from harness.indexing.passage_store import indexed_text
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.retrievers.bm25 import build_bm25
from harness.retrievers.dense import build_dense
from tests.helpers.small_world import corpus, write_encoder

PASSAGES = corpus(12)


@pytest.fixture
def folder(tmp_path: Path, encoder: SentenceEncoder) -> Path:
    build_dense(PASSAGES, tmp_path / "dense", encoder)
    return tmp_path / "dense"


def test_a_text_is_known_by_what_is_indexed(tmp_path: Path, encoder: SentenceEncoder) -> None:
    table = Passage("12ab", "| a |\n| 1 |", "Alba", indexed="Alba amber fjord")
    build_dense([table, *PASSAGES], tmp_path / "dense", encoder)
    known = KnownVectors(vectors_of_index(tmp_path / "dense", encoder))
    stored = np.load(tmp_path / "dense" / "vectors.npy")
    keys = text_keys(["Alba amber fjord", "Alba | a | | 1 |"])
    assert known.has(keys).tolist() == [True, False]
    np.testing.assert_array_equal(known.of(keys[:1]), stored[[0]])


def test_vectors_of_several_sources_come_in_the_order_of_the_texts(folder: Path, encoder: SentenceEncoder) -> None:
    vectors = np.arange(10.0, dtype=np.float32)[:, None].repeat(16, axis=1)
    parts = [
        (text_keys(f"{row}" for row in rows), lambda rows=rows: vectors[rows]) for rows in (range(5), range(5, 10))
    ]
    known = KnownVectors([*vectors_of_index(folder, encoder), *parts])
    stored = np.load(folder / "vectors.npy")
    texts = ["9", indexed_text(PASSAGES[11]), "0", indexed_text(PASSAGES[0]), "9", "4"]
    expected = [vectors[9], stored[11], vectors[0], stored[0], vectors[9], vectors[4]]
    np.testing.assert_array_equal(known.of(text_keys(texts)), expected)
    assert known.has(text_keys([])).tolist() == []


def test_nothing_is_known_of_other_indexes(folder: Path, tmp_path: Path, encoder: SentenceEncoder) -> None:
    build_bm25(PASSAGES, tmp_path / "lexical")
    other = SentenceEncoder(write_encoder(tmp_path / "other", seed=1), "cpu")
    half = SentenceEncoder(encoder.name, "cpu", precision="bf16")
    (tmp_path / "damaged").mkdir()
    assert len(vectors_of_index(folder, encoder)) == 1
    for name in ("missing", "damaged", "lexical"):
        assert vectors_of_index(tmp_path / name, encoder) == []
    assert vectors_of_index(folder, other) == vectors_of_index(folder, half) == []
    assert KnownVectors([]).has(text_keys(["a"])).tolist() == [False]
