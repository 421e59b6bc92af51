"""LightningDataModule of DR-RAG: reads official files, samples triples or chains, and batches them into optimizer steps."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from common.checks import check_at_least
from common.errors import DataError, UserError
from common.progress import Progress
from common.records import Question
from datamodules.examples.audit import audit
from datamodules.examples.chains import ChainExample, ChainSampling, groups_of
from datamodules.examples.chains import draw_all as draw_chains
from datamodules.examples.splits import Source, check_split
from datamodules.examples.step_loader import StepData, TripleBatch, part, plan_steps
from datamodules.examples.triples import Sampling, Triple, draw_all
from datamodules.formats.expansions import read_expansions
from datamodules.formats.mined_negatives import read_mined
from datamodules.stored.splits import split_questions
from models.drrag.triple_tokenizer import END, PAIRS, TripleEncoder
from models.length_batching import length_batches

if TYPE_CHECKING:
    from models.drrag.triple_classifier import TripleClassifier


Example = Triple | ChainExample

BALANCED = Sampling()  # 1:1, as in the paper
LIKE_INFERENCE = Sampling(negatives_per_positive=4.0, mixed_share=0.75)  # mostly negatives, as at inference


class DrRagData(StepData):
    """Training and validation triples, or with `chains` chains of documents, of one or several data sets.

    Validation questions come from a fixed hash split of the training files or from separate files; dev files are for
    `infer.py evaluate` only.  A question that occurs in several files is used once.

    Args:
        train: Official training files.
        validation: Official validation files; a hash split of the training files when empty.
        validation_fraction: Share of the training questions that the hash split holds out, in (0, 1).
        mined: Files of hard negatives, written by `infer.py mine`.
        sampling: How training triples are sampled, again in every epoch.
        validation_sampling: How validation triples are sampled, once.
        chains: How chains are sampled for a beam over hops, in the place of triples: training chains in every epoch, validation
            chains once.
        expansions: Files of what a beam with an earlier classifier met, written by `infer.py expand`; for `chains`.
        tokens_per_step: Average tokens of one optimizer step, over all ranks and accumulated batches.
        tokens_per_validation_batch: Maximum padded tokens of one validation batch, per rank.
        sampling_seed: Seed of sampling and ordering.

    Raises:
        UserError: If there is no training file, or a value is out of range.
    """

    step_option, examples_name = "tokens_per_step", "triples"

    def __init__(
        self,
        train: list[Source],
        validation: list[Source] | None = None,
        validation_fraction: float = 0.06,
        mined: list[str] | None = None,
        sampling: Sampling = BALANCED,
        validation_sampling: Sampling = LIKE_INFERENCE,
        tokens_per_step: int = 4096,
        tokens_per_validation_batch: int = 4096,
        sampling_seed: int = 0,
        chains: ChainSampling | None = None,
        expansions: list[str] | None = None,
    ) -> None:
        super().__init__()
        check_split(train, validation_fraction)
        check_at_least(1, tokens_per_step=tokens_per_step, tokens_per_validation_batch=tokens_per_validation_batch)
        self.train_sources, self.validation_sources = train, validation or []
        self.sources = [*self.train_sources, *self.validation_sources]
        self.validation_fraction, self.mined_files = validation_fraction, mined or []
        self.sampling, self.validation_sampling = sampling, validation_sampling
        self.tokens_per_step, self.tokens_per_validation_batch = tokens_per_step, tokens_per_validation_batch
        self.sampling_seed, self.chains, self.expansion_files = sampling_seed, chains, expansions or []
        if expansions and chains is None:
            raise UserError(
                "data.expansions are of a beam over chains: set data.chains, such as --data.chains.candidates 3."
            )
        self.questions: list[Question] = []

    @property
    def most_documents(self) -> int:
        """Most documents that the classifier reads at once: 2 in triples."""
        return PAIRS if self.chains is None else self.chains.most_documents

    @property
    def files(self) -> list[str]:
        """Paths of all input files."""
        return [source.path for source in self.sources] + self.mined_files + self.expansion_files

    def setup(self, stage: str) -> None:
        """Read and split the questions, sample the first epoch, print its statistics (once).

        Raises:
            DataError: If a file is invalid, there are no training triples, or validation lacks a class.
        """
        if self.questions:
            return
        split = split_questions(self.train_sources, self.validation_sources, self.validation_fraction)
        self.questions, held_out = list(split.training), list(split.held_out)
        self.mined, self.expansions = read_mined(self.mined_files), read_expansions(self.expansion_files)
        self.encode = self._classifier.encode
        self.encode.cached_texts = None
        with Progress("sampling and tokenizing triples"):
            self.validation_triples = self._draw(held_out, self.validation_sampling, -1)
            first, units = self._sample(0)
            lengths = self._lengths(first)
        if not first or len({t.positive for t in self.validation_triples}) < 2:
            raise DataError(
                f"{len(first)} training and {len(self.validation_triples)} validation triples from "
                f"{[s.path for s in self.train_sources]}: a question needs {'one' if self.chains else 'two'} or more gold passages and other ones, "
                "and validation needs both classes. Give more questions, or raise data.validation_fraction."
            )
        self.steps_per_epoch = max(1, min(len(units), math.ceil(sum(lengths) / self.tokens_per_step)))
        self.units_per_step = len(units) / self.steps_per_epoch
        self.examples_per_unit = len(first) / len(units)
        report = audit(
            self.questions,
            first,
            self.mined,
            lengths,
            self.encode.max_tokens,
            [self.encode.untruncated(*t.texts) for t in first],
        )
        self.audit = report | {
            "validation_questions": len(held_out),
            "validation_triples": len(self.validation_triples),
            "steps_per_epoch": self.steps_per_epoch,
        }
        self.print_audit()

    @property
    def validation_pairs(self) -> NDArray[np.bool_]:
        """Which validation examples are pairs of documents, (P,): all triples, and chains of two."""
        return np.array([len(t.texts) == 1 + PAIRS and t.texts[-1] is not END for t in self.validation_triples])

    @property
    def validation_groups(self) -> NDArray[np.int64]:
        """Number of each validation example's group, (P,)."""
        sizes = [len(group) for group in groups_of(self.validation_triples)]
        return np.repeat(np.arange(len(sizes)), sizes)

    def _validation_groups(self) -> list[list[int]]:
        lengths = [self._classifier.padded_length(length) for length in self._lengths(self.validation_triples)]
        return length_batches(lengths, self.tokens_per_validation_batch)

    def _validation_batch(self, rows: list[int]) -> TripleBatch:
        return self._batch(self.validation_triples, rows, len(rows))

    def largest_batch(self) -> tuple[int, int]:
        """Rows and padded length of the first epoch's largest training batch, over all ranks and accumulated batches."""
        examples, units = self._epoch(0)
        lengths = self._lengths(examples)
        parts = self.trainer.world_size * self.trainer.accumulate_grad_batches
        batches = [_rows(units, part(step, index, parts)) for step in self._plan(0) for index in range(parts)]
        padded = self._classifier.padded_length
        shapes = [(len(rows), padded(max(lengths[row] for row in rows))) for rows in batches if rows]
        return max(shapes, key=lambda shape: (shape[0] * shape[1], shape[1]))

    @property
    def _classifier(self) -> "TripleClassifier":
        return self.trainer.lightning_module.classifier

    def _draw(self, questions: Sequence[Question], sampling: Sampling, epoch: int) -> Sequence[Example]:
        if self.chains is None:
            return draw_all(questions, self.mined, sampling, self.sampling_seed, epoch)
        return draw_chains(questions, self.mined, self.expansions, self.chains, self.sampling_seed, epoch)

    def _sample(self, epoch: int) -> tuple[Sequence[Example], list[list[int]]]:
        """An epoch's examples, and the positions of those that stay in one batch."""
        examples = self._draw(self.questions, self.sampling, epoch)
        self.encode.remember_triples(t.texts for t in examples)
        units = groups_of(examples) if self.trainer.lightning_module.listwise else [[n] for n in range(len(examples))]
        self._sampled = (epoch, examples, units)
        return examples, units

    def _epoch(self, epoch: int) -> tuple[Sequence[Example], list[list[int]]]:
        return self._sampled[1:] if self._sampled[0] == epoch else self._sample(epoch)

    def _plan(self, epoch: int) -> list[list[int]]:
        rng = random.Random(f"plan/{self.sampling_seed}/{epoch}")
        examples, units = self._epoch(epoch)
        lengths = self._lengths(examples)
        return plan_steps([sum(lengths[row] for row in unit) for unit in units], self.steps_per_epoch, rng)

    def _lengths(self, examples: Sequence[Example]) -> list[int]:
        self.encode.remember_triples(t.texts for t in examples)
        return [self.encode.length(*t.texts) for t in examples]

    def _collate(self, epoch: int, units: list[int], step: list[int]) -> TripleBatch:
        examples, rows_of = self._epoch(epoch)
        of_step = sum(len(rows_of[unit]) for unit in step)
        taken = units or step[:1]
        batch = self._batch(examples, _rows(rows_of, taken), of_step, weight=float(bool(units)))
        groups = [place for place, unit in enumerate(taken) for _ in rows_of[unit]]
        return replace(batch, groups_P=torch.tensor(groups), step_groups=len(step))

    def _batch(self, examples: Sequence[Example], rows: list[int], of_step: int, weight: float = 1.0) -> TripleBatch:
        encode: TripleEncoder = self.encode
        ids_PT, attention_PT = self._classifier.pad([encode(*examples[row].texts) for row in rows])
        labels_P = torch.tensor([float(examples[row].positive) for row in rows])
        weights_P = torch.full((len(rows),), weight)
        rows_P = torch.tensor(rows)
        return TripleBatch(ids_PT, attention_PT, labels_P, weights_P, of_step, rows_P, rows_P, len(rows))


def _rows(units: Sequence[Sequence[int]], chosen: Sequence[int]) -> list[int]:
    """The examples of some units, in order."""
    return [row for unit in chosen for row in units[unit]]
