"""Dense retrieval against brute force, and the sharded build against one process."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from common.errors import UserError
from common.files import digests
from common.outputs import partial_folder
from harness.indexing.index_folder import Build
from harness.indexing.passage_store import indexed_text
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.interfaces import Retriever
from harness.retrievers.dense import DenseRetriever, build_dense
from tests.helpers.commands import apart, under_torchrun
from tests.helpers.commands import done as succeeds
from tests.helpers.small_world import WORDS, corpus, write_encoder, write_jsonl
from tests.helpers.tolerances import model_close, model_tolerance

PASSAGES = corpus(70)
QUERIES = ["amber fjord", "kiln", "lagoon lagoon meadow", "north orchard island delta", "zebra", *WORDS]


@pytest.fixture(scope="module")
def index(tmp_path_factory, encoder) -> Path:
    folder = tmp_path_factory.mktemp("indexes") / "tiny"
    build_dense(PASSAGES, folder, encoder, chunk_passages=16)
    return folder


@pytest.mark.numeric
def test_search_agrees_with_brute_force(tmp_path, index, encoder) -> None:
    """Also of an encoder that stands elsewhere. An empty query finds nothing and disturbs nothing."""
    build_dense(PASSAGES, tmp_path / "whole", encoder, chunk_passages=1000)
    one, other = (np.load(folder / "vectors.npy") for folder in (tmp_path / "whole", index))
    np.testing.assert_allclose(one, other, rtol=0, atol=model_tolerance())  # chunks change nothing
    retriever = DenseRetriever(index, "cpu", encoder=write_encoder(tmp_path / "same"))
    assert isinstance(retriever, Retriever)
    alone = np.concatenate([encoder.encode_passages([indexed_text(p)]) for p in PASSAGES]).astype(np.float64)
    for k in (1, 5, 70, 1000):
        nothing, *results, blank = retriever.search(["", *QUERIES, " \n"], k)
        assert nothing == blank == []
        for query, found in zip(QUERIES, results, strict=True):
            scores_N = alone @ encoder.encode_queries([query])[0].astype(np.float64)
            scores = [hit.score for hit in found]
            assert scores == model_close(np.sort(scores_N)[::-1][:k].tolist())
            assert scores == model_close([scores_N[PASSAGES.index(hit.passage)] for hit in found])
            assert len({hit.passage.id for hit in found}) == min(k, len(PASSAGES))
    assert (retriever.search([], 3), retriever.search([""], 3)) == ([], [[]])


class Killed(BaseException):
    pass


def test_a_killed_build_continues_and_encodes_nothing_twice(tmp_path, encoder_folder, index, monkeypatch) -> None:
    encoder, out, encoded = SentenceEncoder(encoder_folder, "cpu"), tmp_path / "index", []
    encode = encoder.encode_passages

    def dies_on_the_third(texts: list[str]) -> np.ndarray:
        if len(encoded) == 2:
            raise Killed
        encoded.append(len(texts))
        return encode(texts)

    monkeypatch.setattr(encoder, "encode_passages", dies_on_the_third)
    with pytest.raises(Killed):
        build_dense(PASSAGES, out, encoder, chunk_passages=16)
    assert not out.exists()
    chunks = list(partial_folder(out).glob("chunk-*"))
    assert len(chunks) == 2

    monkeypatch.setattr(encoder, "encode_passages", lambda texts: encoded.append(len(texts)) or encode(texts))
    with pytest.raises(UserError, match="unfinished build that differs in: corpus"):
        build_dense(PASSAGES[1:], out, encoder, chunk_passages=16)
    torn = bytearray(chunks[1].read_bytes())
    torn[-1] ^= 1
    chunks[1].write_bytes(torn)  # is done again
    build_dense(PASSAGES, out, encoder, chunk_passages=16)
    assert encoded == [16, 16, 16, 16, 16, 6]
    assert digests(out) == digests(index)
    assert not partial_folder(out).exists()


def test_an_unfinished_build_of_another_corpus_can_be_discarded(tmp_path, encoder) -> None:
    out = tmp_path / "index"
    partial_folder(out).mkdir()
    (partial_folder(out) / "recipe.json").write_text("{}")
    np.save(partial_folder(out) / "chunk-00000.npy", np.zeros((70, 16), dtype=np.float32))
    build_dense(PASSAGES, out, encoder, build=Build(overwrite=True))
    assert np.abs(np.load(out / "vectors.npy")).min(axis=1).max() > 0  # nothing of the stray chunk


@pytest.mark.whole_run
def test_two_processes_build_the_bytes_of_one(tmp_path, encoder_folder) -> None:
    encoded = ("--dense.encoder", encoder_folder, "--dense.precision", "fp32", "--dense.chunk_passages", "16")
    typed = ("index", "--corpus", "corpus.jsonl", *encoded, "--device", "cpu")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.txt").write_text("the only copy")
    threads = torch.get_num_threads()
    first = (partial(apart, processes=2), threads, PASSAGES[:60])
    second = (under_torchrun, 1, PASSAGES[5:])  # all but 10 vectors are taken from the first index
    for start, same, now in (first, second):
        write_jsonl(tmp_path / "corpus.jsonl", now)
        torch.set_num_threads(same)  # as in its processes: it decides the last bits of a matrix product
        try:
            succeeds(tmp_path, "infer.py", *typed, "--out", "by-one")
        finally:
            torch.set_num_threads(threads)
        done = start(tmp_path, *typed, "--out", "by-two")
        assert done.returncode == 0, done.stderr[-3000:]
        assert "over 2 process(es)" in done.stderr
        assert digests(tmp_path / "by-two") == digests(tmp_path / "by-one")
        assert not partial_folder(tmp_path / "by-two").exists()
    assert "55 vectors were taken from what was encoded before, 10 passages encoded" in done.stderr
    # a build that the first process refuses ends in all of them, and harms nothing
    refused = apart(tmp_path, *typed, "--out", "taken", processes=2)
    assert refused.returncode != 0
    assert "taken exists and is not an index" in refused.stderr
    assert "rank 0 could not start" in refused.stderr
    assert [p.name for p in (tmp_path / "taken").iterdir()] == ["thesis.txt"]
