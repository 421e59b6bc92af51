"""A Qdrant collection, in the client's local mode, against the index folder that it was uploaded from."""

import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("qdrant_client", reason="the extra `qdrant` is not installed")

from qdrant_client import QdrantClient, models

from common.errors import ArtifactError, MissingInputError, UnavailableError, UserError
from common.records import Gold, Passage, Question, Source
from common.retrieval import search_for
from harness.commands.index import index
from harness.commands.index_options import DenseOptions
from harness.evaluation.gold_in_index import with_gold_in_index
from harness.indexing import qdrant_collection
from harness.indexing.index_folder import open_index
from harness.indexing.qdrant_collection import QdrantVectors, upload
from harness.indexing.qdrant_place import CollectionPlace
from harness.interfaces import Retriever
from harness.retrievers.corpora import absent_gold, check_same_corpus, passages_of
from harness.retrievers.dense import DenseRetriever, build_dense
from harness.retrievers.qdrant import QdrantRetriever
from tests.helpers.small_world import WORDS, corpus, write_encoder, write_jsonl

PASSAGES, DEAD = corpus(60), "http://127.0.0.1:9"


def stored(place: CollectionPlace) -> list[Passage]:
    """The passages of a collection."""
    vectors = QdrantVectors(place, True, None)
    with closing(vectors.client):
        return list(vectors.index.stored)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, encoder) -> Path:
    """Of other texts with near vectors too, and a passage under a second id."""
    folder, near = tmp_path_factory.mktemp("qdrant"), [(f"{p.title} ", f" {p.text} zebra") for p in PASSAGES[:9]]
    twice = [*PASSAGES, *(Passage.of(*texts) for texts in near), replace(PASSAGES[0], corpus_id="second")]
    build_dense(twice, folder / "dense", encoder)
    upload(open_index(folder / "dense"), CollectionPlace(None, folder / "db", "tiny"))
    return folder


@pytest.fixture
def retriever(built: Path):
    opened = QdrantRetriever("tiny", path=built / "db", device="cpu")
    opened.load()
    yield opened
    opened._vectors.client.close()


def test_it_finds_what_the_index_folder_finds(built: Path, retriever: QdrantRetriever) -> None:
    flat = DenseRetriever(built / "dense", "cpu")
    assert isinstance(retriever, Retriever)
    for k in (1, 7, 200):
        assert retriever.search([*WORDS, "", "kiln fjord"], k) == flat.search([*WORDS, "", "kiln fjord"], k)
    assert retriever.search([], 3) == []
    check_same_corpus([retriever, flat])  # type: ignore[list-item]
    assert list(passages_of(retriever) or ()) == list(passages_of(flat) or ())
    assert retriever.index.recipe == flat.index.recipe
    assert absent_gold(retriever, {PASSAGES[3].id, "none"}) == {"none"}
    asked = Question("second", "kiln", gold=Gold(corpus_ids=("second",)))
    both = [Question("q", PASSAGES[0].text), replace(asked, source=Source(exclude_self=True))]
    for searching in (retriever, flat):
        assert with_gold_in_index(searching, [asked])[0][0].support == (PASSAGES[0].id,)
        found = search_for(searching, both, 200)
        assert [PASSAGES[0] in [hit.passage for hit in hits] for hits in found] == [True, False]


def test_an_interrupted_upload_goes_on_and_is_not_searched_before(tmp_path: Path, built: Path, monkeypatch) -> None:
    monkeypatch.setattr(qdrant_collection, "BATCH", 16)
    place, real, sizes = CollectionPlace(None, tmp_path / "db", "tiny"), QdrantClient.upload_collection, []

    def uploads(client, name, vectors, payload, ids, *batch, **options):
        sizes.append(len(ids))
        if len(sizes) == 1:
            real(client, name, vectors[:35], payload, ids[:35])
            raise KeyboardInterrupt
        real(client, name, vectors, payload, ids, *batch, **options)

    monkeypatch.setattr(QdrantClient, "upload_collection", uploads)
    index = open_index(built / "dense")
    with pytest.raises(KeyboardInterrupt):
        upload(index, place)
    with pytest.raises(ArtifactError, match="upload was interrupted"):
        QdrantRetriever("tiny", path=tmp_path / "db", device="cpu").load()
    for _ in range(2):  # the second time it is up to date
        upload(index, place)
        assert sizes == [69, 69 - 32]
    assert stored(place) == list(index.stored)
    with closing(place.connect()) as client:
        client.delete("tiny", [3])
        recorded = client.get_collection("tiny").config.metadata["lightning_rag"]
        client.update_collection("tiny", metadata={"lightning_rag": {**recorded, "complete": False}})
    with pytest.raises(ArtifactError, match="holds 68 of 69 points"):
        upload(index, place)


def test_another_index_is_replaced_only_when_told_and_a_strangers_collection_never(tmp_path, built, encoder) -> None:
    place, theirs = (CollectionPlace(None, tmp_path / "db", name) for name in ("tiny", "theirs"))
    build_dense(PASSAGES[:20], tmp_path / "other", encoder)
    upload(open_index(built / "dense"), place)
    with pytest.raises(UserError, match="holds another index \\(differs in: corpus"):
        upload(open_index(tmp_path / "other"), place)
    upload(open_index(tmp_path / "other"), place, overwrite=True)
    assert stored(place) == PASSAGES[:20]
    with closing(place.connect()) as client:
        client.create_collection("theirs", models.VectorParams(size=4, distance=models.Distance.DOT))
    for overwrite in (False, True):
        with pytest.raises(ArtifactError, match=r"not written by infer\.py index"):
            upload(open_index(built / "dense"), theirs, overwrite)


def test_what_does_not_fit_is_refused(tmp_path: Path, built: Path, retriever: QdrantRetriever) -> None:
    with pytest.raises(UserError, match="open in another process"):
        QdrantRetriever("tiny", path=built / "db", device="cpu").load()
    retriever._vectors.client.close()
    far = {"path": built / "db", "encoder": write_encoder(tmp_path / "e", seed=3)}
    for name, place, error, word in (
        ("none", {"path": tmp_path / "db"}, MissingInputError, "no such collection"),
        ("tiny", far, ArtifactError, "another encoder"),
        ("tiny", {}, UserError, "give url, such as http://localhost:6333, or path"),
        ("tiny", {"url": "http://localhost:1", "path": tmp_path}, UserError, "and not both"),
        ("tiny", {"url": DEAD}, UnavailableError, "no Qdrant server answers at http://127.0.0.1:9"),
    ):
        with pytest.raises(error, match=word):
            QdrantRetriever(name, device="cpu", **place).load()


def test_the_command_builds_and_uploads_where_a_server_answers(tmp_path: Path, encoder_folder: str) -> None:
    at, made = CollectionPlace(path=tmp_path / "db"), (tmp_path / "out", [str(write_jsonl(tmp_path / "c", PASSAGES))])
    with pytest.raises(UnavailableError, match="no Qdrant server answers"):  # before anything is encoded
        index(*made, dense=DenseOptions("no/such/encoder"), qdrant=CollectionPlace(DEAD))
    for kind, place in (("bm25", at), ("dense", CollectionPlace(collection="new"))):
        with pytest.raises(UserError, match=r"takes a dense index|give url"):
            index(*made, kind=kind, qdrant=place)
    assert os.listdir(tmp_path) == ["c"]
    for _ in range(2):  # the second time all is up to date
        index(*made, dense=DenseOptions(encoder_folder, precision="fp32"), qdrant=at, device="cpu")
    passages = stored(CollectionPlace(None, tmp_path / "db", "out"))
    assert [passage.text for passage in passages] == [passage.text for passage in PASSAGES]
