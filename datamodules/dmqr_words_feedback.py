"""LightningDataModule of retrieval feedback for the extractive rewriter.

Batches questions with their passages and candidate choices of words.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.checks import check_at_least, check_share
from common.errors import DataError, UserError
from common.feedback import Reward, WordFeedback
from common.held_out import validation_share
from common.progress import track
from common.records import Question, clean
from common.retrieval import Retriever
from datamodules.dmqr_rewards import GreedyReward, check_reward, greedy_reward, read_asked
from datamodules.examples.splits import Source, check_split
from datamodules.examples.step_loader import StepData, plan_steps
from datamodules.examples.word_feedback import WordFeedbackBatch, WordGroup, feedback_batch, word_group
from datamodules.formats.feedback import MANIFEST, ROWS, WORD, read_manifest, read_word_feedback
from models.dmqr.word_policy import WordPolicy
from models.length_batching import length_batches

if TYPE_CHECKING:
    from models.dmqr.word_selector import WordSelector


class WordFeedbackData(StepData):
    """Questions with feedback passages and rewarded choices of words, which `infer.py feedback` wrote.

    A unit of a step is one question: each of its (question, passage) pairs is computed once, whatever the number of
    candidates. Training questions whose candidates all have the same reward are left out and counted. Questions that
    are too long for the model are skipped and counted.

    Args:
        train: Folders that `infer.py feedback` wrote, as {layout: word_feedback, path: FOLDER}.
        validation: Folders of the same kind; a hash split of the training questions when empty.
        validation_fraction: Share of the questions that the hash split holds out, in (0, 1).
        questions_per_step: Average questions of one optimizer step, over all ranks and accumulated batches.
        tokens_per_validation_batch: Maximum padded tokens of one validation batch, per rank.
        sampling_seed: Seed of the order.
        retriever: Searches with the greedy rewrites of validation questions, for val/reward; null if they are not
            rewarded.
        reward: Rewards what they find, a class of harness.feedback; null for none.
        gold_questions: Question files with the gold passages or answers of validation questions, which are found by
            their text; needed with a reward.
        rewarded_questions: Most validation questions, drawn by hash, whose greedy rewrites are rewarded.
        join_words: Most words that join in a greedy rewrite, as in use.
        core_share: Share of the question's words that the strategy cce keeps, as in use.

    Raises:
        UserError: If there is no training folder, a layout is another one, a value is out of range, or of retriever,
            reward and gold_questions some are given without the others.
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
        retriever: Retriever | None = None,
        reward: Reward | None = None,
        gold_questions: list[Source] | None = None,
        rewarded_questions: int = 500,
        join_words: int = 8,
        core_share: float = 0.5,
    ) -> None:
        super().__init__()
        check_split(train, validation_fraction)
        check_at_least(
            1, questions_per_step=questions_per_step, tokens_per_validation_batch=tokens_per_validation_batch,
            rewarded_questions=rewarded_questions, join_words=join_words,
        )  # fmt: skip
        check_share(core_share=core_share)
        self.train_sources, self.validation_sources = train, validation or []
        self.sources = [*self.train_sources, *self.validation_sources]
        for source in self.sources:
            if source.layout != WORD:
                raise UserError(
                    f"{source.path}: the layout is {source.layout!r}, but this data module reads {WORD}: write such a "
                    "folder with `python infer.py feedback` and an extractive rewriter."
                )
        check_reward(retriever, reward, gold_questions)
        self.retriever, self.reward, self.gold_questions = retriever, reward, gold_questions or []
        self.rewarded_questions, self.join_words, self.core_share = rewarded_questions, join_words, core_share
        self.gold: dict[int, Question] = {}  # rows of `held_out` whose greedy rewrites are rewarded
        self.rewarded: GreedyReward | None = None
        self.validation_fraction, self.questions_per_step = validation_fraction, questions_per_step
        self.tokens_per_validation_batch, self.sampling_seed = tokens_per_validation_batch, sampling_seed
        self.groups: list[WordGroup] = []  # of training
        self.held_out: list[WordGroup] = []
        self.manifests: list[dict[str, Any]] = []  # of all folders
        self.policy: WordPolicy  # of all folders; from `setup` on

    @property
    def files(self) -> list[str]:
        """Paths of all input files."""
        folders = [str(Path(source.path) / name) for source in self.sources for name in (ROWS, MANIFEST)]
        return folders + [source.path for source in self.gold_questions]

    def setup(self, stage: str) -> None:
        """Read and split the questions, tokenize their pairs, print statistics (once).

        Raises:
            MissingInputError: If a folder is missing.
            DataError: If a folder is invalid, two folders have other policies, there is nothing to learn or to
                validate, no validation question has what the reward needs, or folders that are rewarded were searched
                differently.
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
                f"{len(self.groups)} training questions and {sum(each.varied for each in self.held_out)} validation "
                f"questions from {[source.path for source in self.sources]} have candidates of different rewards: "
                "sample more of them, or change data.validation_fraction."
            )
        self.steps_per_epoch = max(1, round(len(self.groups) / self.questions_per_step))
        self.units_per_step = len(self.groups) / self.steps_per_epoch
        self.examples_per_unit = sum(len(each.pairs) for each in self.groups) / len(self.groups)
        if self.reward is not None:
            self._find_gold(self.reward)
        self.audit = self._audit(len(groups), skipped)
        self.print_audit()

    def _find_gold(self, reward: Reward) -> None:
        self.rewarded = greedy_reward(self.retriever, reward, self.sources, self.manifests)
        shares = {row: validation_share(Question("", each.feedback.question)) for row, each in enumerate(self.held_out)}
        drawn = sorted(shares, key=lambda row: (shares[row], row))[: self.rewarded_questions]
        self.gold = read_asked(
            self.gold_questions, {row: (self.held_out[row].feedback.question, ()) for row in drawn}, reward
        )

    def batches_of(self, groups: Sequence[WordGroup]) -> list[list[int]]:
        """Places of the groups in batches of at most `tokens_per_validation_batch` padded tokens."""
        longest = max((len(each.pairs) for each in groups), default=1)
        return length_batches([longest * each.longest for each in groups], self.tokens_per_validation_batch)

    def batch(
        self, groups: Sequence[WordGroup], rows: Sequence[int], step: Sequence[int] = (), real: bool = True
    ) -> WordFeedbackBatch:
        """See `datamodules.examples.word_feedback.feedback_batch`."""
        return feedback_batch(self._selector.encode, groups, rows, step, real)

    @property
    def _selector(self) -> "WordSelector":
        return self.trainer.lightning_module.selector

    def _one_policy(self) -> WordPolicy:
        policies = [WordPolicy.of(each) for each in self.manifests]
        for source, policy in zip(self.sources, policies, strict=True):
            if policy != policies[0]:
                raise DataError(
                    f"{source.path} was sampled with the policy {policy.facts}, {self.sources[0].path} with "
                    f"{policies[0].facts}: give folders of one policy."
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
        return self.batch(self.groups, rows or step[:1], step, bool(rows))

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
            "validation_questions_rewarded": len(self.gold),
            "skipped_long_questions": len(skipped),
            "candidates": f"{sum(candidates) / count:.1f} per question, {max(candidates)} at most",
            "words": f"{sum(len(each.decisions) for each in self.groups) / count:.1f} per question",
            "reward": f"{sum(alone) / count:.4f} of questions, {sum(best) / count:.4f} of their best candidates",
            "tokens": f"{max(each.longest for each in self.groups)} at most in a pair",
            "steps_per_epoch": self.steps_per_epoch,
        }


def _read(sources: Sequence[Source]) -> list[WordFeedback]:
    return [each for source in sources for each in read_word_feedback(source.path)[: source.limit]]
