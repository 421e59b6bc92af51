"""Encoding a corpus in chunks: every process of a job takes each W-th chunk, and what a killed build had finished is not
done again.

    <out>.partial/recipe.json       what is being built; other work is never continued with it
    <out>.partial/passages.jsonl    the corpus, with its table of offsets
    <out>.partial/chunk-00012.npy   embeddings of passages 12 C to 13 C - 1, float32 (C, D), whole or absent"""

import shutil
from collections.abc import Iterator
from functools import partial as partial_function
from pathlib import Path

import numpy as np

from common.errors import ArtifactError, UserError
from common.files import read_json, write_atomically, write_json
from harness.indexing.passage_store import PassageStore, indexed_text
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.runtime.distributed import ProcessGroup
from harness.runtime.progress import say, track
from harness.runtime.provenance import differences

_RECIPE = "recipe.json"


def partial_folder(out: Path) -> Path:
    """Where an index at `out` grows until it is whole."""
    return out.with_name(f"{out.name}.partial")


def claim(partial: Path, recipe: dict, overwrite: bool) -> None:
    """Make sure that chunks lying in a partial folder belong to this recipe.

    Raises:
        UserError: If another build was left unfinished there, without `overwrite`.
        ArtifactError: If its record is corrupt.
    """
    record = partial / _RECIPE
    discard = f"To discard it, type --overwrite true, or remove {partial}."
    if record.is_file():
        left = read_json(record, discard)
        if left == recipe:
            say(f"{partial}: continuing a build with {len(list(partial.glob('chunk-*.npy')))} chunks encoded.")
            return
        if not overwrite:
            raise UserError(
                f"{partial} holds an unfinished build that differs in: {differences(left, recipe)}. "
                f"Finish it as it was begun. {discard}"
            )
    for chunk in partial.glob("chunk-*.npy"):
        chunk.unlink()
    write_json(record, recipe)


def encode_chunks(
    store: PassageStore, partial: Path, encoder: SentenceEncoder, chunk_passages: int, processes: ProcessGroup
) -> None:
    """Encode this process's chunks that are not there yet.

    Raises:
        UserError: If the encoder gives a vector that is not finite.
        ArtifactError: If the disk refuses.
    """
    mine = range(processes.rank, chunk_count(len(store), chunk_passages), processes.size)
    missing = [chunk for chunk in mine if _load(partial, chunk, _rows(store, chunk, chunk_passages), encoder) is None]
    for chunk in track(missing, len(missing), f"encoding chunks of {chunk_passages:,} passages"):
        texts = [indexed_text(store[position]) for position in _rows(store, chunk, chunk_passages)]
        embeddings_CD = encoder.encode_passages(texts)
        if not np.isfinite(embeddings_CD).all():
            raise UserError(
                f"{encoder.name} gives vectors that are not finite. Try --dtype float32 or another encoder."
            )
        write_atomically(_path(partial, chunk), partial_function(_save, embeddings_CD))


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
                f"{_path(partial, chunk)} is missing though all processes finished. "
                "Choose an --out that every node shares, and start again: what is there will be used."
            )
        yield embeddings_CD


def discard(partial: Path) -> None:
    """Remove a partial folder."""
    shutil.rmtree(partial, ignore_errors=True)


def chunk_count(passages: int, chunk_passages: int) -> int:
    """Chunks that hold so many passages."""
    return -(-passages // chunk_passages)


def _rows(store: PassageStore, chunk: int, chunk_passages: int) -> range:
    return range(chunk * chunk_passages, min((chunk + 1) * chunk_passages, len(store)))


def _path(partial: Path, chunk: int) -> Path:
    return partial / f"chunk-{chunk:05d}.npy"


def _save(array: np.ndarray, path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def _load(partial: Path, chunk: int, rows: range, encoder: SentenceEncoder) -> np.ndarray | None:
    """A chunk's embeddings; None if it is missing or not what it should be, so that it is encoded again."""
    try:
        embeddings_CD = np.load(_path(partial, chunk), mmap_mode="r", allow_pickle=False)
    except (FileNotFoundError, ValueError, EOFError):
        return None
    return embeddings_CD if embeddings_CD.shape == (len(rows), encoder.dimensions) else None
