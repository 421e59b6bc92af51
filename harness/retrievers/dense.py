"""Dense retrieval: passages and queries are embedded by one sentence encoder and ranked by inner product."""

import shutil
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from common.errors import ArtifactError
from common.files import scratch_folder
from common.outputs import partial_folder
from common.progress import say, track
from common.ranges import PositiveInt, Precision
from common.records import Passage, Ranked, as_texts
from harness.indexing.corpus_encoding import (
    PARTIAL,
    encode_chunks,
    encoded_chunks,
    read_vectors,
    refuse_long_passages,
    start_or_resume,
)
from harness.indexing.faiss_devices import check_gpu
from harness.indexing.faiss_library import FLAT, empty_index, factory_string
from harness.indexing.index_folder import INDEX, Build, Index, Verify, is_built, open_index, recipe_of, write_index
from harness.indexing.known_vectors import KnownVectors, vectors_of_index
from harness.indexing.passage_store import PassageStore, write_passages
from harness.indexing.vector_search import Vectors, write_vectors
from harness.runtime.distributed import join_process_group
from harness.runtime.provenance import differences

if TYPE_CHECKING:
    from harness.indexing.sentence_encoder import SentenceEncoder


def build_dense(
    passages: Iterable[Passage],
    out: Path,
    encoder: "SentenceEncoder",
    chunk_passages: int = 4096,
    faiss_index: str = FLAT,
    build: Build = Build(),  # noqa: B008 (frozen)
) -> None:
    """Build a dense index folder, unless it is up to date.

    Under torchrun every process encodes its share of the corpus, each on its own GPU; all processes must share the file
    system.  An interrupted build resumes (see `harness.indexing.corpus_encoding`).  Vectors of texts that the index at
    `out` has by the same encoder are taken from it.

    Args:
        passages: The corpus; of passages with the same id only the first is indexed.  Only rank 0 reads it.
        out: The index folder.
        encoder: Encodes the passages; queries must be encoded by the same encoder, so its recipe is recorded.
        chunk_passages: Passages per saved chunk, at least 1.
        faiss_index: `flat` (exact), or a string of `faiss.index_factory`, such as `IVF4096,Flat` or `HNSW32`.
        build: How it is built.

    Raises:
        UserError: If the kind of FAISS index does not fit the corpus, `out` holds something else, or another process is
            writing it.
        DataError: If the corpus is empty.
        ArtifactError: If writing to disk fails, or (on ranks other than 0) if rank 0 failed.
    """
    partial = partial_folder(out)
    processes = join_process_group()
    with ExitStack() as held:
        recipe: dict | None = None
        status = "failed"
        if processes.rank == 0:
            try:
                held.enter_context(INDEX.locked(out))  # for all ranks, until the index is written
                recipe = _prepare(passages, out, partial, encoder, faiss_index, build)
                status = "encode" if recipe is not None else "up to date"
            finally:
                processes.broadcast(status)
        else:
            status = processes.broadcast(status)
        if status == "failed":
            raise ArtifactError(f"{out}: rank 0 could not start the build; see its error message.")
        if status == "up to date":
            return
        store = PassageStore(partial)
        say(
            f"{out}: {len(store):,} passages x {encoder.dimensions} float32, encoder on {encoder.device} in "
            f"{encoder.dtype}, over {processes.size} process(es)."
        )
        indexed = vectors_of_index(out, encoder)
        known = KnownVectors([*indexed, *encoded_chunks(partial, encoder)])
        encode_chunks(store, partial, encoder, chunk_passages, processes, known, build.counts)
        processes.barrier()
        if processes.rank != 0 or recipe is None:
            return
        vectors = read_vectors(store, KnownVectors([*indexed, *encoded_chunks(partial, encoder)]), partial)
        write_index(
            out,
            recipe,
            store,
            lambda folder: write_vectors(folder, vectors, len(store), encoder.dimensions, faiss_index),
            ["torch", "transformers", "numpy"],
            build.source,
            encoder=encoder.name,
        )
        shutil.rmtree(partial, ignore_errors=True)
        say(f"{out}: dense index of {len(store):,} passages, {faiss_index}.")


def _prepare(
    passages: Iterable[Passage], out: Path, partial: Path, encoder: "SentenceEncoder", faiss_index: str, build: Build
) -> dict | None:
    """On rank 0: write the corpus, determine the recipe and record it in the partial folder.

    Returns:
        The recipe, or None if the index is up to date.
    """
    if faiss_index != FLAT:
        empty_index(faiss_index, encoder.dimensions)
    PARTIAL.check(partial)
    with scratch_folder(out) as staging:
        corpus = write_passages(staging, track(passages, None, "reading passages"), build.counts)
        made = {"encoder": encoder.recipe, "dtype": encoder.dtype, "vectors": {"faiss_index": faiss_index}}
        recipe = recipe_of("dense", corpus, build.source, **made)
        if build.counts is not None and build.counts.strict:
            refuse_long_passages(PassageStore(staging), encoder, build.counts)
        # `auto` is another precision on another machine: an index that exists is good in either
        dtypes = ("float32", "bfloat16") if encoder.precision == "auto" else ()
        if is_built(out, recipe, build, [{**recipe, "dtype": dtype} for dtype in dtypes]):
            return None
        if faiss_index != FLAT:
            empty_index(faiss_index, encoder.dimensions, corpus.passages)
        start_or_resume(partial, recipe, build, staging)
    return recipe


class VectorRetriever:
    """Base class of vector search: queries are embedded by the encoder of the index, then searched.

    Args:
        encoder: Folder or hub id of the encoder; where it was at build time when None.
        device: auto, cpu, cuda or cuda:N.
        precision: auto, fp32 or bf16.
        batch_tokens: Tokens per forward pass; None: chosen by device.
        again: What to do if it is another one, besides naming the right one.
    """

    def __init__(
        self, encoder: str | None, device: str, precision: Precision, batch_tokens: PositiveInt | None, again: str
    ) -> None:
        self._encoder, self._again = (encoder, device, precision, batch_tokens), again

    @property
    def index(self) -> Index:
        """The index that is searched."""
        raise NotImplementedError

    @cached_property
    def encoder(self) -> "SentenceEncoder":
        """The encoder that the index was built with, under its settings.

        Raises:
            MissingInputError: If it is not found.
            ArtifactError: If it is another one.
        """
        from harness.indexing.sentence_encoder import SentenceEncoder

        name, device, precision, batch_tokens = self._encoder
        name, recorded = name or self.index.origin["encoder"], self.index.recipe["encoder"]
        settings = {key: recorded[key] for key in ("max_tokens", "query_prefix", "passage_prefix")}
        encoder = SentenceEncoder(name, device, precision=precision, batch_tokens=batch_tokens, **settings)
        if encoder.recipe != recorded:
            files = {"sha256": ""}  # which differ wherever a setting does
            by = differences({**recorded, **files}, {**encoder.recipe, **files}) or "the files"
            raise ArtifactError(
                f"{self.index.folder} was built with another encoder than {name}, or read by another release (differs "
                f"in: {by}). Name that encoder with --encoder, or {self._again}."
            )
        say(f"{self.index.folder}: encoder on {encoder.device} in {encoder.dtype}.")
        return encoder

    @property
    def prefix_depth(self) -> float:
        """Up to this depth, a search for fewer passages finds the beginning of the list."""
        return inf if factory_string(self.index.recipe["vectors"]) == FLAT else 0

    def search_vectors(self, queries_QD: np.ndarray, k: int) -> list[list[Ranked]]:
        """The k nearest passages of each query vector: the second step of `search`."""
        raise NotImplementedError

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """The k nearest passages of each query, best first; ties in the order of the corpus.

        An empty query returns an empty list; a k above the corpus size returns all passages.
        """
        queries = as_texts(queries)
        queries_QD = self.encoder.encode_queries([query for query in queries if query.strip()])
        found = iter(self.search_vectors(queries_QD, k))
        return [next(found) if query.strip() else [] for query in queries]


class DenseRetriever(VectorRetriever):
    """Retrieves the passages with the greatest inner product between passage and query vector.

    Args:
        index: Folder that `infer.py index --kind dense` wrote.
        device: Of the encoder: `auto`, `cpu`, `cuda` or `cuda:N`.
        encoder: Folder or hub id of the encoder, if it has moved since the index was built; it must have the same
            files.
        index_device: Of FAISS: `auto` (a GPU if the index fits its free memory), `cpu`, `cuda` or `all` (split over all
            GPUs).
        precision: Of the encoder: `auto`, `fp32` or `bf16`.
        batch_tokens: Tokens per forward pass of the encoder; None: chosen by device.
        nprobe: Number of clusters searched of an IVF index: more clusters give higher recall and take longer.
        ef_search: efSearch of an HNSW index: greater values give higher recall and take longer.
        verify: How the index files are verified: `sampled` (parts of large files), `full` or `off`.
        k_factor: Candidates of an index of compressed vectors for each passage asked for, whose scores are computed
            exactly: more give higher recall.

    Raises:
        MissingInputError: If the index or its encoder is not found.
        ArtifactError: If the index is corrupt, incomplete, not a dense index, or of another encoder.
        UserError: If a device is not possible here.
    """

    def __init__(
        self,
        index: Path,
        device: str = "auto",
        encoder: str | None = None,
        index_device: Literal["auto", "cpu", "cuda", "all"] = "auto",
        precision: Precision = "auto",
        batch_tokens: PositiveInt | None = None,
        nprobe: PositiveInt = 16,
        ef_search: PositiveInt = 64,
        verify: Verify = "sampled",
        k_factor: PositiveInt = 10,
    ) -> None:
        self.folder, self.verify = Path(index), verify
        again = f"build the index again: infer.py index --dense.encoder NAME --out {index} --overwrite true"
        super().__init__(encoder, device, precision, batch_tokens, again)
        if index_device in ("cuda", "all"):
            check_gpu(index_device)
        self._search = (index_device, nprobe, ef_search, k_factor)

    def load(self) -> None:
        """Open the index and load its encoder."""
        _ = self.encoder, self.index.stored, self._vectors

    @cached_property
    def index(self) -> Index:
        """The index folder, verified."""
        return open_index(self.folder, "dense", self.verify)

    @cached_property
    def _vectors(self) -> Vectors:
        vectors = Vectors(self.index.folder, factory_string(self.index.recipe["vectors"]), *self._search)
        say(f"{self.folder}: {self.index.passages:,} passages, dense.")
        return vectors

    def search_vectors(self, queries_QD: np.ndarray, k: int) -> list[list[Ranked]]:
        """The k nearest passages of each query vector: the second step of `search`."""
        return [
            [Ranked(self.index.stored[position], score) for position, score in hits]
            for hits in self._vectors.search(queries_QD, k)
        ]

    def similarities(self, query_D: np.ndarray) -> np.ndarray:
        """Inner product of a query vector with every passage of the index, float64 (N,)."""
        return self._vectors.similarities(query_D)
