"""Endless stream of token sequences of equal length from corpora of any size, the same for any number of processes.

The corpora are read repeatedly.  Passage i belongs to stream i mod `streams`; a stream shuffles its passages in blocks,
concatenates their tokens and cuts them.  A process tokenizes only its own streams and keeps a few blocks in memory.
"""

import random
from collections.abc import Callable, Iterator, Sequence

from common.errors import DataError
from common.progress import say
from common.records import Passage
from datamodules.examples.data_files import DataFile
from datamodules.formats.reading import read_passages
from datamodules.formats.row_counts import RowCounts

Encode = Callable[[list[Passage]], list[list[int]]]  # token ids of each passage, without special tokens


def held_out_share(passage: Passage) -> float:
    """The passage's id, a hash, as a number in [0, 1); passages below the validation fraction are held out."""
    return int(passage.id, 16) / 2 ** (4 * len(passage.id))


def read_corpora(corpora: Sequence[DataFile], counts: RowCounts | None = None) -> Iterator[Passage]:
    """The passages of all files, in order, read lazily; `counts` counts unusual rows.  Raises as `read_passages`."""
    for corpus in corpora:
        yield from read_passages(corpus.layout, [corpus.path], counts=counts, limit=corpus.limit)


class CorpusStream:
    """The token sequences; row r is sequence r // streams of stream r mod streams.

    Args:
        corpora: Files of passages.
        validation_fraction: Share of passages that are held out, see `held_out_share`.
        encode: Tokenizes passages.
        length: Tokens per sequence.
        streams: Number of streams; a multiple of the processes that share the tokenization.
        block: Size of the shuffle buffer, in passages.
        seed: Seed of the shuffling.
        owned: Streams that this process reads; all when None.
        unusual: The counts of unusual rows so far; a further one is an error if they are strict. When the corpora were
            read once, the process of the first stream says what else there is.
    """

    def __init__(
        self,
        corpora: Sequence[DataFile],
        validation_fraction: float,
        encode: Encode,
        length: int,
        streams: int = 8,
        block: int = 256,
        seed: int = 0,
        owned: frozenset[int] | None = None,
        unusual: RowCounts | None = None,
    ) -> None:
        self.corpora, self.validation_fraction, self.encode = corpora, validation_fraction, encode
        self.length, self.streams, self.block, self.seed = length, streams, block, seed
        self.owned = frozenset(range(streams)) if owned is None else owned
        self.unusual = unusual or RowCounts()
        self._start()

    def __getitem__(self, row: int) -> list[int]:
        """Token ids of a row.  Rows of a stream should be read in order: an earlier row restarts the reading.

        Raises:
            DataError: If the corpora hold no training passage, or as `read_passages`.
            KeyError: If the row's stream is not owned by this process.
        """
        index, stream = divmod(row, self.streams)
        if stream not in self.owned:
            raise KeyError(f"stream {stream} is not among {sorted(self.owned)}")
        if index < self._next[stream]:
            self._start()
        while self._next[stream] < index:
            self._advance(stream)
        return self._advance(stream)

    def _start(self) -> None:
        self._passages = enumerate(self._endless())
        self._waiting: dict[int, list[Passage]] = {stream: [] for stream in self.owned}
        self._tokens: dict[int, list[int]] = {stream: [] for stream in self.owned}
        self._blocks = dict.fromkeys(self.owned, 0)
        self._next = dict.fromkeys(self.owned, 0)

    def _endless(self) -> Iterator[Passage]:
        while True:
            found, counts = False, RowCounts(self.unusual.strict)
            for passage in read_corpora(self.corpora, counts):
                if held_out_share(passage) >= self.validation_fraction and (passage.text or passage.title):
                    found = True
                    yield passage
            if not found:
                raise DataError(
                    f"{[corpus.path for corpus in self.corpora]} hold no passage to train on besides the "
                    f"validation share of {self.validation_fraction}: give more files."
                )
            if 0 in self.owned and counts.lines() != self.unusual.lines():
                for line in counts.lines():
                    say(f"{line}.")
                self.unusual = counts

    def _advance(self, stream: int) -> list[int]:
        tokens = self._tokens[stream]
        while len(tokens) < self.length:
            tokens.extend(self._read_block(stream))
        self._next[stream] += 1
        sequence = tokens[: self.length]
        del tokens[: self.length]
        return sequence

    def _read_block(self, stream: int) -> Iterator[int]:
        waiting = self._waiting[stream]
        while len(waiting) < self.block:
            number, passage = next(self._passages)
            if number % self.streams in self.owned:
                self._waiting[number % self.streams].append(passage)
        passages = waiting[: self.block]
        del waiting[: self.block]
        random.Random(f"block/{self.seed}/{stream}/{self._blocks[stream]}").shuffle(passages)
        self._blocks[stream] += 1
        return (token for tokens in self.encode(passages) for token in tokens)
