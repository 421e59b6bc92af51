"""Qdrant collections: an index folder's passages and vectors in a vector database, for corpora beyond one machine.

A point's id is the position of its passage; its payload is the passage as in `passages.jsonl`. The collection's
metadata hold the recipe of the index, as an index folder's manifest does, and whether the upload was completed.

Shape legend: N passages, D dimensions, Q queries, K candidates.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from common.errors import ArtifactError, MissingInputError, UnavailableError, UserError
from common.progress import say, track
from common.records import Passage
from harness.indexing.exact_rescoring import Candidates
from harness.indexing.index_folder import Index
from harness.indexing.passage_store import TEXT_FORMAT, PassageStore
from harness.indexing.qdrant_place import CollectionPlace
from harness.indexing.vector_search import open_vectors
from harness.runtime.provenance import differences
from harness.runtime.services import one_line

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

FORMAT = 1  # version of payload and metadata
BATCH = 256  # points of one request: 400 KB of vectors of 384 dimensions, and their passages
_READ = 1000  # passages of one request
_KEY = "lightning_rag"  # of our metadata


@contextmanager
def answers(place: CollectionPlace) -> Iterator[None]:
    """Turn errors of requests into lines for the user.

    Raises:
        UnavailableError: If no server answers, or it refuses the request.
    """
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

    try:
        yield
    except ResponseHandlingException as error:
        raise UnavailableError(
            f"no Qdrant server answers at {place.url} ({one_line(str(error.source))}). Start one, for example "
            "docker run -p 6333:6333 qdrant/qdrant, or correct the url."
        ) from error
    except UnexpectedResponse as error:
        cure = ""
        if error.status_code in (401, 403):
            cure = " Export its API key, and name the variable with key_variable."
        body = one_line((error.content or b"").decode("utf-8", "replace"))
        raise UnavailableError(f"{place}: Qdrant refuses the request: {error.status_code} {body}.{cure}") from error


class CollectionPassages(Sequence[Passage]):
    """The passages of a collection, read by position, or one request after another in order."""

    def __init__(self, client: "QdrantClient", place: CollectionPlace, count: int) -> None:
        self._client, self._place, self._count = client, place, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, position: int) -> Passage:  # type: ignore[override]  # no slices
        return self._read(range(position, position + 1))[0]

    def __iter__(self) -> Iterator[Passage]:
        for start in range(0, self._count, _READ):
            yield from self._read(range(start, min(start + _READ, self._count)))

    def _read(self, positions: range) -> list[Passage]:
        with answers(self._place):
            records = self._client.retrieve(self._place.name, [*positions], with_payload=True)
        payloads = {record.id: record.payload for record in records}
        if missing := set(positions) - payloads.keys():
            raise ArtifactError(f"{self._place} lacks point {min(missing)}. Upload it again, with --overwrite true.")
        return [Passage.from_row(payloads[position] or {}) for position in positions]


@dataclass(frozen=True)
class CollectionIndex(Index):
    """A collection as an index: its `folder` is its name in reports."""

    stored: Sequence[Passage]  # given, not opened at first use


def _metadata(client: "QdrantClient", place: CollectionPlace) -> dict[str, Any] | None:
    """Our record in a collection; None without the collection.  ArtifactError if nothing is recorded."""
    with answers(place):
        if not client.collection_exists(place.name):
            return None
        recorded = (client.get_collection(place.name).config.metadata or {}).get(_KEY)
    if not isinstance(recorded, dict):
        raise ArtifactError(f"{place} was not written by infer.py index: not used. Choose another collection.")
    return recorded


def check_place(place: CollectionPlace) -> None:
    """Refuse, before an index is built, a place to which it cannot be uploaded.  Errors as `upload`."""
    with closing(place.connect()) as client:
        _metadata(client, place)


def upload(index: Index, place: CollectionPlace, overwrite: bool = False) -> None:
    """Write a dense index folder into a collection, unless that is up to date; an interrupted upload goes on.

    Args:
        index: The folder, opened.
        place: Of the collection.
        overwrite: Whether a collection of another recipe may be replaced.

    Raises:
        UnavailableError: If the server does not answer.
        UserError: If the collection holds another index, without `overwrite`.
        ArtifactError: If the collection was not written by this function, or does not hold all points at the end.
    """
    from qdrant_client import models

    with closing(place.connect()) as client:
        recorded = _metadata(client, place)
        wanted = {"format": FORMAT, "recipe": index.recipe, "passages": index.passages, "origin": index.origin}
        if recorded is not None and recorded["recipe"] != index.recipe:
            if not overwrite:
                raise UserError(
                    f"{place} holds another index (differs in: {differences(recorded['recipe'], index.recipe)}). "
                    "Choose another collection, or replace it with --overwrite true."
                )
            with answers(place):
                client.delete_collection(place.name)
            recorded = None
        vectors_ND = open_vectors(index.folder)
        with answers(place):
            if recorded is None:
                client.create_collection(
                    place.name,
                    models.VectorParams(size=vectors_ND.shape[1], distance=models.Distance.DOT, on_disk=True),
                    on_disk_payload=True,
                    metadata={_KEY: {**wanted, "complete": False}},
                )
            elif recorded["complete"]:
                say(f"{place}: the collection is up to date ({index.passages:,} passages, same recipe).")
                return
            # points are written in order, batch by batch
            done = client.count(place.name, exact=True).count // BATCH * BATCH
            left = PassageStore(index.folder).part(done, index.passages)
            shown = track(left, index.passages - done, f"uploading passages to {place}")
            rows, ids = (passage.row for passage in shown), range(done, index.passages)
            client.upload_collection(place.name, vectors_ND[done:], rows, ids, BATCH, wait=True)
            held = client.count(place.name, exact=True).count
            if held != index.passages:
                raise ArtifactError(
                    f"{place} holds {held:,} of {index.passages:,} points: some were deleted. Type --overwrite true."
                )
            client.update_collection(place.name, metadata={_KEY: {**wanted, "complete": True}})
    say(f"{place}: {index.passages:,} passages x {vectors_ND.shape[1]} float32.")


class QdrantVectors:
    """An uploaded index, opened for search.

    Args:
        place: Of the collection.
        exact: Whether all vectors are searched instead of the graph.
        hnsw_ef: Candidates kept during the graph search; None: the server's choice.

    Raises:
        MissingInputError: If there is no such collection.
        ArtifactError: If it is incomplete, of another format or text format, or not written by `upload`.
        UnavailableError: If the server does not answer.
    """

    def __init__(self, place: CollectionPlace, exact: bool, hnsw_ef: int | None) -> None:
        self.place, self.client = place, place.connect()
        recorded = _metadata(self.client, place)
        again = f"Type infer.py index --qdrant.url URL --qdrant.collection {place.name} again."
        if recorded is None:
            raise MissingInputError(f"{place}: no such collection. Type infer.py index --qdrant.url URL.")
        if not recorded["complete"]:
            raise ArtifactError(f"{place} is not complete: its upload was interrupted. {again}")
        recipe = recorded["recipe"]
        built, own = f"{recorded['format']}, text {recipe['text']!r}", f"{FORMAT}, text {TEXT_FORMAT!r}"
        if built != own:
            raise ArtifactError(f"{place} has format {built}, this version reads {own}. {again} --overwrite true.")
        passages = CollectionPassages(self.client, place, recorded["passages"])
        self.index = CollectionIndex(Path(str(place)), recipe, recorded["passages"], recorded["origin"], passages)
        self._parameters: dict[str, Any] = {"exact": exact, "hnsw_ef": hnsw_ef}

    def candidates(
        self, queries_QD: np.ndarray, found: dict[int, Passage], rows: np.ndarray, wanted: int
    ) -> Iterator[Candidates]:
        """Positions and vectors of the passages nearest to the queries in some rows.

        The passages are added to `found`.
        """
        from qdrant_client import models

        requests = [
            models.QueryRequest(
                query=query_D.tolist(),
                limit=wanted,
                params=models.SearchParams(**self._parameters),
                with_payload=True,
                with_vector=True,
            )
            for query_D in queries_QD[rows]
        ]
        with answers(self.place):
            responses = self.client.query_batch_points(self.place.name, requests)
        for response in responses:
            found.update({int(point.id): Passage.from_row(point.payload or {}) for point in response.points})
            positions = np.array([int(point.id) for point in response.points], dtype=np.int64)
            vectors_KD = np.array([point.vector for point in response.points], dtype=np.float32)
            yield positions, vectors_KD.reshape(len(positions), queries_QD.shape[1])
