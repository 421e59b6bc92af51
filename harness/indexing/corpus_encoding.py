"""Corpus encoding in chunks: process r of W encodes chunks r, r + W, r + 2W, ...; an interrupted build resumes.

<out>.partial/recipe.json       recipe of the index; a build with another recipe does not reuse the chunks
<out>.partial/passages.jsonl    the corpus, with its table of offsets
<out>.partial/chunk-00012.npy   embeddings of passages 12 C to 13 C - 1, float32 (C, D), complete or absent
<out>.partial/vectors.faiss     an approximate index, trained, with some of the vectors
                                (`harness.indexing.faiss_building`)
"""

import shutil
from collections.abc import Iterator
from functools import partial as partial_function
from pathlib import Path

import numpy as np

from common.errors import ArtifactError, UserError
from common.files import read_json, write_atomically, write_json
from common.outputs import OutputFolder
from common.progress import say, track
from datamodules.formats.row_counts import CUT_PASSAGE, RowCounts
from harness.indexing.faiss_building import UNFINISHED
from harness.indexing.index_folder import differs_in_content_only
from harness.indexing.known_vectors import KnownVectors
from harness.indexing.passage_store import OFFSETS, OTHER_IDS, PASSAGES, PassageStore, indexed_text
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.runtime.distributed import ProcessGroup
from harness.runtime.provenance import differences

_RECIPE = "recipe.json"
_CHECKED_AT_ONCE = 4096
_SHOWN = 60  # characters
PARTIAL = OutputFolder(
    "`infer.py index`",
    "an unfinished build",
    lambda _: [_RECIPE, PASSAGES, OFFSETS, OTHER_IDS, "chunk-*.npy", UNFINISHED],
)


def partial_folder(out: Path) -> Path:
    """Folder for the unfinished build of an index at `out`."""
    return out.with_name(f"{out.name}.partial")


def start_or_resume(partial: Path, recipe: dict, overwrite: bool, of_documents: bool = False) -> None:
    """Record the recipe in a partial folder; keep its chunks if they were encoded for the same recipe.

    Args:
        partial: The folder.
        recipe: Of the index to build.
        overwrite: Whether an unfinished build of another recipe may be replaced.
        of_documents: Whether the corpus is the segments of documents: if only these have changed, the build starts
            over.

    Raises:
        UserError: If it holds an unfinished build of another recipe, without `overwrite`.
        ArtifactError: If the recorded recipe is corrupt.
    """
    record = partial / _RECIPE
    advice = f"To discard it, type --overwrite true, or remove {partial}."
    if record.is_file():
        recorded = read_json(record, advice)
        if recorded == recipe:
            say(f"{partial}: continuing a build with {len(list(partial.glob('chunk-*.npy')))} chunks encoded.")
            return
        if not overwrite and not (of_documents and differs_in_content_only(recorded, recipe)):
            raise UserError(
                f"{partial} holds an unfinished build that differs in: {differences(recorded, recipe)}. "
                f"Finish it with its own options. {advice}"
            )
    for left in (*partial.glob("chunk-*.npy"), *partial.glob(UNFINISHED)):
        left.unlink()
    write_json(record, recipe)


def encode_chunks(
    store: PassageStore,
    partial: Path,
    encoder: SentenceEncoder,
    chunk_passages: int,
    processes: ProcessGroup,
    known: KnownVectors,
    counts: RowCounts | None = None,
) -> None:
    """Encode this process's missing chunks.

    Args:
        store: The passages.
        partial: Receives the chunks.
        encoder: Encodes them.
        chunk_passages: Passages of a chunk.
        processes: All of them call this.
        known: Vectors that need not be computed.
        counts: Counts the passages that were cut by any process; not those of an earlier one, or whose vectors are
            known.

    Raises:
        UserError: If the encoder returns a vector that is not finite.
        ArtifactError: If writing to disk fails.
    """
    assigned = range(processes.rank, chunk_count(len(store), chunk_passages), processes.size)
    missing = [i for i in assigned if _load(partial, i, _rows(store, i, chunk_passages), encoder) is None]
    cut, first = 0, ""

    def encode(texts: list[str]) -> np.ndarray:
        nonlocal cut, first
        vectors_ND = encoder.encode_passages(texts)
        if encoder.cut_rows:
            cut, first = cut + len(encoder.cut_rows), first or texts[encoder.cut_rows[0]]
        return vectors_ND

    for chunk in track(missing, len(missing), f"encoding chunks of {chunk_passages:,} passages"):
        texts = [indexed_text(store[position]) for position in _rows(store, chunk, chunk_passages)]
        embeddings_CD = known.completed(texts, encode)
        if not np.isfinite(embeddings_CD).all():
            raise UserError(
                f"{encoder.name} returns vectors that are not finite. Try --dense.precision fp32 or another encoder."
            )
        write_atomically(_path(partial, chunk), partial_function(_save, embeddings_CD))
    for number, text in processes.gathered((cut, first)):
        if counts is not None and number and processes.rank == 0:
            counts.add(CUT_PASSAGE, shortened(text), number)


def refuse_long_passages(store: PassageStore, encoder: SentenceEncoder, counts: RowCounts) -> None:
    """Raise the DataError of strict counts if the encoder cuts a passage, before any is encoded."""
    for start in range(0, len(store), _CHECKED_AT_ONCE):
        texts = [indexed_text(passage) for passage in store.part(start, min(start + _CHECKED_AT_ONCE, len(store)))]
        for row in encoder.longer(texts):
            counts.add(CUT_PASSAGE, shortened(texts[row]))


def shortened(text: str) -> str:
    """The beginning of a text, for a message."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN].rsplit(" ", 1)[0] + " ...")


def read_chunks(
    store: PassageStore, partial: Path, encoder: SentenceEncoder, chunk_passages: int
) -> Iterator[np.ndarray]:
    """All chunks in order, float32 (C, D) each.

    Raises:
        ArtifactError: If one is missing: the processes do not share this folder.
    """
    for chunk in range(chunk_count(len(store), chunk_passages)):
        embeddings_CD = _load(partial, chunk, _rows(store, chunk, chunk_passages), encoder)
        if embeddings_CD is None:
            raise ArtifactError(
                f"{_path(partial, chunk)} is missing although all processes finished. "
                "Choose an --out on a file system that all nodes share, and run again: existing chunks are reused."
            )
        yield embeddings_CD


def discard(partial: Path) -> None:
    """Delete a partial folder."""
    shutil.rmtree(partial, ignore_errors=True)


def chunk_count(passages: int, chunk_passages: int) -> int:
    """Number of chunks for a number of passages."""
    return -(-passages // chunk_passages)


def _rows(store: PassageStore, chunk: int, chunk_passages: int) -> range:
    return range(chunk * chunk_passages, min((chunk + 1) * chunk_passages, len(store)))


def _path(partial: Path, chunk: int) -> Path:
    return partial / f"chunk-{chunk:05d}.npy"


def _save(array: np.ndarray, path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def _load(partial: Path, chunk: int, rows: range, encoder: SentenceEncoder) -> np.ndarray | None:
    """A chunk's embeddings; None if the file is missing, corrupt or of another shape, so that it is encoded again."""
    try:
        embeddings_CD = np.load(_path(partial, chunk), mmap_mode="r", allow_pickle=False)
    except (FileNotFoundError, ValueError, EOFError):
        return None
    return embeddings_CD if embeddings_CD.shape == (len(rows), encoder.dimensions) else None
