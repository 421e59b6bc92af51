"""Candidate rewrites of a question, tokenized: their choice, and batches of groups of them.

Shape legend: G groups (a question and strategy with its candidates), N candidates of a group (padded), P inputs, T
tokens, C candidates of all groups, A tokens of a candidate.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from common.preferences import Candidate, RewritePreferences
from common.records import clean, nfkc
from datamodules.examples.batches import Batch, TokenBatch


@dataclass
class CandidateTable(Batch):
    """Rewards and counts of the candidates of G groups, known before training; zeros for padding."""

    rewards_GN: Tensor
    known_GN: Tensor  # bool
    times_GN: Tensor  # how often each was sampled
    tokens_GN: Tensor  # of each; 1 for padding


@dataclass
class PreferenceBatch(TokenBatch):
    """G groups of candidates on one rank."""

    ids_PT: Tensor  # of an encoder-decoder one input per group, else one per candidate
    attention_PT: Tensor
    labels_CA: Tensor  # tokens of the candidates; IGNORE where there is none
    input_C: Tensor  # row of each candidate's input
    there_GN: Tensor  # bool: where the candidates stand, row by row
    candidates: CandidateTable
    reference_GN: Tensor  # log-probabilities by the model that training starts from, nats; 0 for padding
    step_candidates: CandidateTable  # of the optimizer step, over all ranks and accumulated batches
    rows_G: Tensor  # index of each group in the training or the validation groups
    strategies: list[str]  # of each candidate
    step_strategies: list[str]  # of the optimizer step; sorted

    @property
    def examples(self) -> int:
        """Number of candidates; an encoder-decoder reads one input for all of a group."""
        return len(self.labels_CA)


@dataclass
class CandidateGroup:
    """A question and strategy with its candidates, tokenized."""

    example: RewritePreferences
    input: list[int]
    targets: list[list[int]]
    reference: list[float]  # log-probabilities by the model that training starts from, nats; zeros until computed

    @property
    def length(self) -> int:
        """Tokens that are computed."""
        return len(self.input) + sum(map(len, self.targets))

    @property
    def varied(self) -> bool:
        """Whether the rewards of its candidates differ: else there is nothing to learn."""
        return len({each.reward for each in self.example.candidates}) > 1


def chosen(candidates: Sequence[Candidate], most: int) -> tuple[Candidate, ...]:
    """At most `most` candidates, best first.

    The best, the worst, the greedy one, then those that were sampled most often.

    Of equal rewards the greedy one comes first, then the one that was sampled more often, then by the text: the best of
    a group does not depend on the order in the file.
    """
    ordered = sorted(candidates, key=lambda each: (-each.reward, not each.greedy, -each.times, each.rewrite))
    if len(ordered) <= most:
        return tuple(ordered)
    kept = {ordered[0], ordered[-1], *(each for each in ordered if each.greedy)}
    for each in sorted(ordered, key=lambda one: -one.times):
        if len(kept) < most:
            kept.add(each)
    return tuple(each for each in ordered if each in kept)


def with_question(example: RewritePreferences) -> RewritePreferences:
    """Adds the question itself as one more candidate, with its own reward.

    So a rewriter can learn to leave a question unchanged.

    Its `times` is 0, since nothing sampled it. Where a candidate is the question already, but for case, nothing is
    added.
    """
    text = clean(example.question)
    if nfkc(text).lower() in {nfkc(each.rewrite).lower() for each in example.candidates}:
        return example
    return replace(example, candidates=(*example.candidates, Candidate(text, example.question_reward, times=0)))


def table_of(groups: Sequence[CandidateGroup]) -> CandidateTable:
    """Rewards and counts of the candidates of some groups."""
    counts = [len(each.targets) for each in groups]
    known_GN = torch.arange(max(counts))[None, :] < torch.tensor(counts)[:, None]

    def filled(values: list[float], padding: float = 0.0) -> Tensor:
        result_GN = torch.full(known_GN.shape, padding)
        result_GN[known_GN] = torch.tensor(values, dtype=torch.float32)
        return result_GN

    every = [one for each in groups for one in each.example.candidates]
    return CandidateTable(
        filled([each.reward for each in every]),
        known_GN,
        filled([float(each.times) for each in every]),
        filled([float(len(target)) for each in groups for target in each.targets], padding=1.0),
    )
