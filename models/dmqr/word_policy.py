"""Policy over words: the probabilities of an extractive rewriter's choices, for sampling and for training alike.

    P(word of the question stays) = sigmoid((z - z_stay) / temperature)   z: mean of its log-odds over the passages
    P(word of a passage joins)    = sigmoid((z - z_join) / temperature)   z: maximum of its log-odds over the passages

z_stay and z_join are the log-odds of `stay_probability` and `join_probability`, from which the rewriter uses a word: a
word's probability is at least 1/2 exactly if the rewriter uses it. Words are decided independently. The probability is
that of the whole choice; if more words join than the rewriter writes, the query has the most probable of them.

Shape legend: P pairs, T tokens, L labels (0 stays, 1 joins), G questions, D decisions of a question (padded), R places.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from common.checks import check_above, check_at_least, check_between_0_and_1
from common.errors import DataError, UserError
from models.dmqr.word_selector import JOINS, STAYS
from models.dmqr.word_tokenizer import WordPair

STAY_STRATEGIES, JOIN_STRATEGIES = ("kwr", "cce", "hop"), ("par", "hop")  # which decisions change their queries


@dataclass(frozen=True, slots=True)
class WordPolicy:
    """How scores become probabilities: `policy` of the manifest of feedback.

    Args:
        passages: Passages of the first search that are read.
        stay_probability: Score from which the rewriter keeps a word of the question, in (0, 1).
        join_probability: Score from which a word of the passages joins, in (0, 1).
        temperature: Above 0; greater values make samples more different.
        strategies: Whose queries are searched together; decisions that change none of them are not made.

    Raises:
        UserError: If a number is out of range, or a strategy is unknown.
    """

    passages: int
    stay_probability: float
    join_probability: float
    temperature: float
    strategies: tuple[str, ...]

    def __post_init__(self) -> None:
        check_at_least(1, passages=self.passages)
        check_between_0_and_1(stay_probability=self.stay_probability, join_probability=self.join_probability)
        check_above(0, temperature=self.temperature)
        if not self.strategies or not set(self.strategies) <= {*STAY_STRATEGIES, *JOIN_STRATEGIES}:
            raise UserError(
                f"strategies is {list(self.strategies)}; allowed: "
                f"{', '.join(dict.fromkeys(STAY_STRATEGIES + JOIN_STRATEGIES))}."
            )

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Self:
        """The policy of a manifest of the layout word_feedback.

        Raises:
            DataError: If it has none, or an invalid one.
        """
        try:
            options = dict(manifest["policy"])
            return cls(**{**options, "strategies": tuple(options["strategies"])})
        except (KeyError, TypeError, ValueError, UserError) as error:
            raise DataError(
                f"the manifest's policy is invalid ({error}): run `python infer.py feedback` again."
            ) from error

    @property
    def facts(self) -> dict[str, Any]:
        """For the manifest."""
        return {**asdict(self), "strategies": list(self.strategies)}

    @property
    def stays(self) -> bool:
        """Whether the question's words are decided."""
        return not set(self.strategies).isdisjoint(STAY_STRATEGIES)

    @property
    def joins(self) -> bool:
        """Whether the passages' words are decided."""
        return not set(self.strategies).isdisjoint(JOIN_STRATEGIES)

    def logits(self, log_odds: Tensor, joins: Tensor) -> Tensor:
        """Log-odds (nats) of every decision at the policy's temperature, of any shape.

        Args:
            log_odds: z above.
            joins: bool: whether the decision is on a word of the passages.
        """
        z_stay, z_join = (math.log(share / (1 - share)) for share in (self.stay_probability, self.join_probability))
        return (log_odds - torch.full_like(log_odds, z_join).where(joins, z_stay)) / self.temperature


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions on one question, and where its pairs show their words.

    The question's words first, then the passages'.
    """

    question_words: int  # 0 if they are not decided
    joins: tuple[str, ...]  # distinct words of the passages that the question lacks, in the order of first appearance
    places_R3: Tensor  # int64: pair, position of a word's first token, number of the decision

    def __len__(self) -> int:
        return self.question_words + len(self.joins)

    def chosen(self, left_out: Sequence[int], joins: Sequence[str]) -> list[bool]:
        """Whether each word is used, of a choice of a file of feedback.

        Raises:
            DataError: If the choice names a word that is not decided.
        """
        unknown = [*set(joins).difference(self.joins), *(each for each in left_out if each >= self.question_words)]
        if unknown:
            raise DataError(f"{unknown[0]!r} is not among the words of the question and its passages that are decided")
        return [place not in left_out for place in range(self.question_words)] + [word in joins for word in self.joins]


def decisions_of(pairs: Sequence[WordPair], policy: WordPolicy) -> Decisions:
    """The decisions on a question.

    Args:
        pairs: The question with each of its passages, best first, at least one.
        policy: Says which words are decided.
    """
    words = len(pairs[0].question_words) if policy.stays else 0
    own = {each.word.text for each in pairs[0].question_words}
    joins: dict[str, int] = {}
    places = []
    for number, pair in enumerate(pairs):
        if policy.stays:
            places += [(number, each.position, place) for place, each in enumerate(pair.question_words)]
        if policy.joins:
            for each in pair.passage_words:
                if each.word.text not in own:
                    place = words + joins.setdefault(each.word.text, len(joins))
                    places.append((number, each.position, place))
    return Decisions(words, tuple(joins), torch.tensor(places, dtype=torch.long).reshape(-1, 3))


def pooled(logits_PTL: Tensor, decisions: Sequence[Decisions], pairs: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
    """The log-odds of every decision, with gradients.

    Args:
        logits_PTL: Of the pairs of all questions, question after question, as `WordSelector.forward` gives them.
        decisions: Of every question.
        pairs: Number of pairs of every question.

    Returns:
        z (G, D), 0 for padding; whether a decision is on a word of the passages (G, D); whether it is none, but padding
        (G, D).
    """
    G, D = len(decisions), max(map(len, decisions), default=0)
    device = logits_PTL.device
    number_D = torch.arange(D)
    lengths_G, words_G = (torch.tensor([*map(of, decisions)]) for of in (len, lambda each: each.question_words))
    padding_GD = (number_D >= lengths_G[:, None]).to(device)
    joins_GD = (number_D >= words_G[:, None]).to(device) & ~padding_GD
    firsts = torch.tensor([0, *pairs]).cumsum(0).tolist()
    shifted = [each.places_R3 + torch.tensor([firsts[g], 0, g * D]) for g, each in enumerate(decisions)]
    pair_R, position_R, place_R = torch.cat(shifted).to(device).unbind(1)
    join_R = joins_GD.flatten()[place_R]
    values_R = logits_PTL[pair_R, position_R, torch.where(join_R, JOINS, STAYS)]
    zeros = torch.zeros(G * D, device=device, dtype=values_R.dtype)
    stay_R = ~join_R
    counts = zeros.index_add(0, place_R[stay_R], torch.ones_like(values_R[stay_R]))
    means = zeros.index_add(0, place_R[stay_R], values_R[stay_R]) / counts.clamp(min=1)
    most = zeros.scatter_reduce(0, place_R[join_R], values_R[join_R], "amax", include_self=False)
    return torch.where(joins_GD.flatten(), most, means).reshape(G, D), joins_GD, padding_GD


def choice_logp(logits: Tensor, chosen: Tensor, padding: Tensor | None = None) -> Tensor:
    """Log-probability (nats) of choices: the sum over the decisions, which are the last dimension.

    The shapes are broadcast.

    Args:
        logits: From `WordPolicy.logits`.
        chosen: bool: whether each word is used.
        padding: bool: what is no decision; None without padding.
    """
    return decisions_logp(logits, chosen, padding).sum(dim=-1)


def decisions_logp(logits: Tensor, chosen: Tensor, padding: Tensor | None = None) -> Tensor:
    """Log-probability (nats) of each decision of choices, 0 for padding; arguments as of `choice_logp`."""
    logp = F.logsigmoid(torch.where(chosen, logits, -logits))
    return logp if padding is None else logp.masked_fill(padding, 0.0)


def divergence(logits: Tensor, reference: Tensor, padding: Tensor | None = None) -> Tensor:
    """Kullback-Leibler divergence (nats) of one policy from another, exact.

    The sum over the decisions, the last dimension.

    Args:
        logits: Of the policy, from `WordPolicy.logits`.
        reference: Of the other policy.
        padding: As in `choice_logp`.
    """
    used = logits.sigmoid() * (F.logsigmoid(logits) - F.logsigmoid(reference))
    unused = (-logits).sigmoid() * (F.logsigmoid(-logits) - F.logsigmoid(-reference))
    terms = used + unused
    return (terms if padding is None else terms.masked_fill(padding, 0.0)).sum(dim=-1)


def entropy(logits: Tensor, padding: Tensor | None = None) -> Tensor:
    """Entropy (nats) of a policy: the sum over the decisions, the last dimension."""
    terms = -(logits.sigmoid() * F.logsigmoid(logits) + (-logits).sigmoid() * F.logsigmoid(-logits))
    return (terms if padding is None else terms.masked_fill(padding, 0.0)).sum(dim=-1)
