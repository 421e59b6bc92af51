"""Vectors of an earlier index: taken only where encoder, precision and text are the same."""

from pathlib import Path

import numpy as np
import pytest

from common.records import Passage
from harness.indexing.known_vectors import KnownVectors, text_keys
from harness.indexing.passage_store import indexed_text
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.retrievers.bm25 import build_bm25
from harness.retrievers.dense import build_dense
from tests.helpers.retrieval_world import corpus, write_encoder

PASSAGES = corpus(12)


def marked(texts: list[str]) -> np.ndarray:
    """Vectors that no encoder gives."""
    return np.full((len(texts), 16), 7.0, dtype=np.float32)


@pytest.fixture
def folder(tmp_path: Path, encoder: SentenceEncoder) -> Path:
    build_dense(PASSAGES, tmp_path / "dense", encoder)
    return tmp_path / "dense"


def test_a_text_is_known_by_what_is_indexed(tmp_path: Path, encoder: SentenceEncoder) -> None:
    table = Passage("12ab", "| a |\n| 1 |", "Alba", indexed="Alba amber fjord")
    build_dense([table, *PASSAGES], tmp_path / "dense", encoder)
    known = KnownVectors(tmp_path / "dense", encoder)
    stored = np.load(tmp_path / "dense" / "vectors.npy")
    np.testing.assert_array_equal(known.completed(["Alba amber fjord"], encoder.encode_passages), stored[[0]])
    assert known.completed(["Alba | a | | 1 |"], lambda texts: np.zeros((1, 3))).shape == (1, 3)


def test_texts_of_several_sources_are_completed_together(folder: Path, encoder: SentenceEncoder) -> None:
    vectors = np.arange(10.0, dtype=np.float32)[:, None].repeat(16, axis=1)
    chunks = [(text_keys(f"{row}" for row in rows), vectors[rows]) for rows in (range(5), range(5, 10))]
    known = KnownVectors(folder, encoder, chunks)
    assert len(known) == 22
    stored = np.load(folder / "vectors.npy")
    texts = ["9", indexed_text(PASSAGES[11]), "0", "unknown", indexed_text(PASSAGES[0]), "9", "4"]
    expected = [vectors[9], stored[11], vectors[0], [7] * 16, stored[0], vectors[9], vectors[4]]
    np.testing.assert_array_equal(known.completed(texts, marked), expected)
    assert known.completed([], marked).shape == (0, 16)


def test_nothing_is_known_of_other_indexes(folder: Path, tmp_path: Path, encoder: SentenceEncoder) -> None:
    build_bm25(PASSAGES, tmp_path / "lexical")
    other = SentenceEncoder(write_encoder(tmp_path / "other", seed=1), "cpu")
    half = SentenceEncoder(encoder.name, "cpu", precision="bf16")
    text = [indexed_text(PASSAGES[0])]
    (tmp_path / "damaged").mkdir()
    for known in (
        KnownVectors(tmp_path / "missing", encoder),
        KnownVectors(tmp_path / "damaged", encoder),
        KnownVectors(tmp_path / "lexical", encoder),
        KnownVectors(folder, other),
        KnownVectors(folder, half),
    ):
        assert (known.completed(text, marked) == 7).all()
