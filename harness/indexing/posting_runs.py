"""Runs of postings: the first pass of a sort-based build of an inverted index in bounded memory.

Passages are split into words a block at a time, by one or several processes. The postings of a block (passage,
frequency), sorted by word, are a run: three arrays on disk. Words are numbered by first occurrence in the corpus,
whatever the number of processes.

Shape legend: W different words, N passages, B passages of a block.
"""

import pickle
from array import array
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.killable import Killable
from common.progress import Progress
from harness.indexing.analyser import Analyser, StopWords
from harness.indexing.passage_store import PassageStore, indexed_text
from harness.indexing.workers import results

SMALLEST_BLOCK, BLOCK = 10_000, 50_000  # passages; splitting the latter takes 150 MB
POSTING = np.dtype([("passage", "<i4"), ("frequency", "<i4")])


@dataclass(frozen=True, slots=True)
class PostingBlock:
    """The postings of some passages.

    Args:
        words: Its different words, by first occurrence.
        passages_W: In how many of its passages each is.
        postings: Sorted by the place of the word in `words` and by passage.
        lengths_B: Words of each passage.
    """

    words: list[str]
    passages_W: np.ndarray
    postings: np.ndarray
    lengths_B: np.ndarray

    @classmethod
    def of(cls, store: PassageStore, first: int, end: int, analyser: Analyser) -> "PostingBlock":
        """Split the passages from `first` to before `end`."""
        vocabulary: dict[str, int] = {}
        numbers, lengths = array("q"), array("i")
        for passage in store.part(first, end):
            words = analyser(indexed_text(passage))
            lengths.append(len(words))
            numbers.extend([vocabulary.setdefault(word, len(vocabulary)) for word in words])
        lengths_B = np.array(lengths, dtype=np.int32)
        # a key is word and passage; a posting is a key, as often as it occurs
        keys = np.array(numbers, dtype=np.int64) << 32 | np.repeat(np.arange(first, end), lengths_B)
        keys, frequencies = np.unique(keys, return_counts=True)
        postings = np.empty(len(keys), dtype=POSTING)
        postings["passage"], postings["frequency"] = keys & 0xFFFFFFFF, frequencies
        return cls(list(vocabulary), np.bincount(keys >> 32, minlength=len(vocabulary)), postings, lengths_B)


class Runs:
    """The runs of a corpus, in the order of its passages.

    Args:
        folder: Receives their files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0
        self.vocabulary: dict[str, int] = {}
        self.passages_W = np.zeros(0, dtype=np.int64)  # how many passages contain each word
        self._lengths: list[np.ndarray] = []

    def passage_lengths(self) -> np.ndarray:
        """Words of each passage, int32 (N,)."""
        return np.concatenate(self._lengths)

    def add(self, block: PostingBlock) -> None:
        """Write the next block as a run, with the words numbered as in the corpus."""
        numbers_W = np.array(
            [self.vocabulary.setdefault(word, len(self.vocabulary)) for word in block.words], dtype=np.int32
        )
        new = np.zeros(len(self.vocabulary) - len(self.passages_W), dtype=np.int64)
        self.passages_W = np.concatenate((self.passages_W, new))
        self.passages_W[numbers_W] += block.passages_W
        self._lengths.append(block.lengths_B)
        by_number_W = np.argsort(numbers_W)
        by_number = np.argsort(np.repeat(numbers_W, block.passages_W), kind="stable")
        np.save(self._file(self.count, "words.npy"), numbers_W[by_number_W])
        np.save(self._file(self.count, "starts.npy"), np.concatenate(([0], np.cumsum(block.passages_W[by_number_W]))))
        block.postings[by_number].tofile(self._file(self.count, "postings.bin"))
        self.count += 1

    def read(self, run: int, first_word: int, end_word: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of one run: its words from `first_word` to before `end_word`, with how many postings each, and these."""
        words = np.load(self._file(run, "words.npy"), mmap_mode="r")
        begin, end = np.searchsorted(words, (first_word, end_word))
        starts = np.array(np.load(self._file(run, "starts.npy"), mmap_mode="r")[begin : end + 1])
        offset, count = int(starts[0]) * POSTING.itemsize, int(starts[-1] - starts[0])
        postings = np.fromfile(self._file(run, "postings.bin"), POSTING, count, offset=offset)
        return np.array(words[begin:end]), np.diff(starts), postings

    def _file(self, run: int, what: str) -> Path:
        return self.folder / f"run-{run:05d}-{what}"


def write_runs(store: PassageStore, analyser: Analyser, folder: Path, workers: int) -> Runs:
    """Split all passages into words.

    Args:
        store: The passages.
        analyser: Splits them.
        folder: Receives the runs.
        workers: Processes; with one, or a single block, this one.
    """
    size = min(BLOCK, max(SMALLEST_BLOCK, -(-len(store) // workers)))
    runs, blocks = Runs(folder), [(first, min(first + size, len(store))) for first in range(0, len(store), size)]
    with Progress("splitting passages into words", len(store)) as progress:
        for block in _blocks(store, analyser, folder, blocks, min(workers, len(blocks))):
            runs.add(block)
            progress.update(len(block.lengths_B))
    return runs


def _blocks(
    store: PassageStore, analyser: Analyser, folder: Path, blocks: list[tuple[int, int]], workers: int
) -> Iterator[PostingBlock]:
    if workers <= 1:
        yield from (PostingBlock.of(store, first, end, analyser) for first, end in blocks)
        return
    calls = ((first, end, str(store.folder), str(folder), analyser.stop_words) for first, end in blocks)
    with closing(Killable("harness.indexing.posting_runs:save_block", workers)) as processes:
        for file in results(processes, calls, workers):
            yield pickle.loads(Path(file).read_bytes())
            Path(file).unlink()


def save_block(first: int, end: int, passages: str, folder: str, stop_words: StopWords) -> str:
    """Write the block of some passages, in a process of its own; returns the file."""
    file = Path(folder) / f"block-{first}.pickle"
    store, analyser = PassageStore(Path(passages)), Analyser(stop_words)
    file.write_bytes(pickle.dumps(PostingBlock.of(store, first, end, analyser)))
    return str(file)
