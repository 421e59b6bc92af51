"""Corpus encoding in chunks of passages, shared by the processes of a job; an interrupted build resumes.

<out>.partial/recipe.json       recipe of the index and origin of its corpus; a build with other ones does not take the
                                place of this one unasked
<out>.partial/passages.jsonl    the corpus, with its table of offsets
<out>.partial/chunk-HASH        texts that were encoded together, (C,) pairs of a text's key and its vector, float32
                                (D,); named by the hash of its content, so that a damaged one is none

Vectors are found by their texts (`harness.indexing.known_vectors`), whatever corpus, process or place in the corpus
they were encoded for: so a build goes on, and an index of a corpus that has changed takes over what it can.
"""

from collections.abc import Iterator
from functools import partial as partial_function
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from common.errors import ArtifactError, UserError
from common.files import read_json, write_atomically, write_json
from common.outputs import OutputFolder
from common.progress import say, track
from datamodules.formats.row_counts import CUT_PASSAGE, RowCounts
from harness.indexing.index_folder import Build, differs_in_content_only
from harness.indexing.known_vectors import KEY, KnownVectors, Part, text_keys
from harness.indexing.passage_store import OFFSETS, OTHER_IDS, PASSAGES, PassageStore, indexed_text
from harness.runtime.distributed import ProcessGroup
from harness.runtime.provenance import differences

if TYPE_CHECKING:
    from harness.indexing.sentence_encoder import SentenceEncoder

_RECIPE, _CHUNKS = "recipe.json", "chunk-*"
_AT_ONCE = 4096
_SHOWN = 60  # characters
_OF_0_2 = ("earlier-*.npy", "vectors.faiss")  # that a build of release 0.2 may have left, with numbered chunks
PARTIAL = OutputFolder(
    "`infer.py index`", "an unfinished build", lambda _: [_RECIPE, PASSAGES, OFFSETS, OTHER_IDS, _CHUNKS, *_OF_0_2]
)


def start_or_resume(partial: Path, recipe: dict, build: Build, corpus: Path) -> None:
    """Record recipe and corpus in a partial folder; keep its chunks if they are of the same encoder.

    Args:
        partial: The folder.
        recipe: Of the index to build.
        build: How it is built; what the same source held earlier is no other recipe.
        corpus: Folder with the corpus, whose files are moved into the partial folder.

    Raises:
        UserError: If it holds an unfinished build of another recipe, without `overwrite`.
        ArtifactError: If the recorded recipe is corrupt.
    """
    record, origin = partial / _RECIPE, build.source.origin if build.source is not None else None
    advice = f"To discard it, type --overwrite true, or remove {partial}."
    recorded = read_json(record, advice) if record.is_file() else {}
    same_source = recorded.pop("origin", None) == origin is not None
    goes_on = recorded == recipe or (same_source and differs_in_content_only(recorded, recipe)) or build.overwrite
    if record.is_file() and not goes_on:
        raise UserError(
            f"{partial} holds an unfinished build that differs in: {differences(recorded, recipe)}. "
            f"Finish it with its own options. {advice}"
        )
    chunks = [*partial.glob(_CHUNKS)]
    if any(recorded.get(part) != recipe[part] for part in ("encoder", "dtype")):
        for chunk in chunks:
            chunk.unlink()
    elif chunks:
        say(f"{partial}: continuing a build with {len(chunks)} chunks encoded.")
    partial.mkdir(exist_ok=True)
    write_json(record, {**recipe, "origin": origin})
    (partial / OTHER_IDS).unlink(missing_ok=True)
    for file in corpus.iterdir():
        file.replace(partial / file.name)


def encoded_chunks(partial: Path, encoder: "SentenceEncoder") -> list[Part]:
    """The chunks of a partial folder that are whole, and of this encoder."""
    parts, dtype = list[Part](), _dtype(encoder)
    for path in sorted(partial.glob(_CHUNKS)):
        content = path.read_bytes()
        if path.name == _name(content):
            keys = np.frombuffer(content, dtype)["key"].copy()
            parts.append((keys, lambda path=path: np.memmap(path, dtype, "r")["vector"]))  # type: ignore[misc]
    return parts


def encode_chunks(
    store: PassageStore,
    partial: Path,
    encoder: "SentenceEncoder",
    chunk_passages: int,
    processes: ProcessGroup,
    known: KnownVectors,
    counts: RowCounts | None = None,
) -> None:
    """Encode this process's share of the passages: of W processes every W-th chunk.

    Args:
        store: The passages.
        partial: Receives the chunks.
        encoder: Encodes them.
        chunk_passages: Passages of a chunk.
        processes: All of them call this.
        known: Vectors that need not be computed.
        counts: Counts the passages that were cut by any process; not those whose vectors are known.

    Raises:
        UserError: If the encoder returns a vector that is not finite.
        ArtifactError: If writing to disk fails.
    """
    encoded, cut, first = 0, 0, ""
    starts = range(processes.rank * chunk_passages, len(store), processes.size * chunk_passages)
    for start in track(starts, len(starts), f"encoding chunks of {chunk_passages:,} passages"):
        texts = _texts(store, start, chunk_passages)
        keys = text_keys(texts)
        (new,) = np.nonzero(~known.has(keys))
        if not len(new):
            continue
        chunk_C = np.empty(len(new), _dtype(encoder))
        texts = [texts[place] for place in new.tolist()]
        chunk_C["key"], chunk_C["vector"] = keys[new], encoder.encode_passages(texts)
        if not np.isfinite(chunk_C["vector"]).all():
            raise UserError(
                f"{encoder.name} returns vectors that are not finite. Try --dense.precision fp32 or another encoder."
            )
        content = chunk_C.tobytes()
        write_atomically(partial / _name(content), partial_function(Path.write_bytes, data=content))
        encoded += len(new)
        if encoder.cut_rows:
            cut, first = cut + len(encoder.cut_rows), first or texts[encoder.cut_rows[0]]
    of_all = processes.gathered((encoded, cut, first))
    for _, number, text in of_all:
        if counts is not None and number and processes.rank == 0:
            counts.add(CUT_PASSAGE, shortened(text), number)
    encoded = sum(each[0] for each in of_all)
    if encoded < len(store):
        say(
            f"{partial}: {len(store) - encoded:,} vectors were taken from what was encoded before, "
            f"{encoded:,} passages encoded."
        )


def refuse_long_passages(store: PassageStore, encoder: "SentenceEncoder", counts: RowCounts) -> None:
    """Raise the DataError of strict counts if the encoder cuts a passage, before any is encoded."""
    for start in range(0, len(store), _AT_ONCE):
        texts = _texts(store, start, _AT_ONCE)
        for row in encoder.longer(texts):
            counts.add(CUT_PASSAGE, shortened(texts[row]))


def shortened(text: str) -> str:
    """The beginning of a text, for a message."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN].rsplit(" ", 1)[0] + " ...")


def read_vectors(store: PassageStore, known: KnownVectors, partial: Path) -> Iterator[np.ndarray]:
    """The vectors of all passages in order, float32 (C, D) each.

    Raises:
        ArtifactError: If one is missing: the processes do not share the partial folder.
    """
    for start in range(0, len(store), _AT_ONCE):
        keys = text_keys(_texts(store, start, _AT_ONCE))
        if not known.has(keys).all():
            raise ArtifactError(
                f"{partial} lacks vectors although all processes finished. Choose an --out on a file system that all "
                "nodes share, and run again: existing chunks are reused."
            )
        yield known.of(keys)


def _texts(store: PassageStore, start: int, count: int) -> list[str]:
    return [indexed_text(passage) for passage in store.part(start, min(start + count, len(store)))]


def _dtype(encoder: "SentenceEncoder") -> np.dtype:
    return np.dtype([("key", KEY), ("vector", "<f4", (encoder.dimensions,))])


def _name(content: bytes) -> str:
    return f"chunk-{blake2b(content, digest_size=16).hexdigest()}"
