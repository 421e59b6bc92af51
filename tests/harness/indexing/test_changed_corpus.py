"""`infer.py index` typed again after a corpus file has changed: only texts that the index lacks are encoded."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from common import files
from common.files import digests
from common.outputs import partial_folder
from common.records import Passage
from harness.indexing.index_folder import open_index
from harness.indexing.known_vectors import KnownVectors, text_keys, vectors_of_index
from harness.indexing.passage_store import PassageStore, indexed_text
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.retrievers.dense import DenseRetriever, build_dense
from tests.helpers.commands import Ended, command, refused
from tests.helpers.small_world import WORDS, corpus, write_encoder, write_jsonl
from tests.helpers.tolerances import model_tolerance

ALL = corpus(80)
FIRST = ALL[:70]
# in front, behind and between them new ones; some removed; one changed; two in another order
CHANGED = [ALL[70], *FIRST[3:20], ALL[71], FIRST[21], FIRST[20], *FIRST[22:70], ALL[72], ALL[73]]
NEW = sorted(map(indexed_text, ALL[70:74]))


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that the encoder was asked for by the last command."""
    asked, real = list[str](), SentenceEncoder.encode_passages
    monkeypatch.setattr(SentenceEncoder, "encode_passages", lambda self, new: asked.extend(new) or real(self, new))
    return asked


@pytest.fixture
def typed(tmp_path: Path, encoder_folder: str, encoded: list[str]) -> Callable[..., Ended]:
    """The command, after the corpus was written."""

    def index(passages: list[Passage], *options: str, kind="dense", file="corpus.jsonl", code: int = 0) -> Ended:
        encoded.clear()
        write_jsonl(tmp_path / file, passages)
        dense = ("--dense.encoder", encoder_folder, "--device", "cpu", "--dense.chunk_passages", "16")
        given = ("--corpus", file, "--kind", kind, "--out", "index", *(dense if kind == "dense" else ()), *options)
        ended = command(tmp_path, "infer.py", "index", *given)
        assert ended.code == code, ended.err
        return ended

    return index


@pytest.mark.parametrize("kind", ["flat", "IVF33,Flat"])
def test_only_new_texts_are_encoded_and_the_others_keep_their_vectors(tmp_path, typed, encoded, kind) -> None:
    options, index, fresh = ("--dense.faiss_index", kind), tmp_path / "index", tmp_path / "fresh"
    typed(FIRST, *options)
    before = dict(zip(PassageStore(index), np.load(index / "vectors.npy"), strict=True))
    ended = typed(CHANGED, *options)
    assert sorted(encoded) == NEW
    assert f"{len(CHANGED) - 4} vectors were taken from what was encoded before, 4 passages encoded." in ended.err
    after = dict(zip(PassageStore(index), np.load(index / "vectors.npy"), strict=True))
    for passage in before.keys() & after.keys():
        np.testing.assert_array_equal(after[passage], before[passage])

    typed(CHANGED, *options, "--out", "fresh")
    opened, other = open_index(index), open_index(fresh)
    assert (opened.recipe, opened.origin) == (other.recipe, other.origin)
    for name in ("passages.jsonl", "passages.offsets"):
        assert (index / name).read_bytes() == (fresh / name).read_bytes()
    ours, theirs = (np.load(folder / "vectors.npy") for folder in (index, fresh))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=model_tolerance())
    ours, theirs = (DenseRetriever(folder, "cpu", nprobe=100).search(WORDS, 5) for folder in (index, fresh))
    assert [[hit.passage for hit in hits] for hits in ours] == [[hit.passage for hit in hits] for hits in theirs]
    assert "is up to date" in typed(CHANGED, *options).err
    assert encoded == []


class Killed(BaseException):
    pass


def killed(after: int, work: Callable[[], object]) -> None:
    """Do work that ends when the encoder is asked for more than so many texts."""
    left, original = [after], SentenceEncoder.encode_passages

    def dies(self: SentenceEncoder, asked: list[str]) -> np.ndarray:
        left[0] -= len(asked)
        if left[0] < 0:
            raise Killed
        return original(self, asked)

    with pytest.MonkeyPatch.context() as then:
        then.setattr(SentenceEncoder, "encode_passages", dies)
        with pytest.raises(Killed):
            work()


def test_a_killed_update_leaves_the_old_index_and_goes_on(tmp_path, typed, encoded) -> None:
    typed(FIRST)
    before = digests(tmp_path / "index")
    killed(2, lambda: typed(CHANGED))
    assert digests(tmp_path / "index") == before
    assert "continuing a build" in typed(CHANGED).err
    assert sorted(encoded) == sorted(map(indexed_text, ALL[72:74]))
    assert list(PassageStore(tmp_path / "index")) == CHANGED
    assert not partial_folder(tmp_path / "index").exists()


def test_what_an_unfinished_build_has_encoded_serves_a_changed_corpus(tmp_path, typed, encoded) -> None:
    killed(32, lambda: typed(FIRST))
    refused(typed(CHANGED, file="copy.jsonl", code=2), 2, "unfinished build that differs in: corpus", "--overwrite")
    assert len(list(partial_folder(tmp_path / "index").glob("chunk-*"))) == 2
    killed(16, lambda: typed([*ALL[74:], *FIRST[40:]]))  # a chunk with texts that the first two do not have
    assert not (tmp_path / "index").exists()
    typed(CHANGED)
    assert len(encoded) == len({*encoded}) == len(CHANGED) - (32 - 3) - 10
    typed(CHANGED, "--out", "fresh")
    found, fresh = (tmp_path / name for name in ("index", "fresh"))
    assert list(PassageStore(found)) == list(PassageStore(fresh)) == CHANGED
    found, fresh = (np.load(folder / "vectors.npy") for folder in (found, fresh))
    np.testing.assert_allclose(found, fresh, rtol=0, atol=model_tolerance())


OTHER_OPTIONS = [
    (["--dense.max_tokens", "8"], "encoder"),
    (["--dense.encoder", "other"], "encoder"),
    (["--dense.precision", "bf16"], "dtype"),
    (["--dense.faiss_index", "HNSW32"], "vectors"),
    (["--corpus", "copy.jsonl"], "corpus"),
    (["--corpus", "shipped.json", "--layout", "fid"], "corpus"),
    (["--documents", "manuals"], "documents"),
    (["--corpus", "[corpus.jsonl, copy.jsonl]"], "corpus"),
]


@pytest.mark.parametrize(("options", "part"), OTHER_OPTIONS)
def test_what_was_not_typed_before_needs_leave_to_overwrite(tmp_path, typed, encoded, options, part) -> None:
    write_encoder(tmp_path / "other", seed=1)
    typed(FIRST, "--dense.faiss_index", "IVF33,Flat")
    before = digests(tmp_path / "index")
    write_jsonl(tmp_path / "copy.jsonl", CHANGED)
    shipped = {"question": "who", "answers": ["x"], "ctxs": [{"title": p.title, "text": p.text} for p in CHANGED]}
    (tmp_path / "shipped.json").write_text(json.dumps([shipped]))
    (tmp_path / "manuals").mkdir()
    (tmp_path / "manuals/a.md").write_text("# Alba\n\namber fjord\n")
    options = ["--dense.faiss_index", "IVF33,Flat", *options]
    refused(typed(CHANGED, *options, code=2), 2, "holds another index", part, "--overwrite true")
    assert (digests(tmp_path / "index"), encoded) == (before, [])
    same_vectors = part in ("vectors", "corpus", "documents")
    assert ("were taken from" in typed(CHANGED, *options, "--overwrite", "true").err) is same_vectors
    assert (len(encoded) < 6) is same_vectors


def test_texts_alone_are_compared_and_a_link_is_the_file_of_its_name_from_anywhere(tmp_path, typed, encoded) -> None:
    link, renamed = tmp_path / "corpus.jsonl", [Passage(f"new-{p.id}", p.text, p.title) for p in CHANGED]
    link.symlink_to("old.jsonl")
    typed(FIRST)
    link.unlink()
    link.symlink_to("new.jsonl")
    typed(renamed, file="../" + tmp_path.name + "/corpus.jsonl")
    assert sorted(encoded) == NEW
    assert [p.corpus_id for p in PassageStore(tmp_path / "index")] == [p.id for p in renamed]


def test_an_index_that_names_no_file_gives_the_vectors_of_what_is_indexed(tmp_path, typed, encoded, encoder) -> None:
    table = Passage("12ab", "| a |\n| 1 |", "Alba", indexed="Alba amber fjord")
    build_dense([table, *FIRST], tmp_path / "index", encoder)  # as every index of an earlier version
    keys = text_keys(["Alba amber fjord", "Alba | a | | 1 |"])
    known = KnownVectors(vectors_of_index(tmp_path / "index", encoder))
    assert known.has(keys).tolist() == [True, False]
    np.testing.assert_array_equal(known.of(keys[:1]), np.load(tmp_path / "index/vectors.npy")[[0]])
    refused(typed(CHANGED, code=2), 2, "holds another index")
    typed(CHANGED, "--overwrite", "true")
    assert sorted(encoded) == NEW


def test_nothing_is_taken_from_a_corrupt_index(tmp_path, typed, encoded, monkeypatch) -> None:
    monkeypatch.setattr(files, "_SAMPLE_BLOCKS", 4)  # samples do not find it
    monkeypatch.setattr(files, "_SAMPLE_BYTES", 8)
    typed(FIRST)
    stored = tmp_path / "index/vectors.npy"
    torn = bytearray(stored.read_bytes())
    torn[1000] ^= 1
    stored.write_bytes(torn)
    open_index(tmp_path / "index", verify_files="sampled")
    refused(typed(CHANGED, code=74), 74, "vectors.npy is corrupt")
    typed(CHANGED, "--overwrite", "true")
    assert len(encoded) == len(CHANGED)


@pytest.mark.parametrize("kind", ["bm25", "keywords", "links"])
def test_other_kinds_are_built_anew_unasked(tmp_path: Path, typed: Callable[..., Ended], kind: str) -> None:
    named = [Passage.of(p.title.title(), f"{p.text} LM{number:03}-T") for number, p in enumerate(ALL)]
    typed(named[:70], kind=kind)
    typed(named[3:], kind=kind)
    typed(named[3:], "--out", "fresh", kind=kind)
    assert digests(tmp_path / "index") == digests(tmp_path / "fresh")
    refused(typed(named, kind=kind, file="copy.jsonl", code=2), 2, "holds another index")
