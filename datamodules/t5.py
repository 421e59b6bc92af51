"""LightningDataModule of T5's span corruption: streams corpora as token sequences and corrupts them.

Shape legend: P sequences, T input tokens, A target tokens.
"""

import random
from dataclasses import dataclass

import torch
from torch import Tensor

from common.errors import DataError, UserError
from common.ranges import OpenShare, PositiveInt
from common.records import Passage, nfkc, passage_text
from datamodules.examples.batches import TokenBatch
from datamodules.examples.data_files import DataFile
from datamodules.examples.step_loader import StepData, chunks
from datamodules.examples.token_stream import CorpusStream, held_out_share, read_corpora
from datamodules.formats.recognition import check_layout
from datamodules.formats.row_counts import RowCounts
from models.length_batching import IGNORE, pad
from models.t5.span_corruption import SpanLength, SpanTokens, corrupt, random_mask, span_counts, text_length
from models.t5.tokenizer_training import sentinel_ids
from models.text_formats import neutralize, special_texts

MIN_TOKENS = 8  # of the last validation sequence; a shorter one is dropped


@dataclass
class SpanBatch(TokenBatch):
    """P corrupted sequences on one rank."""

    ids_PT: Tensor
    attention_PT: Tensor
    labels_PA: Tensor  # IGNORE where there is no token
    weights_P: Tensor  # 1.0; 0.0 for a dummy sequence on a rank without data
    step_tokens: int  # target tokens of the optimizer step, over all ranks and accumulated batches
    rows_P: Tensor  # index of each sequence in the stream or the validation set

    @property
    def tokens(self) -> int:
        """Number of input and target tokens, padding included."""
        return super().tokens + self.labels_PA.numel()


class SpanCorruptionData(StepData):
    """Training and validation sequences of one or several corpora, streamed: the files may be larger than memory.

    The corpora are repeated endlessly; an epoch is a fixed number of steps between two validations.  Row r of a run
    depends only on the files, the seed and r.

    Args:
        corpora: Files of passages, or of questions with passages.
        max_tokens: Maximum input length, in tokens; 512 in T5.
        noise_share: Share of noise tokens; 0.15 in T5.
        mean_span: Mean span length, in tokens; 3 in T5.
        sequences_per_step: Sequences of one optimizer step, over all ranks and accumulated batches.
        steps_per_epoch: Optimizer steps between two validations.
        validation_fraction: Share of the passages that a hash split holds out.
        validation_sequences: Maximum number of validation sequences.
        sequences_per_validation_batch: Sequences of one validation batch, per rank.
        streams: Independent parts of the corpus; ranks share the tokenization if their number divides this and
            `sequences_per_step`.
        block_passages: Size of the shuffle buffer of a stream, in passages.
        sampling_seed: Seed of shuffling and of masks.
        strict: Whether an unusual row (null, empty, a repeated passage of a corpus) is an error. Else they are counted:
            in the statistics those that are read to find the validation passages, later all.

    Raises:
        UserError: If no file is given, or a layout is unknown.
    """

    step_option, examples_name = "sequences_per_step", "sequences"

    def __init__(
        self,
        corpora: list[DataFile],
        max_tokens: SpanTokens = 512,
        noise_share: OpenShare = 0.15,
        mean_span: SpanLength = 3.0,
        sequences_per_step: PositiveInt = 128,
        steps_per_epoch: PositiveInt = 1000,
        validation_fraction: OpenShare = 0.02,
        validation_sequences: PositiveInt = 256,
        sequences_per_validation_batch: PositiveInt = 16,
        streams: PositiveInt = 8,
        block_passages: PositiveInt = 256,
        sampling_seed: int = 0,
        strict: bool = False,
    ) -> None:
        super().__init__()
        if not corpora:
            raise UserError("data.corpora names no file: give at least one {layout, path}.")
        for source in corpora:
            check_layout(source.layout)
        self.sources, self.max_tokens, self.noise_share, self.mean_span = corpora, max_tokens, noise_share, mean_span
        self.sequences_per_step, self.steps_per_epoch = sequences_per_step, steps_per_epoch
        self.units_per_step = sequences_per_step
        self.validation_fraction, self.validation_sequences = validation_fraction, validation_sequences
        self.sequences_per_validation_batch = sequences_per_validation_batch
        self.streams, self.block_passages, self.sampling_seed = streams, block_passages, sampling_seed
        self._unusual = RowCounts(strict)
        self.held_out: list[list[int]] = []

    @property
    def files(self) -> list[str]:
        """Paths of all input files."""
        return [source.path for source in self.sources]

    def setup(self, stage: str) -> None:
        """Compute the sequence length and read the validation sequences (once).

        Raises:
            DataError: If a file is invalid, or no passage is held out for validation.
            UserError: If the tokenizer has too few sentinels.
        """
        if self.held_out:
            return
        self.tokenizer = self.module.tokenizer
        self.sentinels = sentinel_ids(self.tokenizer)
        self.specials = special_texts(self.tokenizer)
        self.length = text_length(self.max_tokens, self.noise_share, self.mean_span, len(self.sentinels))
        self.held_out = self._read_held_out()
        noise, spans = span_counts(self.length, self.noise_share, self.mean_span)
        self.target_tokens = noise + spans + 1
        self.stream = CorpusStream(
            self.sources, self.validation_fraction, self.encode, self.length,
            self.streams, self.block_passages, self.sampling_seed, self._owned(), self._unusual,
        )  # fmt: skip
        self.audit = {
            "text_tokens": self.length,
            "input_tokens": self.length - noise + spans + 1,
            "target_tokens": self.target_tokens,
            "sequences_per_step": self.sequences_per_step,
            "steps_per_epoch": self.steps_per_epoch,
            "validation_sequences": len(self.held_out),
            **self._unusual.audit(),
        }
        self.print_audit()

    def _validation_groups(self) -> list[list[int]]:
        return chunks(len(self.held_out), self.sequences_per_validation_batch)

    def _validation_batch(self, rows: list[int]) -> SpanBatch:
        return self._batch([self.held_out[row] for row in rows], rows, "validation", 0, 1.0)

    def encode(self, passages: list[Passage]) -> list[list[int]]:
        """Token ids of passages, without special tokens; special-token strings in the text are escaped."""
        texts = [nfkc(passage_text(passage)) for passage in passages]
        safe = [neutralize(text, self.specials) if "<" in text else text for text in texts]
        return list(self.tokenizer(safe, add_special_tokens=False, verbose=False)["input_ids"])

    def _owned(self) -> frozenset[int] | None:
        ranks = self.trainer.world_size
        if self.streams % ranks or self.sequences_per_step % ranks:
            return None
        return frozenset(range(self.trainer.global_rank, self.streams, ranks))

    def _read_held_out(self) -> list[list[int]]:
        wanted, tokens = self.validation_sequences * self.length, list[int]()
        for passage in read_corpora(self.sources, self._unusual):
            if held_out_share(passage) < self.validation_fraction:
                tokens += self.encode([passage])[0]
                if len(tokens) >= wanted:
                    break
        sequences = [tokens[start : start + self.length] for start in range(0, min(len(tokens), wanted), self.length)]
        sequences = [sequence for sequence in sequences if len(sequence) >= MIN_TOKENS]
        if not sequences:
            raise DataError(
                f"no validation passages in {self.files}: name more files, or raise data.validation_fraction "
                f"({self.validation_fraction})."
            )
        return sequences

    def _plan(self, epoch: int) -> list[list[int]]:
        size = self.sequences_per_step
        first = epoch * self.steps_per_epoch
        return [list(range(step * size, (step + 1) * size)) for step in range(first, first + self.steps_per_epoch)]

    def largest_batch(self, epoch: int) -> SpanBatch:
        """See `StepData`.  All have equally long texts; this one's is of validation: a stream is read in order."""
        _, rows, step = next(self._loader(self._collate).parts(epoch))
        text = (self.held_out[0] * self.length)[: self.length]
        rows = rows or step[:1]
        return self._batch([text] * len(rows), rows, "train", len(step) * self.target_tokens, 1.0)

    def _collate(self, epoch: int, rows: list[int], step: list[int]) -> SpanBatch:
        weight = float(bool(rows))
        texts = [self.stream[row] for row in rows] or self.held_out[:1]
        return self._batch(texts, rows or step[:1], "train", len(step) * self.target_tokens, weight)

    def _batch(self, texts: list[list[int]], rows: list[int], part: str, step_tokens: int, weight: float) -> SpanBatch:
        pairs = []
        for text, row in zip(texts, rows, strict=True):
            rng = random.Random(f"span/{self.sampling_seed}/{part}/{row}")
            mask = random_mask(len(text), self.noise_share, self.mean_span, rng)
            pairs.append(corrupt(text, mask, self.sentinels, self.tokenizer.eos_token_id))
        sources, targets = zip(*pairs, strict=True)
        longest = max(map(len, targets))
        ids_PT, attention_PT = pad(sources, self.tokenizer.pad_token_id, self.max_tokens)
        target_PA, real_PA = pad(targets, self.tokenizer.pad_token_id, longest)
        labels_PA = target_PA.masked_fill(real_PA == 0, IGNORE)
        return SpanBatch(
            ids_PT, attention_PT, labels_PA, torch.full((len(rows),), weight), step_tokens, torch.tensor(rows)
        )
