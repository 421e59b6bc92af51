"""Choices of words by scores: which words of a question stay, which words of its passages join.

Greedy, and sampled by a policy.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import torch

from common.records import Passage
from models.dmqr.word_policy import WordPolicy, choice_logp
from models.dmqr.word_selector import ScoredWord, WordScores


@dataclass(frozen=True, slots=True)
class SampledChoice:
    """A choice of words with its queries."""

    left_out: tuple[int, ...]  # as in `common.feedback.WordCandidate`, likewise the others
    joins: tuple[str, ...]
    queries: tuple[str, ...]  # distinct, of all strategies; none if no word is chosen
    log_probability: float
    times: int
    greedy: bool


@dataclass(frozen=True, slots=True)
class SampledWords:
    """The choices for one question."""

    question: str  # as it was read: the choices' places refer to it
    passages: tuple[Passage, ...]
    choices: tuple[SampledChoice, ...]  # the greedy one first
    reason: str = ""  # why there is none


def mean_log_odds(read: Sequence[WordScores]) -> list[ScoredWord]:
    """The question's words with their mean log-odds over the passages, in order."""
    return [
        ScoredWord(columns[0].word, sum(each.log_odds for each in columns) / len(columns))
        for columns in zip(*(scores.stays for scores in read), strict=True)
    ]


def staying(read: Sequence[WordScores], least: float) -> list[ScoredWord]:
    """The question's words whose mean log-odds over the passages reach `least`, in order."""
    return [each for each in mean_log_odds(read) if each.log_odds >= least]


@dataclass(frozen=True, slots=True)
class BestPlace:
    """A word of the passages where it is most probable."""

    passage: int  # number of the passage, from 0
    scored: ScoredWord


def best_places(read: Sequence[WordScores]) -> dict[str, BestPlace]:
    """The distinct words of the passages, in lower case, each where its log-odds are greatest.

    Of equal ones the first.
    """
    best: dict[str, BestPlace] = {}
    for place, scores in enumerate(read):
        for each in scores.joins:
            known = best.get(each.word.text)
            if known is None or each.log_odds > known.scored.log_odds:
                best[each.word.text] = BestPlace(place, each)
    return best


def joining(read: Sequence[WordScores], least: float, most: int) -> list[str]:
    """The passages' words that join, in lower case.

    The most probable ones, in the order of the passages and of the places where they are most probable.

    Args:
        read: The words of each passage, the best passage first.
        least: Least log-odds.
        most: Maximum number of words.
    """
    best = best_places(read)
    return in_order(best, [word for word, place in best.items() if place.scored.log_odds >= least], most)


def in_order(best: dict[str, BestPlace], words: Collection[str], most: int | None = None) -> list[str]:
    """The words, or only the most probable of them, in the order of the passages and of their places there."""
    places = [best[word] for word in words]
    ranked = sorted(places, key=lambda at: (-at.scored.log_odds, at.passage, at.scored.word.start))[:most]
    return [at.scored.word.text for at in sorted(ranked, key=lambda at: (at.passage, at.scored.word.start))]


def core(words: Sequence[ScoredWord], share: float) -> list[ScoredWord]:
    """The most probable share of the words, at least one of them, in order; of equal ones the first."""
    count = math.ceil(share * len(words))
    kept = sorted(range(len(words)), key=lambda place: (-words[place].log_odds, place))[:count]
    return [words[place] for place in sorted(kept)]


def log_odds_of(probability: float) -> float:
    """Log-odds (nats) of a probability in [0, 1]."""
    if probability in (0, 1):
        return math.inf if probability else -math.inf
    return math.log(probability / (1 - probability))


def written(text: str, words: Iterable[ScoredWord]) -> str:
    """Words as the text writes them, with blanks between."""
    return " ".join(text[each.word.start : each.word.end] for each in words)


def queries_of(
    question: str, read_text: str, stays: Sequence[ScoredWord], joins: Sequence[str], core_share: float
) -> dict[str, str]:
    """The query of every strategy from the chosen words; empty or missing where no word is chosen.

    Args:
        question: The question as it is searched.
        read_text: As it was read: the places of `stays` refer to it.
        stays: Words of the question, in order.
        joins: Words of the passages, as they are written.
        core_share: Share of `stays` that cce keeps.
    """
    words = " ".join(joins)
    kept = written(read_text, stays)
    made = {"kwr": kept, "cce": written(read_text, core(stays, core_share))}
    return made | ({"par": f"{question} {words}", "hop": f"{kept} {words}".strip()} if words else {})


def sample_choices(
    read: Sequence[WordScores],
    policy: WordPolicy,
    join_words: int,
    samples: int,
    seed: int,
    queries: Callable[[Sequence[ScoredWord], Sequence[str]], tuple[str, ...]],
) -> tuple[SampledChoice, ...]:
    """The greedy choice and samples of a policy, each choice once.

    A choice and its log-probability hold all words that join; its queries hold the `join_words` most probable of them,
    as in use.

    Args:
        read: The scores of a question with each of its passages, the best passage first.
        policy: Gives the probabilities.
        join_words: Most words that are written.
        samples: Number of draws.
        seed: Of the draws.
        queries: Makes the queries of the words that stay and of those that join.
    """
    stays = mean_log_odds(read) if policy.stays else []
    best = best_places(read) if policy.joins else {}
    joins = list(best)
    log_odds = [*(each.log_odds for each in stays), *(each.scored.log_odds for each in best.values())]
    joins_D = torch.tensor([False] * len(stays) + [True] * len(best), dtype=torch.bool)
    logits_D = policy.logits(torch.tensor(log_odds, dtype=torch.float64), joins_D)
    drawn_ND = torch.rand(samples, len(log_odds), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    greedy = tuple((logits_D >= 0).tolist())
    times = Counter(map(tuple, (drawn_ND < logits_D.sigmoid()).tolist()))
    distinct = list(dict.fromkeys([greedy, *times]))
    logp_N = choice_logp(logits_D, torch.tensor(distinct, dtype=torch.bool).reshape(len(distinct), -1))
    choices = []
    for used, logp in zip(distinct, logp_N.tolist(), strict=True):
        kept = [each for each, use in zip(stays, used[: len(stays)], strict=True) if use]
        chosen = [word for word, use in zip(joins, used[len(stays) :], strict=True) if use]
        choices.append(
            SampledChoice(
                tuple(place for place in range(len(stays)) if not used[place]),
                tuple(in_order(best, chosen)),
                queries(kept, in_order(best, chosen, join_words)),
                logp,
                times.get(used, 0),
                used == greedy,
            )
        )
    return tuple(choices)
