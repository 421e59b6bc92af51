"""Dense retrieval: passages and queries as vectors of one sentence encoder, ranked by inner product."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from common.errors import ArtifactError, UserError
from common.records import Passage, Ranked
from harness.indexing.index_folder import Verify, is_built, open_index, recipe_of, write_index
from harness.indexing.passage_store import PassageStore, write_passages
from harness.runtime.progress import in_bytes, say, track

if TYPE_CHECKING:
    import numpy as np

    from harness.indexing.sentence_encoder import DType, SentenceEncoder
    from harness.indexing.vector_search import FaissIndex

_FLOAT_BYTES = 4


def build_dense(
    passages: Iterable[Passage],
    out: Path,
    encoder: "SentenceEncoder",
    chunk_passages: int = 4096,
    faiss_index: "FaissIndex" = "flat",
    nlist: int | None = None,
    hnsw_links: int = 32,
    overwrite: bool = False,
) -> None:
    """Build a dense index folder; nothing happens when the same one stands there.

    Under torchrun every process encodes its share, on its own GPU where there are several; the processes must share the
    disk.  A build that was stopped continues where it was (see `harness.indexing.corpus_encoding`).

    Args:
        passages: The corpus; of repeated ids the first counts.  Only rank 0 reads it.
        out: The index folder.
        encoder: Encodes them; its recipe is recorded and queries will need the same.
        chunk_passages: Passages encoded between two saves, at least 1.
        faiss_index: `flat` (exact), `ivf` or `hnsw`.
        nlist: Clusters of `ivf`; None: 4 times the square root of the number of passages.
        hnsw_links: Links per vector of `hnsw`.
        overwrite: Whether another index, or another unfinished build, may be replaced.

    Raises:
        UserError: If a parameter is out of range or `out` is taken.
        DataError: If the corpus is empty.
        ArtifactError: If the disk refuses, or (on ranks other than 0) if rank 0 failed.
    """
    from harness.indexing.corpus_encoding import chunk_count, discard, encode_chunks, partial_folder, read_chunks
    from harness.indexing.vector_search import write_vectors
    from harness.runtime.distributed import join_process_group

    if chunk_passages < 1:
        raise UserError(f"chunk_passages must be at least 1, got {chunk_passages}.")
    partial = partial_folder(out)
    processes = join_process_group()
    recipe: dict | None = None
    go = "failed"
    if processes.rank == 0:
        try:
            recipe = _prepare(
                passages, out, partial, encoder, chunk_passages, (faiss_index, nlist, hnsw_links), overwrite
            )
            go = "encode" if recipe is not None else "stands"
        finally:
            processes.broadcast(go)
    else:
        go = processes.broadcast(go)
    if go == "failed":
        raise ArtifactError(f"{out}: rank 0 could not begin the build; its own message says why.")
    if go == "stands":
        return
    store = PassageStore(partial)
    chunks = chunk_count(len(store), chunk_passages)
    vectors_bytes = len(store) * encoder.dimensions * _FLOAT_BYTES
    say(
        f"{out}: {len(store):,} passages x {encoder.dimensions} float32 = {in_bytes(vectors_bytes)} of vectors, "
        f"encoder {in_bytes(encoder.size_bytes)} on {encoder.device}, {chunks} chunks over {processes.size} process(es)."
    )
    encode_chunks(store, partial, encoder, chunk_passages, processes)
    processes.barrier()
    if processes.rank != 0 or recipe is None:
        return
    write_index(
        out,
        recipe,
        len(store),
        partial,
        lambda folder: write_vectors(
            folder,
            read_chunks(store, partial, encoder, chunk_passages),
            len(store),
            encoder.dimensions,
            recipe["vectors"],
        ),
        ["torch", "transformers", "numpy"],
        origin={"encoder": encoder.name},
    )
    discard(partial)
    say(f"{out}: dense index of {len(store):,} passages, {faiss_index}.")


def _prepare(
    passages: Iterable[Passage],
    out: Path,
    partial: Path,
    encoder: "SentenceEncoder",
    chunk_passages: int,
    kind: "tuple[FaissIndex, int | None, int]",
    overwrite: bool,
) -> dict | None:
    """Rank 0 alone: write the corpus, settle the recipe and take possession of the partial folder.

    Returns:
        The recipe, or None when this index stands already.
    """
    from harness.indexing.corpus_encoding import claim, discard
    from harness.indexing.vector_search import check_parameters

    fresh = not partial.exists()
    partial.mkdir(parents=True, exist_ok=True)
    try:
        count, corpus = write_passages(partial, track(passages, None, "reading passages"))
        recipe = recipe_of(
            "dense",
            corpus,
            encoder=encoder.recipe,
            dtype=encoder.dtype,
            vectors=check_parameters(kind[0], count, kind[1], kind[2]),
        )
        if is_built(out, recipe, overwrite):
            if fresh:
                discard(partial)
            return None
        claim(partial, {**recipe, "chunk_passages": chunk_passages}, overwrite)
    except BaseException:
        if fresh:
            discard(partial)
        raise
    return recipe


class DenseRetriever:
    """Finds the passages whose vectors are nearest to the query's.

    Args:
        index: Folder that `infer.py index --kind dense` wrote.
        device: Of the encoder: `auto`, `cpu`, `cuda` or `cuda:N`.
        encoder: Folder or hub id of the encoder, when it lies elsewhere than where the index was built; it must be the
            same one.
        index_device: Of FAISS: `auto`, `cpu`, `cuda` or `all` (split over all GPUs).
        dtype: Of the encoder: `float32`, or on a GPU `bfloat16`.
        batch_tokens: Tokens of a forward pass of the encoder; None chooses by device.
        nprobe: Clusters that an `ivf` index looks into; more finds more and takes longer.
        ef_search: Likewise, the breadth of the search of an `hnsw` index.
        verify: How the index files are checked: `full`, `size` or `off`.
        expect_corpus: Fingerprint of the corpus the index must be of; None takes any.

    Raises:
        MissingInputError: If there is no such index, or its encoder is nowhere.
        ArtifactError: If the index is corrupt, incomplete, no dense index, or of another corpus or encoder.
        UserError: If a device or a parameter is not possible here.
    """

    def __init__(
        self,
        index: Path,
        device: str = "auto",
        encoder: str | None = None,
        index_device: str = "auto",
        dtype: "DType" = "float32",
        batch_tokens: int | None = None,
        nprobe: int = 16,
        ef_search: int = 64,
        verify: Verify = "full",
        expect_corpus: str | None = None,
    ) -> None:
        from harness.indexing.sentence_encoder import SentenceEncoder
        from harness.indexing.vector_search import Vectors

        self.index = open_index(Path(index), "dense", verify, expect_corpus)
        recipe, name = self.index.recipe, encoder or self.index.origin["encoder"]
        settings = {key: recipe["encoder"][key] for key in ("max_tokens", "query_prefix", "passage_prefix")}
        self.encoder = SentenceEncoder(name, device, dtype=dtype, batch_tokens=batch_tokens, **settings)
        if self.encoder.recipe != recipe["encoder"]:
            raise ArtifactError(
                f"{index} was made by another encoder than {name} (its files differ). Name that one with --encoder, or "
                f"build the index again: infer.py index --encoder {name} --out {index} --overwrite true."
            )
        self._passages = PassageStore(self.index.folder)
        self._vectors = Vectors(self.index.folder, recipe["vectors"], index_device, nprobe, ef_search)
        say(
            f"{index}: {self.index.passages:,} passages, vectors {in_bytes(self._vectors.vectors_ND.nbytes)}, "
            f"encoder {in_bytes(self.encoder.size_bytes)} on {self.encoder.device}."
        )

    def encode_queries(self, queries: Sequence[str]) -> "np.ndarray":
        """Embeddings of queries, float32 (Q, D): the first half of `search`, for whoever times the stages."""
        return self.encoder.encode_queries(queries)

    def search_vectors(self, queries_QD: "np.ndarray", k: int) -> list[list[Ranked]]:
        """The k nearest passages of each query vector: the second half of `search`.

        Raises:
            UserError: If k is below 1.
        """
        return [
            [Ranked(self._passages[position], score) for position, score in found]
            for found in self._vectors.search(queries_QD, k)
        ]

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """The k nearest passages of each query, best first, equal scores in the order of the corpus.

        An empty query finds nothing; a k beyond the corpus gives all of it.

        Raises:
            UserError: If k is below 1.
        """
        asked = [row for row, query in enumerate(queries) if query.strip()]
        found = self.search_vectors(self.encode_queries([queries[row] for row in asked]), k)
        results: list[list[Ranked]] = [[] for _ in queries]
        for row, ranked in zip(asked, found, strict=True):
            results[row] = ranked
        return results
