"""Corpus encoding in chunks: process r of W encodes chunks r, r + W, r + 2W, ...; an interrupted build resumes.

<out>.partial/recipe.json       recipe of the index and origin of its corpus; a build with other ones does not reuse the
                                chunks
<out>.partial/passages.jsonl    the corpus, with its table of offsets
<out>.partial/chunk-00012.npy   passages 12 C to 13 C - 1, (C,) pairs of a text's key and its embedding, float32 (D,);
                                complete or absent
<out>.partial/earlier-00007.npy the same of a build of what the corpus held earlier
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
from harness.indexing.index_folder import CorpusSource, differs_in_content_only
from harness.indexing.known_vectors import KEY_BYTES, KnownVectors, text_keys
from harness.indexing.passage_store import OFFSETS, OTHER_IDS, PASSAGES, PassageStore, indexed_text
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.runtime.distributed import ProcessGroup
from harness.runtime.provenance import differences

_RECIPE, _CHUNKS, _EARLIER = "recipe.json", "chunk-*.npy", "earlier-*.npy"
_CHECKED_AT_ONCE = 4096
_SHOWN = 60  # characters
PARTIAL = OutputFolder(
    "`infer.py index`",
    "an unfinished build",
    lambda _: [_RECIPE, PASSAGES, OFFSETS, OTHER_IDS, _CHUNKS, _EARLIER, UNFINISHED],
)


def partial_folder(out: Path) -> Path:
    """Folder for the unfinished build of an index at `out`."""
    return out.with_name(f"{out.name}.partial")


def start_or_resume(partial: Path, recipe: dict, overwrite: bool, source: CorpusSource | None = None) -> None:
    """Record the recipe in a partial folder; keep its chunks if they were encoded for the same recipe.

    Args:
        partial: The folder.
        recipe: Of the index to build.
        overwrite: Whether an unfinished build of another recipe may be replaced.
        source: Where the corpus comes from: if only what it holds has changed, the chunks stay as `earlier_chunks`.

    Raises:
        UserError: If it holds an unfinished build of another recipe, without `overwrite`.
        ArtifactError: If the recorded recipe is corrupt.
    """
    record, origin = partial / _RECIPE, source.origin if source is not None else None
    advice = f"To discard it, type --overwrite true, or remove {partial}."
    chunks, changed = sorted(partial.glob(_CHUNKS)), False
    if record.is_file():
        recorded = read_json(record, advice)
        same_source = recorded.pop("origin", None) == origin and source is not None
        if recorded == recipe:
            say(f"{partial}: continuing a build with {len(chunks)} chunks encoded.")
            return
        changed = same_source and differs_in_content_only(recorded, recipe)
        if not overwrite and not changed:
            raise UserError(
                f"{partial} holds an unfinished build that differs in: {differences(recorded, recipe)}. "
                f"Finish it with its own options. {advice}"
            )
    (partial / UNFINISHED).unlink(missing_ok=True)
    earlier = list(partial.glob(_EARLIER))
    if changed:
        say(f"{partial}: the corpus has changed; vectors of {len(chunks) + len(earlier)} encoded chunks are taken on.")
        for number, chunk in enumerate(chunks, len(earlier)):
            chunk.rename(partial / _EARLIER.replace("*", f"{number:05d}"))
    else:
        for left in (*chunks, *earlier):
            left.unlink()
    write_json(record, {**recipe, "origin": origin})


def earlier_chunks(partial: Path, encoder: SentenceEncoder) -> list[tuple[np.ndarray, np.ndarray]]:
    """Keys and vectors of a build of what the corpus held earlier, [(C,), float32 (C, D)]."""
    chunks = (_load(path, encoder) for path in sorted(partial.glob(_EARLIER)))
    return [(chunk["key"], chunk["vector"]) for chunk in chunks if chunk is not None]


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
    missing = [i for i in assigned if _vectors(store, partial, i, chunk_passages, encoder) is None]
    taken, encoded, cut, first = 0, 0, 0, ""

    def encode(texts: list[str]) -> np.ndarray:
        nonlocal encoded, cut, first
        vectors_ND = encoder.encode_passages(texts)
        encoded += len(texts)
        if encoder.cut_rows:
            cut, first = cut + len(encoder.cut_rows), first or texts[encoder.cut_rows[0]]
        return vectors_ND

    for chunk in track(missing, len(missing), f"encoding chunks of {chunk_passages:,} passages"):
        texts = [indexed_text(store[position]) for position in _rows(store, chunk, chunk_passages)]
        chunk_C = np.empty(len(texts), _dtype(encoder))
        chunk_C["key"], chunk_C["vector"] = text_keys(texts), known.completed(texts, encode)
        if not np.isfinite(chunk_C["vector"]).all():
            raise UserError(
                f"{encoder.name} returns vectors that are not finite. Try --dense.precision fp32 or another encoder."
            )
        write_atomically(_path(partial, chunk), partial_function(_save, chunk_C))
        taken += len(texts)
    of_all = processes.gathered((taken - encoded, encoded, cut, first))
    for *_, number, text in of_all:
        if counts is not None and number and processes.rank == 0:
            counts.add(CUT_PASSAGE, shortened(text), number)
    if len(known):
        taken, encoded = sum(each[0] for each in of_all), sum(each[1] for each in of_all)
        say(f"{partial}: {taken:,} vectors were taken from what was indexed before, {encoded:,} passages encoded.")


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
        embeddings_CD = _vectors(store, partial, chunk, chunk_passages, encoder)
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


def _dtype(encoder: SentenceEncoder) -> np.dtype:
    return np.dtype([("key", f"S{KEY_BYTES}"), ("vector", "<f4", (encoder.dimensions,))])


def _load(path: Path, encoder: SentenceEncoder) -> np.ndarray | None:
    """A chunk, (C,); None if the file is missing, corrupt or of another encoder, so that it is encoded again."""
    try:
        chunk_C = np.load(path, mmap_mode="r", allow_pickle=False)
    except (FileNotFoundError, ValueError, EOFError):
        return None
    return chunk_C if chunk_C.dtype == _dtype(encoder) else None


def _vectors(
    store: PassageStore, partial: Path, chunk: int, chunk_passages: int, encoder: SentenceEncoder
) -> np.ndarray | None:
    """The embeddings of a chunk, float32 (C, D); None if it is not whole."""
    chunk_C = _load(_path(partial, chunk), encoder)
    whole = chunk_C is not None and len(chunk_C) == len(_rows(store, chunk, chunk_passages))
    return chunk_C["vector"] if chunk_C is not None and whole else None
