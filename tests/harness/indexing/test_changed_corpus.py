"""`infer.py index` typed again after a corpus file has changed: only texts that the index lacks are encoded."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from common import files
from common.files import digests
from common.records import Passage
from harness.indexing.corpus_encoding import partial_folder
from harness.indexing.index_folder import open_index
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
    """The texts that the encoder was asked for."""
    asked: list[str] = []
    original = SentenceEncoder.encode_passages

    def counting(self: SentenceEncoder, texts: list[str]) -> np.ndarray:
        asked.extend(texts)
        return original(self, texts)

    monkeypatch.setattr(SentenceEncoder, "encode_passages", counting)
    return asked


@pytest.fixture
def typed(tmp_path: Path, encoder_folder: str) -> Callable[..., Ended]:
    """The command, after the corpus was written."""

    def index(passages: list[Passage], *options: str, kind: str = "dense", file: str = "corpus.jsonl") -> Ended:
        write_jsonl(tmp_path / file, passages)
        dense = ("--dense.encoder", encoder_folder, "--device", "cpu", "--dense.chunk_passages", "16")
        given = ("--corpus", file, "--kind", kind, "--out", "index", *(dense if kind == "dense" else ()), *options)
        return command(tmp_path, "infer.py", "index", *given)

    return index


def vectors(folder: Path) -> dict[str, np.ndarray]:
    """The vectors of an index, by the ids of its passages."""
    stored = np.load(folder / "vectors.npy")
    return {passage.id: stored[row] for row, passage in enumerate(PassageStore(folder))}


@pytest.mark.parametrize("kind", ["flat", "IVF33,Flat", "HNSW32"])
def test_only_new_texts_are_encoded_and_the_others_keep_their_vectors(
    tmp_path: Path, typed: Callable[..., Ended], encoded: list[str], kind: str
) -> None:
    options = ("--dense.faiss_index", kind)
    assert typed(FIRST, *options).code == 0
    before = vectors(tmp_path / "index")
    encoded.clear()
    ended = typed(CHANGED, *options)
    assert ended.code == 0, ended.err
    assert sorted(encoded) == NEW
    assert f"{len(CHANGED) - 4} vectors were taken from what was encoded before, 4 passages encoded." in ended.err
    after = vectors(tmp_path / "index")
    for passage in CHANGED:
        if passage.id in before:
            np.testing.assert_array_equal(after[passage.id], before[passage.id])

    assert typed(CHANGED, *options, "--out", "fresh").code == 0
    index, fresh = (tmp_path / name for name in ("index", "fresh"))
    opened, other = open_index(index), open_index(fresh)
    assert (opened.recipe, opened.origin) == (other.recipe, other.origin)
    for name in ("passages.jsonl", "passages.offsets"):
        assert (index / name).read_bytes() == (fresh / name).read_bytes()
    np.testing.assert_allclose(
        np.load(index / "vectors.npy"), np.load(fresh / "vectors.npy"), rtol=0, atol=model_tolerance()
    )
    ours, theirs = (DenseRetriever(folder, "cpu", nprobe=100).search(WORDS, 5) for folder in (index, fresh))
    assert [[hit.passage for hit in hits] for hits in ours] == [[hit.passage for hit in hits] for hits in theirs]
    encoded.clear()
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


def test_a_killed_update_leaves_the_old_index_and_goes_on(
    tmp_path: Path, typed: Callable[..., Ended], encoded: list[str]
) -> None:
    typed(FIRST)
    before = digests(tmp_path / "index")
    killed(2, lambda: typed(CHANGED))
    assert digests(tmp_path / "index") == before
    encoded.clear()
    ended = typed(CHANGED)
    assert ended.code == 0, ended.err
    assert "continuing a build" in ended.err
    assert sorted(encoded) == sorted(map(indexed_text, ALL[72:74]))
    assert list(PassageStore(tmp_path / "index")) == CHANGED
    assert not partial_folder(tmp_path / "index").exists()


def test_what_an_unfinished_build_has_encoded_serves_a_changed_corpus(
    tmp_path: Path, typed: Callable[..., Ended], encoded: list[str]
) -> None:
    killed(32, lambda: typed(FIRST))
    killed(16, lambda: typed([*ALL[74:], *FIRST[40:]]))  # a chunk with texts that the first two do not have
    assert not (tmp_path / "index").exists()
    done = set(encoded)
    encoded.clear()
    ended = typed(CHANGED)
    assert ended.code == 0, ended.err
    assert sorted(encoded) == sorted(set(map(indexed_text, CHANGED)) - done)
    assert len(encoded) == len(CHANGED) - (32 - 3) - 10
    assert list(PassageStore(tmp_path / "index")) == CHANGED
    found = vectors(tmp_path / "index")
    typed(CHANGED, "--out", "fresh")
    for id_, vector in vectors(tmp_path / "fresh").items():
        np.testing.assert_allclose(found[id_], vector, rtol=0, atol=model_tolerance())


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--dense.max_tokens", "8"], "encoder"),
        (["--dense.encoder", "other"], "encoder"),
        (["--dense.precision", "bf16"], "dtype"),
        (["--dense.faiss_index", "HNSW32"], "vectors"),
        (["--corpus", "copy.jsonl"], "corpus"),
        (["--corpus", "shipped.json", "--layout", "fid"], "corpus"),
        (["--documents", "manuals"], "documents"),
        (["--corpus", "[corpus.jsonl, copy.jsonl]"], "corpus"),
    ],
)
def test_what_was_not_typed_before_needs_leave_to_overwrite(
    tmp_path: Path, typed: Callable[..., Ended], encoded: list[str], options: list[str], part: str
) -> None:
    write_encoder(tmp_path / "other", seed=1)
    assert typed(FIRST, "--dense.faiss_index", "IVF33,Flat").code == 0
    before = digests(tmp_path / "index")
    write_jsonl(tmp_path / "copy.jsonl", CHANGED)
    shipped = {"question": "who", "answers": ["x"], "ctxs": [{"title": p.title, "text": p.text} for p in CHANGED]}
    (tmp_path / "shipped.json").write_text(json.dumps([shipped]))
    (tmp_path / "manuals").mkdir()
    (tmp_path / "manuals/a.md").write_text("# Alba\n\namber fjord\n")
    options = ["--dense.faiss_index", "IVF33,Flat", *options]
    encoded.clear()
    refused(typed(CHANGED, *options), 2, "holds another index", part, "--overwrite true")
    assert digests(tmp_path / "index") == before
    assert encoded == []
    same_vectors = part in ("vectors", "corpus", "documents")
    ended = typed(CHANGED, *options, "--overwrite", "true")
    assert ended.code == 0, ended.err
    assert ("were taken from" in ended.err) is same_vectors
    assert (len(encoded) < 6) is same_vectors


def test_an_unfinished_build_of_another_file_is_kept(tmp_path: Path, typed: Callable[..., Ended]) -> None:
    killed(32, lambda: typed(FIRST))
    refused(typed(CHANGED, file="copy.jsonl"), 2, "unfinished build that differs in: corpus", "--overwrite true")
    assert len(list(partial_folder(tmp_path / "index").glob("chunk-*"))) == 2
    assert "continuing a build with 2 chunks" in typed(FIRST).err


def test_a_link_is_the_file_of_its_name_wherever_the_command_is_typed(
    tmp_path: Path, typed: Callable[..., Ended], encoded: list[str]
) -> None:
    for name, passages in (("old.jsonl", FIRST), ("new.jsonl", CHANGED)):
        write_jsonl(tmp_path / name, passages)
    (tmp_path / "corpus.jsonl").symlink_to("old.jsonl")
    assert typed(FIRST).code == 0
    (tmp_path / "corpus.jsonl").unlink()
    (tmp_path / "corpus.jsonl").symlink_to("new.jsonl")
    encoded.clear()
    assert typed(CHANGED, file="../" + tmp_path.name + "/corpus.jsonl").code == 0
    assert sorted(encoded) == NEW


def test_an_index_that_names_no_file_gives_its_vectors_when_it_is_overwritten(
    tmp_path: Path, typed: Callable[..., Ended], encoded: list[str], encoder: SentenceEncoder
) -> None:
    build_dense(FIRST, tmp_path / "index", encoder)  # as every index of an earlier version
    refused(typed(CHANGED), 2, "holds another index")
    encoded.clear()
    assert typed(CHANGED, "--overwrite", "true").code == 0
    assert sorted(encoded) == NEW


def test_nothing_is_taken_from_a_corrupt_index(
    tmp_path: Path, typed: Callable[..., Ended], encoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_SAMPLE_BLOCKS", 4)  # samples do not find it
    monkeypatch.setattr(files, "_SAMPLE_BYTES", 8)
    typed(FIRST)
    stored = tmp_path / "index/vectors.npy"
    torn = bytearray(stored.read_bytes())
    torn[1000] ^= 1
    stored.write_bytes(torn)
    open_index(tmp_path / "index", verify_files="sampled")
    refused(typed(CHANGED), 74, "vectors.npy is corrupt")
    encoded.clear()
    assert typed(CHANGED, "--overwrite", "true").code == 0
    assert len(encoded) == len(CHANGED)


def test_own_ids_and_fields_that_change_need_no_encoding(
    tmp_path: Path, typed: Callable[..., Ended], encoded: list[str]
) -> None:
    typed(FIRST)
    encoded.clear()
    typed([Passage(f"new-{p.id}", p.text, p.title) for p in FIRST])
    assert encoded == []
    assert [p.corpus_id for p in PassageStore(tmp_path / "index")] == [f"new-{p.id}" for p in FIRST]


@pytest.mark.parametrize("kind", ["bm25", "keywords", "links"])
def test_other_kinds_are_built_anew_unasked(tmp_path: Path, typed: Callable[..., Ended], kind: str) -> None:
    named = [Passage.of(p.title.title(), f"{p.text} LM{number:03}-T") for number, p in enumerate(ALL)]
    assert typed(named[:70], kind=kind).code == 0
    ended = typed(named[3:], kind=kind)
    assert ended.code == 0, ended.err
    typed(named[3:], "--out", "fresh", kind=kind)
    assert digests(tmp_path / "index") == digests(tmp_path / "fresh")
    refused(typed(named, kind=kind, file="copy.jsonl"), 2, "holds another index")
