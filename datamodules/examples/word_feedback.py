"""Groups of word feedback and their batches: a question with its passages and its candidate choices of words.

Shape legend: G groups, P pairs (question, passage), T tokens, N candidates (padded), D decisions on words (padded).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from common.errors import DataError
from common.feedback import WordFeedback
from datamodules.examples.batches import TokenBatch
from datamodules.examples.candidate_table import CandidateTable, candidate_table
from models.dmqr.word_policy import Decisions, WordPolicy, choice_logp, decisions_of
from models.dmqr.word_tokenizer import WordPair, WordPairEncoder


class BatchGroups:
    """The groups of a batch, in order.

    No collection and no dataclass, so that Lightning does not look for tensors in it.
    """

    def __init__(self, groups: "Sequence[WordGroup]") -> None:
        self.decisions = [each.decisions for each in groups]
        self.pairs = [len(each.pairs) for each in groups]  # number of pairs of each group


@dataclass
class WordFeedbackBatch(TokenBatch):
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

    def reference_logp(self, policy: WordPolicy) -> list[float]:
        """Log-probability of each candidate by the starting model, nats."""
        joins_D = torch.arange(len(self.decisions)) >= self.decisions.question_words
        logp: list[float] = choice_logp(policy.logits(self.reference_D, joins_D), self.chosen_ND).tolist()
        return logp


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
    # of equal rewards the greedy one comes first: the best of a group does not depend on the order in the file
    ordered = sorted(feedback.candidates, key=lambda each: (-each.reward, not each.greedy, -each.log_probability))
    feedback = replace(feedback, candidates=tuple(ordered))
    try:
        chosen = [decisions.chosen(each.left_out, each.joins) for each in feedback.candidates]
    except DataError as error:
        raise DataError(
            f"question {feedback.question_id}: {error}: name as model.pretrained the serving folder that the "
            "candidates were sampled from."
        ) from error
    return WordGroup(feedback, pairs, decisions, torch.tensor(chosen), torch.zeros(len(decisions)))


def feedback_batch(
    encode: WordPairEncoder,
    groups: Sequence[WordGroup],
    rows: Sequence[int],
    step: Sequence[int] = (),
    real: bool = True,
) -> WordFeedbackBatch:
    """A batch of some groups.

    Args:
        encode: Of the model.
        groups: All of them.
        rows: Which of them.
        step: Those of the whole optimizer step, where there is one.
        real: False for dummy groups of a rank without data, whose candidates count as unknown.
    """
    chosen = [groups[row] for row in rows]
    table = _table(chosen)
    if not real:
        unknown_GN, never_GN = torch.zeros_like(table.known_GN), torch.zeros_like(table.times_GN)
        table = replace(table, known_GN=unknown_GN, times_GN=never_GN)
    return WordFeedbackBatch(
        *encode.pad([pair for each in chosen for pair in each.pairs]),
        BatchGroups(chosen),
        _padded([each.chosen_ND for each in chosen]),
        _padded([each.reference_D for each in chosen]),
        table,
        _table([groups[row] for row in step]) if step else table,
        torch.full((len(rows),), float(real)),
        torch.tensor(rows),
    )


def _padded(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors of equally many dimensions in one, (G, ...); zeros for padding."""
    shape = [max(sizes) for sizes in zip(*(each.shape for each in tensors), strict=True)]
    result = torch.zeros(len(tensors), *shape, dtype=tensors[0].dtype)
    for row, each in enumerate(tensors):
        result[row][tuple(slice(0, size) for size in each.shape)] = each
    return result


def _table(groups: Sequence[WordGroup]) -> CandidateTable:
    decisions = [[max(1, len(each.decisions))] * len(each.feedback.candidates) for each in groups]
    return candidate_table([each.feedback.candidates for each in groups], decisions)
