"""Planning of optimizer steps, and data loaders that split each step over ranks and accumulated batches.

Every step is planned globally and then divided into (ranks x accumulation) parts, so the examples of a step do not
depend on the number of ranks or on accumulation; the loss divides by the step's global count.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import pytorch_lightning as pl
from torch import Tensor

from datamodules.examples.audit import lines
from datamodules.examples.computed import Computed
from datamodules.examples.splits import Source

Batch = TypeVar("Batch")


class TokenBatch:
    """The size of a batch of P sequences of at most T tokens; a base class."""

    ids_PT: Tensor

    @property
    def examples(self) -> int:
        """Number of sequences: triples, pairs, rewrites, questions."""
        return len(self.ids_PT)

    @property
    def tokens(self) -> int:
        """Number of tokens, padding included; those of an encoder-decoder's targets are not among the input's."""
        return self.ids_PT.numel()


@dataclass
class TripleBatch(TokenBatch):
    """P triples or chains of at most T tokens on one rank."""

    ids_PT: Tensor
    attention_PT: Tensor
    labels_P: Tensor  # 1.0 positive, 0.0 negative
    weights_P: Tensor  # 1.0; 0.0 for a dummy triple on a rank without data
    step_triples: int  # triples of the optimizer step, over all ranks and accumulated batches
    rows_P: Tensor  # index of each triple in the epoch or the validation set
    groups_P: Tensor  # number in this batch of the group whose candidates compete; each triple alone where none do
    step_groups: int  # groups of the optimizer step, over all ranks and accumulated batches


def plan_steps(lengths: Sequence[int], steps: int, rng: random.Random, jitter: float = 0.1) -> list[list[int]]:
    """Divide an epoch into a fixed number of steps of similar lengths and nearly equal numbers of tokens.

    Examples are sorted by noisy length (steps differ between epochs) and cut at equal token sums; steps are shuffled.

    Args:
        lengths: Tokens of each example.
        steps: Number of steps; at most one per example.
        rng: Source of randomness.
        jitter: Maximum relative noise of the lengths, in [0, 1].

    Returns:
        `steps` non-empty lists of example indices, which partition all examples.
    """
    order = sorted(range(len(lengths)), key=lambda row: lengths[row] * (1 + jitter * rng.uniform(-1, 1)))
    total, done = sum(lengths), 0
    groups: list[list[int]] = [[]]
    for position, row in enumerate(order):
        must_cut = len(order) - position <= steps - len(groups)  # only one example left per remaining step
        if groups[-1] and len(groups) < steps and (must_cut or done >= total * len(groups) / steps):
            groups.append([])
        groups[-1].append(row)
        done += lengths[row]
    rng.shuffle(groups)
    return groups


def part(step: Sequence[int], index: int, parts: int) -> list[int]:
    """The examples of a step for one rank and one accumulated batch: every `parts`-th one, starting at `index`."""
    return list(step[index::parts])


class StepLoader(Generic[Batch]):
    """The training batches of one rank.  Stateful: a run resumes exactly in the middle of an epoch.

    Args:
        steps_of: Epoch -> planned steps (lists of example indices).
        collate: (epoch, indices, indices of the whole step) -> batch; for no indices a dummy batch of weight 0.
        steps_per_epoch: Steps per epoch.
        rank: Rank of this process, from 0.
        ranks: Number of processes.
        accumulate: Batches that Lightning accumulates per optimizer step.
    """

    def __init__(
        self,
        steps_of: Callable[[int], list[list[int]]],
        collate: Callable[[int, list[int], list[int]], Batch],
        steps_per_epoch: int,
        rank: int = 0,
        ranks: int = 1,
        accumulate: int = 1,
    ) -> None:
        self.steps_of, self.collate = steps_of, collate
        self.steps_per_epoch, self.rank, self.ranks, self.accumulate = steps_per_epoch, rank, ranks, accumulate
        self.epoch, self.next_batch = -1, 0

    def __len__(self) -> int:
        return self.steps_per_epoch * self.accumulate

    def __iter__(self) -> Iterator[Batch]:
        # Lightning does not run code after the last yield, so the epoch advances when the next iteration begins.
        if self.epoch < 0 or self.next_batch >= len(self):
            self.epoch, self.next_batch = self.epoch + 1, 0
        epoch = self.epoch
        steps = self.steps_of(epoch)
        while self.next_batch < len(self):
            number, accumulated = divmod(self.next_batch, self.accumulate)
            self.next_batch += 1
            step = steps[number]
            yield self.collate(
                epoch, part(step, accumulated * self.ranks + self.rank, self.ranks * self.accumulate), step
            )

    def state_dict(self) -> dict[str, int]:
        """Position in optimizer steps; independent of the number of ranks and of accumulation."""
        return {"epoch": self.epoch, "next_step": self.next_batch // self.accumulate}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue from a saved position."""
        self.epoch, self.next_batch = state["epoch"], state["next_step"] * self.accumulate


class StepData(pl.LightningDataModule):
    """Base class of the data modules: the loaders of this rank.  A subclass sets or implements what is declared here."""

    steps_per_epoch: int
    step_option: ClassVar[str]  # the option that sets the size of an optimizer step
    examples_name: ClassVar[str] = "examples"
    units_per_step: float  # mean number of what is divided among the ranks: triples, questions, sequences
    examples_per_unit: float = 1.0  # rows of a model's input that each of them gives
    audit: dict[str, Any]  # what `setup` found in the files
    sources: list[Source]  # files of questions or passages that training and validation read
    _plan: Any  # epoch -> its steps, each a list of positions
    _collate: Any  # (epoch, this rank's positions, positions of the whole step) -> batch
    _validation_groups: Any  # () -> positions of every validation batch, over all ranks
    _validation_batch: Any  # positions -> batch

    def train_dataloader(self) -> StepLoader:
        """Batches of this rank, planned globally."""
        trainer = self.trainer
        return StepLoader(
            self._plan, self._collate, self.steps_per_epoch,
            trainer.global_rank, trainer.world_size, trainer.accumulate_grad_batches,
        )  # fmt: skip

    def val_dataloader(self) -> Computed:
        """Batches of this rank; the last one is repeated until all ranks have equally many (row numbers show repeats).

        They are the same in every pass, and made when they are needed.  Lightning takes a bare list for several loaders; a
        DataLoader would draw a seed from torch's generator and so change the training that follows.
        """
        groups, trainer = self._validation_groups(), self.trainer
        groups += groups[-1:] * (-len(groups) % trainer.world_size)
        mine = groups[trainer.global_rank :: trainer.world_size]
        return Computed(len(mine), lambda number: self._validation_batch(mine[number]))

    def proof_batch(self) -> Any:
        """Validation examples on which an export is compared with what was trained: the first batch."""
        return self._validation_batch(self._validation_groups()[0])

    def print_audit(self) -> None:
        """Print `audit` on rank 0."""
        if self.trainer.is_global_zero:
            print("\n".join(lines(self.audit)), flush=True)


def chunks(count: int, size: int) -> list[list[int]]:
    """Positions 0 to count - 1 in order, `size` to a list."""
    return [list(range(start, min(start + size, count))) for start in range(0, count, size)]
