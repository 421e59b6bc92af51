"""LightningDataModule of the adaptive choice.

Reads the gain in retrieval of each strategy's rewrite, and batches questions into optimizer steps.

Shape legend: P questions, T tokens, S strategies.
"""

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from common.errors import DataError
from common.preferences import RewritePreferences
from common.ranges import NonNegativeFloat, OpenShare, PositiveInt
from common.records import Question, nfkc
from common.validation_split import validation_share
from datamodules.examples.batches import TokenBatch
from datamodules.examples.data_files import DataFile
from datamodules.examples.step_loader import StepData, padded, plan_steps
from datamodules.formats.preferences import LAYOUT, ROWS, read_manifest, read_rewrite_preferences
from datamodules.formats.row_counts import RowCounts
from models.length_batching import length_batches

Targets = Literal["each", "best"]
Asked = tuple[str, tuple[str, ...]]  # a question and its earlier turns, oldest first


@dataclass
class StrategyClassifierBatch(TokenBatch):
    """P questions of at most T tokens on one rank."""

    ids_PT: Tensor
    attention_PT: Tensor
    gains_PS: Tensor  # reward of the rewrite minus that of the question; NaN where there is no rewrite
    targets_PS: Tensor  # 1.0 where the strategy should be chosen, else 0.0; NaN where there is no rewrite
    weights_P: Tensor  # 1.0; 0.0 for a dummy question on a rank without data
    step_targets: int  # known targets of the optimizer step, over all ranks and accumulated batches
    rows_P: Tensor  # index of each question in the training or the validation set


@dataclass(frozen=True)
class JudgedQuestion:
    """A question with the gain of each strategy's rewrite."""

    question: str
    history: tuple[str, ...]
    ids: list[int]
    gains: tuple[float, ...]  # by strategy; NaN where there is no rewrite


class StrategyClassifierData(StepData):
    """Questions with a target for each strategy: whether its rewrite improves retrieval.

    The gain of a strategy is the reward of its greedy rewrite minus the reward of the question alone. It helps if its
    gain exceeds `min_gain`. Validation questions come from a fixed hash split of the training folders or from separate
    folders. A question in several folders has the mean of its gains, so that a chance gain with one retriever counts
    less. Questions that are too long for `model.max_tokens` are cut and counted.

    Args:
        train: Folders that `infer.py preferences --samples 0` wrote, as {layout: rewrite_preferences, path: FOLDER}.
        validation: Folders of the same kind; a hash split of the training folders when empty.
        validation_fraction: Share of the questions that the hash split holds out.
        min_gain: Gain above which a rewrite is worth its search.
        targets: Which targets of a question are 1. `each`: of every strategy that helps. `best`: of the one that helps
            most, so that of several that find the same passages one is chosen; of those within `min_gain` of it, the
            one that gains most over all training questions.
        tokens_per_step: Average tokens of one optimizer step, over all ranks and accumulated batches.
        tokens_per_validation_batch: Maximum padded tokens of one validation batch, per rank.
        sampling_seed: Seed of the order.
        strict: Whether an unusual row (null, empty, repeated) is an error instead of a line in the statistics.

    Raises:
        UserError: If there is no training folder, or a layout is another one.
    """

    step_option, examples_name = "tokens_per_step", "questions"

    def __init__(
        self,
        train: list[DataFile],
        validation: list[DataFile] | None = None,
        validation_fraction: OpenShare = 0.1,
        min_gain: NonNegativeFloat = 0.01,
        targets: Targets = "each",
        tokens_per_step: PositiveInt = 2048,
        tokens_per_validation_batch: PositiveInt = 4096,
        sampling_seed: int = 0,
        strict: bool = False,
    ) -> None:
        super().__init__()
        self._name_files(train, validation, validation_fraction)
        self._accept(LAYOUT, "a folder with `python infer.py preferences --samples 0`")
        self.min_gain, self.kind = min_gain, targets
        self.tokens_per_step, self.tokens_per_validation_batch = tokens_per_step, tokens_per_validation_batch
        self.sampling_seed = sampling_seed
        self._unusual = RowCounts(strict)
        self.questions: list[JudgedQuestion] = []  # of training
        self.held_out: list[JudgedQuestion] = []

    @property
    def files(self) -> list[str]:
        """Paths of all input files."""
        return [str(Path(source.path) / ROWS) for source in self.sources]

    @property
    def manifests(self) -> list[dict[str, Any]]:
        """The origin of the training folders: rewriter, retriever, reward."""
        dropped = ("counts", "seconds", "sha256")
        found = [read_manifest(source.path) for source in self.train_sources]
        return [{name: value for name, value in each.items() if name not in dropped} for each in found]

    def setup(self, stage: str) -> None:
        """Read and split the questions, tokenize them, print statistics (once).

        Raises:
            DataError: If a folder is invalid or lacks a strategy, or training or validation has no rewrite that gains.
        """
        if self.questions:
            return
        train, held_out = self._split()
        self.questions, self.held_out = self._tokenized(train), self._tokenized(held_out)
        useful = [
            sum(any(map(self._is_useful, each.gains)) for each in side) for side in (self.questions, self.held_out)
        ]
        if not all(useful):
            raise DataError(
                f"{useful[0]} training questions and {useful[1]} validation questions have a rewrite that gains, none "
                f"in {self._lacking(not useful[0])}: give more questions, lower data.min_gain, or change "
                "data.validation_fraction."
            )
        means = [
            _mean([g for g in column if not math.isnan(g)])
            for column in zip(*(e.gains for e in self.questions), strict=True)
        ]
        self.preferred = sorted(range(len(means)), key=lambda place: -means[place])
        total = sum(len(each.ids) for each in self.questions)
        self.steps_per_epoch = max(1, min(len(self.questions), math.ceil(total / self.tokens_per_step)))
        self.units_per_step = len(self.questions) / self.steps_per_epoch
        self.audit = self._audit(useful)
        self.print_audit()

    def targets(self, gains: Sequence[float]) -> list[float]:
        """The target of each strategy, from its gain; NaN where there is no rewrite."""
        best = max(filter(self._is_useful, gains), default=math.inf)
        chosen = [place for place in self.preferred if self._is_useful(gains[place])]
        if self.kind == "best":
            chosen = [place for place in chosen if gains[place] >= best - self.min_gain][:1]
        return [gain if math.isnan(gain) else float(place in chosen) for place, gain in enumerate(gains)]

    def _is_useful(self, gain: float) -> bool:
        return gain > self.min_gain  # false for NaN

    def _split(self) -> tuple[dict[Asked, tuple[float, ...]], ...]:
        """Gains of the training and of the validation questions; no dialogue is on both sides."""
        train = self._gains(self.train_sources)
        if self.validation_sources:
            held_out = self._gains(self.validation_sources)
            known = {_first_turn(key) for key in held_out}
            return {key: gains for key, gains in train.items() if _first_turn(key) not in known}, held_out
        shares = {key: validation_share(Question("", _first_turn(key))) for key in train}
        return (
            {key: gains for key, gains in train.items() if shares[key] >= self.validation_fraction},
            {key: gains for key, gains in train.items() if shares[key] < self.validation_fraction},
        )

    def _gains(self, sources: Iterable[DataFile]) -> dict[Asked, tuple[float, ...]]:
        """The gain of each of the model's strategies, by question and earlier turns; the mean over the folders."""
        found: dict[Asked, dict[str, list[float]]] = {}
        for source in sources:
            rows = read_rewrite_preferences(source.path, self._unusual)
            there = dict.fromkeys(each.strategy for each in rows)
            if missing := [name for name in self.module.chooser.strategies if name not in there]:
                raise DataError(
                    f"{source.path} has no rewrites by the strategy {missing[0]!r}, which model.strategies names; it "
                    f"has: {', '.join(there)}."
                )
            own: dict[Asked, dict[str, float]] = {}
            for each in rows:
                key = nfkc(each.question), tuple(filter(None, map(nfkc, each.history)))
                own.setdefault(key, {})[each.strategy] = gain_of(each, source.path)
            for key, gains in list(own.items())[: source.limit]:
                for strategy, gain in gains.items():
                    found.setdefault(key, {}).setdefault(strategy, []).append(gain)
        return {
            key: tuple(_mean(own.get(strategy, [])) for strategy in self.module.chooser.strategies)
            for key, own in found.items()
        }

    def _tokenized(self, gains: dict[Asked, tuple[float, ...]]) -> list[JudgedQuestion]:
        inputs = self.module.chooser.encode([*gains])
        return [JudgedQuestion(*key, ids, own) for (key, own), ids in zip(gains.items(), inputs, strict=True)]

    def _plan(self, epoch: int) -> list[list[int]]:
        rng = random.Random(f"plan/{self.sampling_seed}/{epoch}")
        return plan_steps([len(each.ids) for each in self.questions], self.steps_per_epoch, rng)

    def _tokens_of(self, epoch: int) -> Callable[[Sequence[int]], int]:
        return padded([len(each.ids) for each in self.questions])

    def _collate(self, epoch: int, rows: list[int], step: list[int]) -> StrategyClassifierBatch:
        return self._batch(self.questions, rows or step[:1], step, float(bool(rows)))

    def _validation_groups(self) -> list[list[int]]:
        return length_batches([len(each.ids) for each in self.held_out], self.tokens_per_validation_batch)

    def _validation_batch(self, rows: list[int]) -> StrategyClassifierBatch:
        return self._batch(self.held_out, rows, rows, 1.0)

    def _batch(
        self, questions: Sequence[JudgedQuestion], rows: list[int], step: list[int], weight: float
    ) -> StrategyClassifierBatch:
        ids_PT, attention_PT = self.module.chooser.encode.pad([questions[row].ids for row in rows])
        gains_PS = torch.tensor([questions[row].gains for row in rows], dtype=torch.float32)
        targets_PS = torch.tensor([self.targets(questions[row].gains) for row in rows])
        known = sum(not math.isnan(gain) for row in step for gain in questions[row].gains)
        weights_P = torch.full((len(rows),), weight)
        return StrategyClassifierBatch(ids_PT, attention_PT, gains_PS, targets_PS, weights_P, known, torch.tensor(rows))

    def _audit(self, useful: Sequence[int]) -> dict[str, object]:
        shares = {}
        for place, strategy in enumerate(self.module.chooser.strategies):
            known = [each.gains[place] for each in self.questions if not math.isnan(each.gains[place])]
            share = sum(map(self._is_useful, known)) / max(1, len(known))
            shares[f"gains_by_{strategy}"] = f"{len(known)} rewrites, {share:.1%} gain, mean {_mean(known):+.3f}"
        return {
            "questions": len(self.questions),
            "questions_with_a_rewrite_that_gains": useful[0],
            **shares,
            "tokens": f"{max(len(each.ids) for each in self.questions)} at most",
            "questions_cut": sum(
                self.module.chooser.encode.cut_note(each.question) != "" for each in self.questions + self.held_out
            ),
            "validation_questions": len(self.held_out),
            "validation_questions_with_a_rewrite_that_gains": useful[1],
            "steps_per_epoch": self.steps_per_epoch,
            **self._unusual.audit(),
        }


def gain_of(row: RewritePreferences, folder: str) -> float:
    """Reward of the greedy rewrite minus that of the question.

    Raises:
        DataError: If there is no greedy rewrite; names the folder.
    """
    greedy = [each for each in row.candidates if each.greedy]
    if not greedy:
        raise DataError(
            f"{folder}: question {row.question_id} has no greedy rewrite by {row.strategy}: run `python "
            "infer.py preferences` again."
        )
    return greedy[0].reward - row.question_reward


def _first_turn(asked: Asked) -> str:
    question, history = asked
    return history[0] if history else question


def _mean(values: Sequence[float]) -> float:
    """NaN without values."""
    return sum(values) / len(values) if values else math.nan
