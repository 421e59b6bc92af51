"""An endless stream of equally long token sequences out of corpora of any size, the same for any number of processes.

The corpora are read from the front again and again.  Passage number i goes to stream i mod `streams`; a stream
shuffles its passages block by block, joins their tokens and cuts them.  A process tokenizes the streams whose rows it
is asked for, so that processes share that work; none ever holds more than a few blocks of text.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from common.errors import DataError
from common.records import Passage
from datamodules.examples.splits import Source
from datamodules.formats.reading import read_passages

Encode = Callable[[list[Passage]], list[list[int]]]  # tokens of each passage, without special ones


def held_out_share(passage: Passage) -> float:
    """A fixed number in [0, 1) from the passage's identity: below the validation fraction it is held out."""
    return int(passage.id, 16) / 2 ** (4 * len(passage.id))


def read_corpora(corpora: Sequence[Source]) -> Iterator[Passage]:
    """The passages of all files, in order, read when asked.  Errors as `read_passages`."""
    for corpus in corpora:
        yield from islice(read_passages(corpus.layout, [corpus.path]), corpus.limit)


class CorpusStream:
    """Row r is sequence r // streams of stream r mod streams.

    Args:
        corpora: Files of passages.
        validation_fraction: Passages whose share is below it are left out.
        encode: Turns passages into tokens.
        length: Tokens of a sequence.
        streams: How many; as many processes, or a divisor of it, share the tokenizing.
        block: Passages that are shuffled together.
        seed: Of the shuffling.
        owned: Streams that this process asks for; all when None.
    """

    def __init__(
        self,
        corpora: Sequence[Source],
        validation_fraction: float,
        encode: Encode,
        length: int,
        streams: int = 8,
        block: int = 256,
        seed: int = 0,
        owned: frozenset[int] | None = None,
    ) -> None:
        self.corpora, self.validation_fraction, self.encode = corpora, validation_fraction, encode
        self.length, self.streams, self.block, self.seed = length, streams, block, seed
        self.owned = frozenset(range(streams)) if owned is None else owned
        self._start()

    def __getitem__(self, row: int) -> list[int]:
        """The tokens of a row.  Rows of a stream are best asked for in order: one further back starts the reading over.

        Raises:
            DataError: If the corpora hold no passage to train on, or as `read_passages`.
            KeyError: If the row's stream is not owned.
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
            some = False
            for passage in read_corpora(self.corpora):
                if held_out_share(passage) >= self.validation_fraction and (passage.text or passage.title):
                    some = True
                    yield passage
            if not some:
                raise DataError(
                    f"{[corpus.path for corpus in self.corpora]} hold no passage to train on beside the "
                    f"validation share of {self.validation_fraction}: name more files."
                )

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
