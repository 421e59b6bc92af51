"""Data module of the title model: the passages that questions ship, gold or not.

Shape legend: B passages, F features.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import torch
from expansion.model import FEATURES, features
from torch import Tensor

from common.ranges import PositiveInt
from datamodules.examples.batches import Batch
from datamodules.examples.data_files import QuestionDataFile, distinct_questions, paths_of
from datamodules.examples.step_loader import StepData, chunks

Rows = list[tuple[list[float], bool]]  # features of passages, and whether they are gold


@dataclass
class TitleBatch(Batch):
    """B passages on one rank."""

    features_BF: Tensor
    gold_B: Tensor  # 1.0 or 0.0
    rows_B: Tensor  # index of each passage among all of training or validation
    step_passages: int  # of the optimizer step, over all ranks and accumulated batches

    @property
    def examples(self) -> int:
        """Number of passages."""
        return len(self.gold_B)

    tokens = examples  # what grows with the size of a batch


class TitleData(StepData):
    """The passages of questions with gold passages.

    Args:
        train: Files of training.
        validation: Files of validation.
        passages_per_step: Of one optimizer step, over all ranks.
        sampling_seed: Of the order.
    """

    step_option, examples_name = "passages_per_step", "passages"

    def __init__(
        self,
        train: list[QuestionDataFile],
        validation: list[QuestionDataFile],
        passages_per_step: PositiveInt = 16,
        sampling_seed: int = 0,
    ) -> None:
        super().__init__()
        self.train_sources, self.validation_sources, self.sources = train, validation, [*train, *validation]
        self.passages_per_step, self.sampling_seed = passages_per_step, sampling_seed
        self.units_per_step = passages_per_step

    @property
    def files(self) -> list[str]:
        """Paths of all input files."""
        return paths_of(self.sources)

    def setup(self, stage: str) -> None:
        """Read the questions."""
        self.training, self.held_out = self._rows(self.train_sources), self._rows(self.validation_sources)
        self.steps_per_epoch = ceil(len(self.training) / self.passages_per_step)
        self.audit = {"training_passages": len(self.training), "validation_passages": len(self.held_out)}
        self.print_audit()

    def _rows(self, sources: list[QuestionDataFile]) -> Rows:
        return [
            (features(question.text, passage), passage.id in question.support)
            for question in distinct_questions(sources)
            for passage in question.passages
        ]

    def _plan(self, epoch: int) -> list[list[int]]:
        rows = [*range(len(self.training))]
        random.Random(f"{self.sampling_seed}/{epoch}").shuffle(rows)
        return [rows[start :: self.steps_per_epoch] for start in range(self.steps_per_epoch)]

    def _tokens_of(self, epoch: int) -> Callable[[list[int]], int]:
        return len

    def _collate(self, epoch: int, rows: list[int], step: list[int]) -> TitleBatch:
        return _batch(self.training, rows, len(step))

    def _validation_groups(self) -> list[list[int]]:
        return chunks(len(self.held_out), self.passages_per_step)

    def _validation_batch(self, rows: list[int]) -> TitleBatch:
        return _batch(self.held_out, rows, len(rows))


def _batch(of: Rows, rows: list[int], step_passages: int) -> TitleBatch:
    """The batch of some rows; of none on a rank without data."""
    features_BF = torch.tensor([of[row][0] for row in rows]).reshape(-1, FEATURES)
    return TitleBatch(features_BF, torch.tensor([float(of[row][1]) for row in rows]), torch.tensor(rows), step_passages)
