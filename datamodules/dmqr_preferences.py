"""LightningDataModule of preferences for generative rewriters.

Questions with rewarded candidate rewrites, batched into optimizer steps.

Shape legend: G groups (a question and strategy with its candidates), N candidates of a group (padded), P inputs, T
tokens, C candidates of all groups, A tokens of a candidate.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from common.errors import DataError, UserError
from common.preferences import Reward, RewritePreferences
from common.progress import track
from common.ranges import OpenShare, PositiveInt, at_least
from common.records import Question, clean
from common.retrieval import Retriever
from common.validation_split import validation_shares
from datamodules.dmqr import RewriteBatch, dialogue
from datamodules.dmqr_candidates import CandidateGroup, PreferenceBatch, chosen, table_of, with_question
from datamodules.dmqr_rewards import GreedyReward, check_reward, greedy_reward, read_asked
from datamodules.examples.data_files import DataFile, QuestionDataFile, paths_of
from datamodules.examples.step_loader import StepData, chunks, padded, plan_steps
from datamodules.formats.preferences import LAYOUT, MANIFEST, ROWS, read_manifest, read_rewrite_preferences
from datamodules.formats.row_counts import RowCounts
from models.dmqr.candidates import candidate_batch
from models.dmqr.rewriter import RewriterModel

if TYPE_CHECKING:
    Candidates = int
else:
    Candidates = at_least(3)  # the best, the worst and the greedy one


class PreferenceData(StepData):
    """Questions with rewarded candidate rewrites, which `infer.py preferences` wrote.

    A unit of a step is one group: a question and strategy with all its candidates. The split is by dialogue, as in
    `RewriteData`. Training groups whose candidates all have the same reward are left out and counted, and candidates
    that are too long for the model.

    Args:
        train: Folders that `infer.py preferences` wrote, as {layout: rewrite_preferences, path: FOLDER}.
        validation: Folders of the same kind; a hash split of the training dialogues when empty.
        validation_fraction: Share of the dialogues that the hash split holds out.
        groups_per_step: Average groups of one optimizer step, over all ranks and accumulated batches.
        groups_per_validation_batch: Groups of one validation batch, per rank.
        candidates: Most candidates of a group: the best, the worst and the greedy one, then those that were sampled
            most often.
        question_as_candidate: Add the question itself, with its own reward, where it is one query and short enough: a
            rewriter can then learn to leave a question as it is. Of more than `candidates` it stays if it is the best
            or the worst.
        generated_rewrites: Validation groups, drawn by hash, whose greedy rewrites are written: for their length, and
            the shares of empty and of unchanged ones.
        sampling_seed: Seed of the order.
        retriever: Searches with the greedy rewrites, for val/reward; null if they are not rewarded, or the reward needs
            no search.
        reward: Rewards what they find, a class of harness.preferences; null for none.
        gold_questions: Question files with the gold passages or answers of validation questions, which are found by
            their text (and the turns before it); needed with a reward.
        strict: Whether an unusual row (null, empty, repeated) is an error instead of a line in the statistics.

    Raises:
        UserError: If there is no training folder, a layout is another one, or of retriever, reward and gold_questions
            some are given without the others.
    """

    step_option, examples_name = "groups_per_step", "candidates"

    def __init__(
        self,
        train: list[DataFile],
        validation: list[DataFile] | None = None,
        validation_fraction: OpenShare = 0.1,
        groups_per_step: PositiveInt = 8,
        groups_per_validation_batch: PositiveInt = 8,
        candidates: Candidates = 16,
        question_as_candidate: bool = False,
        generated_rewrites: PositiveInt = 200,
        sampling_seed: int = 0,
        retriever: Retriever | None = None,
        reward: Reward | None = None,
        gold_questions: list[QuestionDataFile] | None = None,
        strict: bool = False,
    ) -> None:
        super().__init__()
        self._name_files(train, validation, validation_fraction)
        self._accept(LAYOUT, "a folder with `python infer.py preferences` and a TrainedRewriter")
        check_reward(retriever, reward, gold_questions)
        self.groups_per_step, self.groups_per_validation_batch = groups_per_step, groups_per_validation_batch
        self.most, self.question_as_candidate = candidates, question_as_candidate
        self.generated_rewrites, self.sampling_seed = generated_rewrites, sampling_seed
        self.retriever, self.reward, self.gold_questions = retriever, reward, gold_questions or []
        self.groups: list[CandidateGroup] = []  # of training
        self.held_out: list[CandidateGroup] = []  # longest first
        self.generated: frozenset[int] = frozenset()  # rows of `held_out`
        self.gold: dict[int, Question] = {}  # rows of `generated` that are rewarded -> their questions
        self.rewarded: GreedyReward | None = None
        self.manifests: list[dict[str, Any]] = []  # of all folders
        self._unusual = RowCounts(strict)
        self.questions_cut = 0  # groups whose question is too long and cut
        self.strategies: list[str] = []  # of the training groups, in the order of the pool

    @property
    def files(self) -> list[str]:
        """Paths of all input files."""
        folders = [str(Path(source.path) / name) for source in self.sources for name in (ROWS, MANIFEST)]
        return folders + paths_of(self.gold_questions)

    def setup(self, stage: str) -> None:
        """Read, split and tokenize the groups, print statistics (once).

        Raises:
            MissingInputError: If a folder is missing.
            DataError: If a folder is invalid, there is nothing to learn or to validate, no written question has what
                the reward needs, or folders that are rewarded were searched differently.
            UserError: If a strategy is not in the pool.
        """
        if self.groups:
            return
        rewriter: RewriterModel = self.module.rewriter
        self.manifests = [read_manifest(source.path) for source in self.sources]
        train, held_out = self._split()
        known = set(rewriter.strategies)
        if unknown := sorted({each.strategy for each in train + held_out} - known):
            raise UserError(
                f"the folders hold rewrites by {unknown[0]!r}, which is not in the pool "
                f"({', '.join(rewriter.strategies)}): describe it in a file and name it as model.pool."
            )
        skipped: Counter[str] = Counter()
        groups = self._tokenized(train, skipped)
        self.groups = [each for each in groups if each.varied]
        skipped["groups_of_equal_rewards"] = len(groups) - len(self.groups)
        self.held_out = sorted(self._tokenized(held_out, skipped), key=lambda each: -each.length)
        if not self.groups or not any(each.varied for each in self.held_out):
            raise DataError(
                f"{len(self.groups)} training groups and {sum(each.varied for each in self.held_out)} validation "
                f"groups have candidates of different rewards, none in {self._lacking(not self.groups)}: sample more "
                "of them, or change data.validation_fraction."
            )
        by_hash = sorted(range(len(self.held_out)), key=lambda row: _digest(self.held_out[row].example))
        self.generated = frozenset(by_hash[: self.generated_rewrites])
        found = {each.example.strategy for each in self.groups}
        self.strategies = [name for name in rewriter.strategies if name in found]
        self.steps_per_epoch = max(1, round(len(self.groups) / self.groups_per_step))
        self.units_per_step = len(self.groups) / self.steps_per_epoch
        self.examples_per_unit = sum(len(each.targets) for each in self.groups) / len(self.groups)
        if self.reward is not None:
            self._find_gold(self.reward)
        self.audit = self._audit(skipped)
        self.print_audit()

    def _find_gold(self, reward: Reward) -> None:
        self.rewarded = greedy_reward(self.retriever, reward, self.sources, self.manifests)
        asked = {
            row: (self.held_out[row].example.question, self.held_out[row].example.history) for row in self.generated
        }
        self.gold = read_asked(self.gold_questions, asked, reward, self._unusual)

    def _split(self) -> tuple[list[RewritePreferences], list[RewritePreferences]]:
        """Training and validation groups; no dialogue is on both sides."""
        train = _read(self.train_sources, self._unusual)
        if self.validation_sources:
            held_out = _read(self.validation_sources, self._unusual)
            known = {clean(dialogue(each)).casefold() for each in held_out}
            return [each for each in train if clean(dialogue(each)).casefold() not in known], held_out
        shares = validation_shares(Question("", dialogue(each)) for each in train)
        return (
            [each for each, share in zip(train, shares, strict=True) if share >= self.validation_fraction],
            [each for each, share in zip(train, shares, strict=True) if share < self.validation_fraction],
        )

    def _tokenized(self, examples: Sequence[RewritePreferences], skipped: Counter[str]) -> list[CandidateGroup]:
        """The groups with the candidates that fit; the others are counted."""
        rewriter: RewriterModel = self.module.rewriter
        encode, groups = rewriter.encode, []
        if self.question_as_candidate:
            examples = [with_question(each) if self._is_one_query(each) else each for each in examples]
        tasks = [rewriter.task(each.question, each.strategy, each.history) for each in examples]
        self.questions_cut += sum(map(encode.cuts_question, tasks))
        rows = list(zip(examples, encode(tasks), strict=True))
        for example, ids in track(rows, len(rows), "tokenizing rewrites"):
            tokens = dict(zip(example.candidates, encode.targets([e.rewrite for e in example.candidates]), strict=True))
            fitting = [each for each in example.candidates if len(tokens[each]) <= rewriter.max_rewrite_tokens]
            kept = chosen(fitting, self.most)
            skipped["long_rewrites"] += len(tokens) - len(fitting)
            skipped["candidates_above_the_most"] += len(fitting) - len(kept)
            if kept:
                targets = [tokens[each] for each in kept]
                groups.append(CandidateGroup(replace(example, candidates=kept), ids, targets, [0.0] * len(kept)))
        return groups

    def _is_one_query(self, example: RewritePreferences) -> bool:
        """Whether the question, written as a rewrite, would be searched as it is."""
        text = clean(example.question)
        return self.module.rewriter.queries(text, example.strategy) == (text,)

    def _plan(self, epoch: int) -> list[list[int]]:
        rng = random.Random(f"plan/{self.sampling_seed}/{epoch}")
        return plan_steps([each.length for each in self.groups], self.steps_per_epoch, rng)

    def _tokens_of(self, epoch: int) -> Callable[[Sequence[int]], int]:
        return padded([each.length for each in self.groups])

    def _collate(self, epoch: int, rows: list[int], step: list[int]) -> PreferenceBatch:
        return self.batch(self.groups, rows or step[:1], step, bool(rows))

    def _validation_groups(self) -> list[list[int]]:
        return chunks(len(self.held_out), self.groups_per_validation_batch)

    def _validation_batch(self, rows: list[int]) -> PreferenceBatch:
        return self.batch(self.held_out, rows)

    def batch(
        self, groups: Sequence[CandidateGroup], rows: Sequence[int], step: Sequence[int] = (), real: bool = True
    ) -> PreferenceBatch:
        """A batch of some groups.

        Args:
            groups: All of them.
            rows: Which of them.
            step: Those of the whole optimizer step, where there is one.
            real: False for dummy groups of a rank without data, whose candidates count as unknown.
        """
        mine = [groups[row] for row in rows]
        table = table_of(mine)
        there_GN = table.known_GN
        if not real:
            unknown, never = torch.zeros_like(table.known_GN), torch.zeros_like(table.times_GN)
            table = replace(table, known_GN=unknown, times_GN=never)
        reference_GN = torch.zeros(table.rewards_GN.shape)
        for place, each in enumerate(mine):
            reference_GN[place, : len(each.reference)] = torch.tensor(each.reference)
        return PreferenceBatch(
            *candidate_batch(self.module.rewriter, [each.input for each in mine], [each.targets for each in mine]),
            there_GN=there_GN,
            candidates=table,
            reference_GN=reference_GN,
            step_candidates=table_of([groups[row] for row in step]) if step else table,
            rows_G=torch.tensor(rows),
            strategies=[each.example.strategy for each in mine for _ in each.targets],
            step_strategies=sorted({groups[row].example.strategy for row in step}),
        )

    def plain_batch(self, rows: Sequence[int]) -> RewriteBatch:
        """Every candidate of some validation groups as a row of its own, with its own input."""
        pairs = [(group, target) for group in (self.held_out[row] for row in rows) for target in group.targets]
        rewriter: RewriterModel = self.module.rewriter
        tensors = rewriter.batch([group.input for group, _ in pairs], [target for _, target in pairs])
        strategies = [group.example.strategy for group, _ in pairs]
        return RewriteBatch(*tensors, torch.ones(len(pairs)), 0, torch.arange(len(pairs)), strategies, [])

    def _audit(self, skipped: Counter[str]) -> dict[str, object]:
        count = len(self.groups)
        rewards = [[each.reward for each in group.example.candidates] for group in self.groups]
        tokens = [len(target) for group in self.groups for target in group.targets]
        question, best = (
            sum(group.example.question_reward for group in self.groups) / count,
            sum(map(max, rewards)) / count,
        )
        return {
            "groups": count,
            "groups_by_strategy": dict(Counter(each.example.strategy for each in self.groups).most_common()),
            "candidates": f"{len(tokens) / count:.1f} per group, {max(map(len, rewards))} at most",
            "reward": f"{question:.4f} of questions, {best:.4f} of their best candidates",
            "rewrite_tokens": f"{sum(tokens) / len(tokens):.1f} on average, {max(tokens)} at most",
            "questions_cut": self.questions_cut,
            "skipped": {name: times for name, times in skipped.items() if times} or "none",
            "validation_groups": len(self.held_out),
            "validation_rewrites_generated": len(self.generated),
            "validation_rewrites_rewarded": len(self.gold),
            "steps_per_epoch": self.steps_per_epoch,
            **self._unusual.audit(),
        }


def _read(sources: Sequence[DataFile], counts: RowCounts) -> list[RewritePreferences]:
    """The rows of all strategies of the first `limit` questions of each folder."""
    found = []
    for source in sources:
        rows = read_rewrite_preferences(source.path, counts)
        asked = list(dict.fromkeys((each.question, each.history) for each in rows))
        within = set(asked[: source.limit])
        found += [each for each in rows if (each.question, each.history) in within]
    return found


def _digest(example: RewritePreferences) -> bytes:
    text = repr((example.question, example.history, example.strategy))
    return hashlib.sha256(text.encode()).digest()
