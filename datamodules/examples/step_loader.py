"""Planning of optimizer steps, and data loaders that split each step over ranks and accumulated batches.

Every step is planned globally and then divided into (ranks x accumulation) parts, so the examples of a step do not
depend on the number of ranks or on accumulation; the loss divides by the step's global count.
"""

import os
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import starmap
from typing import Any, ClassVar, Generic, TypeVar

import pytorch_lightning as pl

from common.errors import UserError
from common.shown_text import terminal
from datamodules.examples.audit import lines
from datamodules.examples.data_files import DataFile
from datamodules.examples.lazy_sequence import LazySequence
from datamodules.examples.prefetch import PrefetchedSequence, Prefetcher
from datamodules.formats.recognition import AUTO

Made = TypeVar("Made")

MAX_WORKERS = 4  # of each rank, where their number is not given


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


class StepLoader(Generic[Made]):
    """The training batches of one rank.  Stateful: a run resumes exactly in the middle of an epoch.

    Args:
        steps_of: Epoch -> planned steps (lists of example indices).
        collate: (epoch, indices, indices of the whole step) -> batch; for no indices a dummy batch of weight 0.
        steps_per_epoch: Steps per epoch.
        rank: Rank of this process, from 0.
        ranks: Number of processes.
        accumulate: Batches that Lightning accumulates per optimizer step.
        ahead: Makes the batches of what `collate` returns, if these are requests.
        repeated: First batches of the first epoch that every epoch has, as `trainer.overfit_batches` asks; 0 for all
            batches of epochs of their own.
    """

    def __init__(
        self,
        steps_of: Callable[[int], list[list[int]]],
        collate: Callable[[int, list[int], list[int]], Any],
        steps_per_epoch: int,
        rank: int = 0,
        ranks: int = 1,
        accumulate: int = 1,
        ahead: Callable[[Iterator[Any]], Iterator[Made]] = iter,
        repeated: int = 0,
    ) -> None:
        self.steps_of, self.collate, self.ahead, self.repeated = steps_of, collate, ahead, repeated
        self.steps_per_epoch, self.rank, self.ranks, self.accumulate = steps_per_epoch, rank, ranks, accumulate
        self.epoch, self.next_batch = -1, 0

    def __len__(self) -> int:
        return self.steps_per_epoch * self.accumulate

    def __iter__(self) -> Iterator[Made]:
        # Lightning does not run code after the last yield, so the epoch advances when the next iteration begins.
        if self.epoch < 0 or self.next_batch >= (self.repeated or len(self)):
            self.epoch, self.next_batch = self.epoch + 1, 0
        for batch in self.ahead(starmap(self.collate, self.parts(self.epoch, self.next_batch))):
            self.next_batch += 1  # counts what is handed out, however many are made
            yield batch

    def parts(self, epoch: int, first: int = 0) -> Iterator[tuple[int, list[int], list[int]]]:
        """Arguments of `collate` for the batches of an epoch."""
        epoch = 0 if self.repeated else epoch
        steps = self.steps_of(epoch)
        for batch in range(first, len(self)):
            number, accumulated = divmod(batch, self.accumulate)
            mine = part(steps[number], accumulated * self.ranks + self.rank, self.ranks * self.accumulate)
            yield epoch, mine, steps[number]

    def state_dict(self) -> dict[str, int]:
        """Position in optimizer steps; independent of the number of ranks and of accumulation."""
        return {"epoch": self.epoch, "next_step": self.next_batch // self.accumulate}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue from a saved position."""
        self.epoch, self.next_batch = state["epoch"], state["next_step"] * self.accumulate


class StepData(pl.LightningDataModule):
    """Base class of the data modules: the loaders of this rank.

    A subclass sets or implements the members declared here.

    One with an option `workers` implements the requests and the code that makes batches of them; the others implement
    `_collate` and `_validation_batch`.
    """

    steps_per_epoch: int
    step_option: ClassVar[str]  # the option that sets the size of an optimizer step
    examples_name: ClassVar[str] = "examples"
    units_per_step: float  # mean number of what is divided among the ranks: triples, questions, sequences
    examples_per_unit: float = 1.0  # rows of a model's input that each of them gives
    audit: dict[str, Any]  # what `setup` found in the files
    sources: Sequence[Any]  # files of questions or passages that training and validation read
    train_sources: Sequence[Any]
    validation_sources: Sequence[Any]  # empty where validation is split off by hash
    validation_fraction: float  # of the split
    search: Any = None  # `datamodules.cache.search_results.Search`: a retriever that searches before training
    search_results: Any = None  # `datamodules.cache.search_results.SearchResults`: files of that search
    workers: int | None = 0  # processes of each rank that make batches; None: chosen by the device
    _plan: Any  # epoch -> its steps, each a list of positions
    _tokens_of: Any  # epoch -> function of a batch's positions: tokens with padding, or what they grow with
    _request: Any  # (epoch, this rank's positions, positions of the whole step) -> small request of a batch
    _training_batches: Any  # request -> batch; can be pickled
    _validation_groups: Any  # () -> positions of every validation batch, over all ranks
    _validation_request: Any  # positions -> request
    _validation_batches: Any  # request -> batch; can be pickled
    _in_workers: Prefetcher | None = None  # makes training batches

    def _name_files(
        self,
        train: Sequence[DataFile],
        validation: Sequence[DataFile] | None,
        validation_fraction: float,
        corpus: str | None = None,
    ) -> None:
        """Remember the files of training and validation; `corpus` is that of question files that name none.

        Raises:
            UserError: If there is no training file.
        """
        if not train:
            raise UserError("data.train names no file: give at least one, as --data.train FILE.")
        self.train_sources, self.validation_sources = [*train], [*(validation or [])]
        for source in (*self.train_sources, *self.validation_sources) if corpus else ():
            source.corpus = source.corpus or corpus
        self.sources, self.validation_fraction = [*self.train_sources, *self.validation_sources], validation_fraction

    def _accept(self, layout: str, cure: str) -> None:
        """Raise UserError if a file has another layout; `cure` says how to get one."""
        for source in self.sources:
            if source.layout not in (layout, AUTO):
                raise UserError(
                    f"{source.path}: the layout is {source.layout!r}, but this data module reads {layout}: write such "
                    f"{cure}."
                )

    def _lacking(self, training: bool) -> str:
        """Paths of the files that lack something, for an error: those of training or those of validation."""
        return ", ".join(source.path for source in (self.train_sources if training else self._validation_files))

    @property
    def _or_fraction(self) -> str:
        """The end of an error's advice: another share to hold out, where validation is split off by hash."""
        return "" if self.validation_sources else ", or change data.validation_fraction"

    @property
    def _validation_files(self) -> Sequence[Any]:
        return self.validation_sources or self.train_sources

    @property
    def module(self) -> Any:
        """The LightningModule, with its networks; errors as of its `load`."""
        return self.trainer.lightning_module.load()

    def train_dataloader(self) -> StepLoader:
        """Batches of this rank, planned globally."""
        workers, pin = self._workers()
        if not workers:
            return self._loader(self._collate)
        self._in_workers = Prefetcher(self._training_batches, workers, pin, keep=True)
        if self.trainer.is_global_zero:
            print(f"batches are made by {workers} processes of each rank (data.workers)", flush=True)
        return self._loader(self._request, self._in_workers)

    def val_dataloader(self) -> "LazySequence | PrefetchedSequence":
        """Batches of this rank; the last one is repeated until all ranks have equally many (row numbers show repeats).

        They are the same in every pass, and made when they are needed. Lightning takes a bare list for several loaders;
        a DataLoader would draw a seed from torch's generator and so change the training that follows.
        """
        groups, trainer = self._validation_groups(), self.trainer
        groups += groups[-1:] * (-len(groups) % trainer.world_size)
        mine = groups[trainer.global_rank :: trainer.world_size]
        workers, pin = self._workers()
        if not workers:
            return LazySequence(len(mine), lambda number: self._validation_batch(mine[number]))
        requests = LazySequence(len(mine), lambda number: self._validation_request(mine[number]))
        return PrefetchedSequence(requests, Prefetcher(self._validation_batches, workers, pin))

    def largest_batch(self, epoch: int) -> Any:
        """This rank's training batch with the most tokens by the plan of an epoch, made here; no loader moves."""
        tokens_of = self._tokens_of(epoch)
        parts = self._loader(self._collate).parts(epoch)
        return self._collate(*max(parts, key=lambda each: tokens_of(each[1]) if each[1] else 0))

    def teardown(self, stage: str) -> None:
        """End the workers."""
        if self._in_workers is not None:
            self._in_workers.close()

    def _loader(
        self, collate: Callable[..., Any], ahead: Callable[[Iterator[Any]], Iterator[Any]] = iter
    ) -> StepLoader:
        trainer = self.trainer
        overfit, batches = trainer.overfit_batches, self.steps_per_epoch * trainer.accumulate_grad_batches
        return StepLoader(
            self._plan, collate, self.steps_per_epoch,
            trainer.global_rank, trainer.world_size, trainer.accumulate_grad_batches, ahead,
            repeated=overfit if isinstance(overfit, int) else int(overfit * batches),
        )  # fmt: skip

    def _workers(self) -> tuple[int, bool]:
        """Processes of this rank that make batches, and whether they are pinned.

        A GPU fetches them while it computes.
        """
        if self.workers == 0:
            return 0, False
        cuda = self.trainer.strategy.root_device.type == "cuda"
        if self.workers is not None:
            return self.workers, cuda
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return (max(1, min(MAX_WORKERS, cores // self.trainer.num_devices)) if cuda else 0), cuda

    def _collate(self, epoch: int, rows: list[int], step: list[int]) -> Any:
        """The training batch of some positions, made here."""
        return self._training_batches(self._request(epoch, rows, step))

    def _validation_batch(self, rows: list[int]) -> Any:
        """The validation batch of some positions, made here."""
        return self._validation_batches(self._validation_request(rows))

    def proof_batch(self) -> Any:
        """Validation examples on which an export is compared with what was trained: the first batch."""
        return self._validation_batch(self._validation_groups()[0])

    def print_audit(self) -> None:
        """Print `audit` on rank 0."""
        if self.trainer.is_global_zero:
            print(terminal("\n".join(lines(self.audit))), flush=True)


def padded(lengths: Sequence[int]) -> Callable[[Sequence[int]], int]:
    """Function of the positions of a batch: its tokens, padding included."""
    return lambda rows: len(rows) * max(lengths[row] for row in rows)


def chunks(count: int, size: int) -> list[list[int]]:
    """Positions 0 to count - 1 in order, `size` to a list."""
    return [list(range(start, min(start + size, count))) for start in range(0, count, size)]
