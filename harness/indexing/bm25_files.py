"""BM25 index files in bounded memory: bm25s's own files, byte for byte, from runs of postings on disk.

bm25s holds every token of the corpus in memory to build an index. Here the runs are merged for one range of words after
another, whose postings fit a buffer; each posting's score is computed as bm25s computes it, so that it is the same
number.

Shape legend: W words, N passages, P postings of a range of words.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from common.errors import DataError
from common.progress import Progress
from harness.indexing.posting_runs import POSTING, Runs

DATA, INDICES, INDPTR = (f"{name}.csc.index.npy" for name in ("data", "indices", "indptr"))
VOCABULARY = "vocab.index.json"
POSTING_BYTES = 8  # of a posting in DATA and INDICES
_BUFFER = 2**22  # postings merged at a time, unless one word has more; a buffer of them takes 200 MB
_PIECE = 2**18  # postings scored at a time


def write_bm25(runs: Runs, k1: float, b: float, folder: Path) -> None:
    """Write the files that `bm25s.BM25.load` reads.

    Args:
        runs: Of the whole corpus.
        k1: Saturation of term frequency.
        b: Strength of length normalization.
        folder: Is created.

    Raises:
        DataError: If the corpus contains no word.
    """
    import bm25s

    if not runs.vocabulary:
        raise DataError("No passage of the corpus contains a word that BM25 can index. Check the files and the layout.")
    starts_W = np.concatenate(([0], np.cumsum(runs.passages_W)))
    lengths_N, total = runs.passage_lengths(), int(starts_W[-1])
    idf_W = inverse_document_frequencies(runs.passages_W, len(lengths_N))
    # k1 (1 - b + b |d| / mean |d|), in the order of bm25s's sums, on which the last bit depends
    saturation_N = k1 * ((1 - b) + b * lengths_N / lengths_N.mean())
    engine = bm25s.BM25(k1=k1, b=b, method="lucene")
    engine.nonoccurrence_array, engine.vocab_dict = None, runs.vocabulary
    engine.scores = {
        "data": np.empty(0, np.float32), "indices": np.empty(0, np.int32), "indptr": starts_W,
        "num_docs": len(lengths_N)
    }  # fmt: skip
    engine.save(folder, show_progress=False)  # its other files; DATA and INDICES are written here
    with (folder / DATA).open("wb") as data, (folder / INDICES).open("wb") as indices:
        _write_header(data, "<f4", total)
        _write_header(indices, "<i4", total)
        with Progress("merging postings", total) as progress:
            for first, end in _word_ranges(starts_W):
                postings = _merged(runs, first, end, starts_W)
                indices.write(postings["passage"].tobytes())
                words_P = np.repeat(np.arange(first, end, dtype=np.int32), runs.passages_W[first:end])
                for place in range(0, len(postings), _PIECE):
                    piece, words = postings[place : place + _PIECE], words_P[place : place + _PIECE]
                    frequencies_P = piece["frequency"].astype(np.float32)
                    share_P = frequencies_P / (saturation_N[piece["passage"]] + frequencies_P)
                    data.write((idf_W[words] * share_P).astype("<f4").tobytes())
                    progress.update(len(piece))


def inverse_document_frequencies(passages_W: np.ndarray, count: int) -> np.ndarray:
    """Lucene's idf of each word, float32 (W,): ln(1 + (N - n_w + 1/2) / (n_w + 1/2)).

    Args:
        passages_W: Number of passages that contain each word.
        count: N.
    """
    numbers, places_W = np.unique(passages_W, return_inverse=True)
    # math.log as in bm25s: numpy's may differ in the last bit
    idf = [math.log(1 + (count - number + 0.5) / (number + 0.5)) for number in numbers.tolist()]
    return np.array(idf, dtype=np.float32)[places_W]


def _write_header(file: BinaryIO, dtype: str, length: int) -> None:
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": (length,)})


def _word_ranges(starts_W: np.ndarray) -> Iterator[tuple[int, int]]:
    """Ranges of words with at most _BUFFER postings, or of one word."""
    first, words = 0, len(starts_W) - 1
    while first < words:
        end = int(np.searchsorted(starts_W, starts_W[first] + _BUFFER, side="right")) - 1
        end = max(end, first + 1)
        yield first, end
        first = end


def _merged(runs: Runs, first: int, end: int, starts_W: np.ndarray) -> np.ndarray:
    """The postings of a range of words, sorted by word and passage."""
    merged = np.empty(int(starts_W[end] - starts_W[first]), dtype=POSTING)
    next_W = starts_W[first:end] - starts_W[first]  # where the next run's postings of each word begin
    for run in range(runs.count):
        words, counts, postings = runs.read(run, first, end)
        words -= first
        # from the place in the run's part to the place in the range
        shift = next_W[words] - (np.cumsum(counts) - counts)
        merged[np.arange(len(postings)) + np.repeat(shift, counts)] = postings
        next_W[words] += counts
    return merged
