"""LightningDataModule of retrieval feedback for the extractive rewriter: batches questions with their passages and candidate choices of
words.

Shape legend: G groups (a question with its candidates), P pairs (question, passage), T tokens, N candidates (padded), D decisions on words
(padded).
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from common.checks import check_at_least
from common.errors import DataError, UserError
from common.feedback import WordFeedback
from common.progress import track
from common.records import Question, clean
from datamodules.examples.splits import Source, check_split, validation_share
from datamodules.examples.step_loader import StepData, plan_steps
from datamodules.formats.feedback import MANIFEST, ROWS, WORD, read_manifest, read_word_feedback
from models.dmqr.word_policy import Decisions, WordPolicy, decisions_of
from models.dmqr.word_tokenizer import WordPair
from models.length_batching import length_batches

if TYPE_CHECKING:
    from models.dmqr.word_selector import WordSelector


@dataclass
class CandidateTable:
    """What is known of the candidates of G groups before training; padded candidates are unknown, with zeros."""

    rewards_GN: Tensor
    known_GN: Tensor  # bool
    sampled_GN: Tensor  # log-probabilities by the policy that made them, nats
    times_GN: Tensor  # how often each was sampled
    tokens_GN: Tensor  # decisions of each: the question's and its passages' words


class BatchGroups:
    """The groups of a batch, in order.  No collection and no dataclass, so that Lightning does not look for tensors in it."""

    def __init__(self, groups: "Sequence[WordGroup]") -> None:
        self.decisions = [each.decisions for each in groups]
        self.pairs = [len(each.pairs) for each in groups]  # of each group


@dataclass
class WordFeedbackBatch:
    """The groups of one rank, with their P pairs of at most T tokens."""

    ids_PT: Tensor
    types_PT: Tensor  # segments
    attention_PT: Tensor
    groups: BatchGroups
    chosen_GND: Tensor  # bool: whether the candidate uses the word
    reference_GD: Tensor  # z by the model that training starts from, nats; 0 for padding, and before they are computed
    candidates: CandidateTable
    step_candidates: CandidateTable  # of the optimizer step, over all ranks and accumulated batches
    weights_G: Tensor  # 1.0; 0.0 for a dummy group on a rank without data
    rows_G: Tensor  # index of each group in the training or the validation set

    @property
    def examples(self) -> int:
        """Number of (question, passage) pairs."""
        return len(self.ids_PT)

    @property
    def tokens(self) -> int:
        """Number of tokens, padding included."""
        return self.ids_PT.numel()


@dataclass
class WordGroup:
    """A question with its passages, tokenized, and its candidates as decisions."""

    feedback: WordFeedback
    pairs: list[WordPair]
    decisions: Decisions
    chosen_ND: Tensor  # bool
    reference_D: Tensor  # z by the starting model; zeros until computed

    @property
    def longest(self) -> int:
        """Tokens of its longest pair."""
        return max(len(each.ids) for each in self.pairs)

    @property
    def varied(self) -> bool:
        """Whether the rewards of its candidates differ: else there is nothing to learn."""
        return len({each.reward for each in self.feedback.candidates}) > 1


class WordFeedbackData(StepData):
    """Questions with feedback passages and rewarded choices of words, which `infer.py feedback` wrote.

    A unit of a step is one question: each of its (question, passage) pairs is computed once, whatever the number of candidates.
    Training questions whose candidates all have the same reward are left out and counted.  Questions that are too long for the
    model are skipped and counted.

    Args:
        train: Folders that `infer.py feedback` wrote, as {layout: word_feedback, path: FOLDER}.
        validation: Folders of the same kind; a hash split of the training questions when empty.
        validation_fraction: Share of the questions that the hash split holds out, in (0, 1).
        questions_per_step: Average questions of one optimizer step, over all ranks and accumulated batches.
        tokens_per_validation_batch: Maximum padded tokens of one validation batch, per rank.
        sampling_seed: Seed of the order.

    Raises:
        UserError: If there is no training folder, a layout is another one, or a value is out of range.
    """

    step_option, examples_name = "questions_per_step", "pairs"

    def __init__(
        self,
        train: list[Source],
        validation: list[Source] | None = None,
        validation_fraction: float = 0.1,
        questions_per_step: int = 8,
        tokens_per_validation_batch: int = 4096,
        sampling_seed: int = 0,
    ) -> None:
        super().__init__()
        check_split(train, validation_fraction)
        check_at_least(
            1, questions_per_step=questions_per_step, tokens_per_validation_batch=tokens_per_validation_batch
        )
        self.train_sources, self.validation_sources = train, validation or []
        self.sources = [*self.train_sources, *self.validation_sources]
        for source in self.sources:
            if source.layout != WORD:
                raise UserError(
                    f"{source.path}: the layout is {source.layout!r}, but this data module reads {WORD}: write such a folder with "
                    "`python infer.py feedback` and an extractive rewriter."
                )
        self.validation_fraction, self.questions_per_step = validation_fraction, questions_per_step
        self.tokens_per_validation_batch, self.sampling_seed = tokens_per_validation_batch, sampling_seed
        self.groups: list[WordGroup] = []  # of training
        self.held_out: list[WordGroup] = []
        self.manifests: list[dict[str, Any]] = []  # of all folders
        self.policy: WordPolicy  # of all folders; from `setup` on

    @property
    def files(self) -> list[str]:
        """Paths of all input files."""
        return [str(Path(source.path) / name) for source in self.sources for name in (ROWS, MANIFEST)]

    def setup(self, stage: str) -> None:
        """Read and split the questions, tokenize their pairs, print statistics (once).

        Raises:
            MissingInputError: If a folder is missing.
            DataError: If a folder is invalid, two folders have other policies, or there is nothing to learn or to validate.
        """
        if self.groups:
            return
        self.manifests = [read_manifest(source.path) for source in self.sources]
        self.policy = self._one_policy()
        train, held_out = self._split()
        skipped: list[str] = []
        groups = self._groups(train, skipped)
        self.held_out = self._groups(held_out, skipped)
        self.groups = [each for each in groups if each.varied]
        if not self.groups or not any(each.varied for each in self.held_out):
            raise DataError(
                f"{len(self.groups)} training questions and {sum(each.varied for each in self.held_out)} validation questions from "
                f"{[source.path for source in self.sources]} have candidates of different rewards: sample more of them, or change "
                "data.validation_fraction."
            )
        self.steps_per_epoch = max(1, round(len(self.groups) / self.questions_per_step))
        self.units_per_step = len(self.groups) / self.steps_per_epoch
        self.examples_per_unit = sum(len(each.pairs) for each in self.groups) / len(self.groups)
        self.audit = self._audit(len(groups), skipped)
        self.print_audit()

    def largest_batch(self) -> tuple[int, int]:
        """Pairs and length of the largest training batch of the first epoch, over all ranks and accumulated batches."""
        parts = self.trainer.world_size * self.trainer.accumulate_grad_batches
        shapes = []
        for step in self._plan(0):
            for index in range(parts):
                groups = [self.groups[row] for row in step[index::parts]]
                shapes.append(
                    (sum(len(each.pairs) for each in groups), max((each.longest for each in groups), default=0))
                )
        return max(shapes, key=lambda shape: (shape[0] * shape[1], shape[1]))

    def batches_of(self, groups: Sequence[WordGroup]) -> list[list[int]]:
        """Places of the groups in batches of at most `tokens_per_validation_batch` padded tokens."""
        longest = max((len(each.pairs) for each in groups), default=1)
        return length_batches([longest * each.longest for each in groups], self.tokens_per_validation_batch)

    def batch(
        self, groups: Sequence[WordGroup], rows: Sequence[int], step: Sequence[int] = (), weight: float = 1.0
    ) -> WordFeedbackBatch:
        """A batch of some groups.

        Args:
            groups: All of them.
            rows: Which of them.
            step: Those of the whole optimizer step, where there is one.
            weight: 0.0 for dummy groups, whose candidates count as unknown.
        """
        chosen = [groups[row] for row in rows]
        table = _table(chosen)
        if not weight:
            unknown_GN, never_GN = torch.zeros_like(table.known_GN), torch.zeros_like(table.times_GN)
            table = replace(table, known_GN=unknown_GN, times_GN=never_GN)
        return WordFeedbackBatch(
            *self._selector.encode.pad([pair for each in chosen for pair in each.pairs]),
            BatchGroups(chosen),
            _padded([each.chosen_ND for each in chosen]),
            _padded([each.reference_D for each in chosen]),
            table,
            _table([groups[row] for row in step]) if step else table,
            torch.full((len(rows),), weight),
            torch.tensor(rows),
        )

    @property
    def _selector(self) -> "WordSelector":
        return self.trainer.lightning_module.selector

    def _one_policy(self) -> WordPolicy:
        policies = [WordPolicy.of(each) for each in self.manifests]
        for source, policy in zip(self.sources, policies, strict=True):
            if policy != policies[0]:
                raise DataError(
                    f"{source.path} was sampled with the policy {policy.facts}, {self.sources[0].path} with {policies[0].facts}: "
                    "give folders of one policy."
                )
        return policies[0]

    def _split(self) -> tuple[list[WordFeedback], list[WordFeedback]]:
        """Training and validation questions; no question is on both sides."""
        train = _read(self.train_sources)
        if self.validation_sources:
            held_out = _read(self.validation_sources)
            known = {clean(each.question) for each in held_out}
            return [each for each in train if clean(each.question) not in known], held_out
        shares = [validation_share(Question("", each.question)) for each in train]
        return (
            [each for each, share in zip(train, shares, strict=True) if share >= self.validation_fraction],
            [each for each, share in zip(train, shares, strict=True) if share < self.validation_fraction],
        )

    def _groups(self, questions: Sequence[WordFeedback], skipped: list[str]) -> list[WordGroup]:
        """The groups of the questions that fit; ids of the others go to `skipped`."""
        found = []
        for each in track(questions, len(questions), "tokenizing questions with passages"):
            pairs = self._selector.encode([(each.question, passage) for passage in each.passages])
            if not pairs or any(pair is None for pair in pairs):
                skipped.append(each.question_id)
                continue
            found.append(word_group(each, [pair for pair in pairs if pair], self.policy))
        return found

    def _plan(self, epoch: int) -> list[list[int]]:
        rng = random.Random(f"plan/{self.sampling_seed}/{epoch}")
        return plan_steps([len(each.pairs) * each.longest for each in self.groups], self.steps_per_epoch, rng)

    def _collate(self, epoch: int, rows: list[int], step: list[int]) -> WordFeedbackBatch:
        return self.batch(self.groups, rows or step[:1], step, float(bool(rows)))

    def _validation_groups(self) -> list[list[int]]:
        return self.batches_of(self.held_out)

    def _validation_batch(self, rows: list[int]) -> WordFeedbackBatch:
        return self.batch(self.held_out, rows)

    def _audit(self, train: int, skipped: Sequence[str]) -> dict[str, object]:
        count = len(self.groups)
        candidates = [len(each.feedback.candidates) for each in self.groups]
        best = [max(one.reward for one in each.feedback.candidates) for each in self.groups]
        alone = [each.feedback.question_reward for each in self.groups]
        return {
            "questions": count,
            "questions_whose_candidates_have_equal_rewards": train - count,
            "validation_questions": len(self.held_out),
            "skipped_long_questions": len(skipped),
            "candidates": f"{sum(candidates) / count:.1f} per question, {max(candidates)} at most",
            "words": f"{sum(len(each.decisions) for each in self.groups) / count:.1f} per question",
            "reward": f"{sum(alone) / count:.4f} of questions, {sum(best) / count:.4f} of their best candidates",
            "tokens": f"{max(each.longest for each in self.groups)} at most in a pair",
            "steps_per_epoch": self.steps_per_epoch,
        }


def word_group(feedback: WordFeedback, pairs: list[WordPair], policy: WordPolicy) -> WordGroup:
    """A question's decisions, and which words each candidate uses.

    Args:
        feedback: The question with its candidates.
        pairs: It with each of its passages.
        policy: Says which words are decided.

    Raises:
        DataError: If a candidate chooses a word that is not read.
    """
    decisions = decisions_of(pairs, policy)
    try:
        chosen = [decisions.chosen(each.left_out, each.joins) for each in feedback.candidates]
    except DataError as error:
        raise DataError(
            f"question {feedback.question_id}: {error}: name as model.pretrained the serving folder that the candidates were sampled "
            "from."
        ) from error
    return WordGroup(feedback, pairs, decisions, torch.tensor(chosen), torch.zeros(len(decisions)))


def _padded(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors of equally many dimensions in one, (G, ...); zeros for padding."""
    shape = [max(sizes) for sizes in zip(*(each.shape for each in tensors), strict=True)]
    result = torch.zeros(len(tensors), *shape, dtype=tensors[0].dtype)
    for row, each in enumerate(tensors):
        result[row][tuple(slice(0, size) for size in each.shape)] = each
    return result


def _table(groups: Sequence[WordGroup]) -> CandidateTable:
    counts = [len(each.feedback.candidates) for each in groups]
    known_GN = torch.arange(max(counts))[None, :] < torch.tensor(counts)[:, None]

    def filled(values: list[float], dtype: torch.dtype = torch.float32) -> Tensor:
        result_GN = torch.zeros(known_GN.shape, dtype=dtype)
        result_GN[known_GN] = torch.tensor(values, dtype=dtype)
        return result_GN

    candidates = [one for each in groups for one in each.feedback.candidates]
    decisions_GN = torch.tensor([max(1, len(each.decisions)) for each in groups])[:, None].expand(known_GN.shape)
    return CandidateTable(
        filled([each.reward for each in candidates]),
        known_GN,
        filled([each.log_probability for each in candidates]),
        filled([each.times for each in candidates]),
        decisions_GN,
    )


def _read(sources: Sequence[Source]) -> list[WordFeedback]:
    return [each for source in sources for each in read_word_feedback(source.path)[: source.limit]]
