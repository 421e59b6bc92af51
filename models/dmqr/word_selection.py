"""Choices of words by scores: which words of a question stay, which words of its passages join."""

import math
from collections.abc import Iterable, Sequence

from models.dmqr.word_selector import ScoredWord, WordScores


def staying(read: Sequence[WordScores], least: float) -> list[ScoredWord]:
    """The question's words whose mean log-odds over the passages reach `least`, in order."""
    means = [
        ScoredWord(columns[0].word, sum(each.log_odds for each in columns) / len(columns))
        for columns in zip(*(scores.stays for scores in read), strict=True)
    ]
    return [each for each in means if each.log_odds >= least]


def joining(read: Sequence[WordScores], least: float, most: int) -> list[str]:
    """The passages' words that join, in lower case.

    The most probable ones, in the order of the passages and of the places where they are most probable, the first of
    equal places.

    Args:
        read: The words of each passage, the best passage first.
        least: Least log-odds.
        most: Maximum number of words.
    """
    best: dict[str, tuple[int, ScoredWord]] = {}  # number of the passage, and the word there
    for place, scores in enumerate(read):
        for each in scores.joins:
            known = best.get(each.word.text)
            if known is None or each.log_odds > known[1].log_odds:
                best[each.word.text] = place, each
    likely = [(place, each) for place, each in best.values() if each.log_odds >= least]
    ranked = sorted(likely, key=lambda at: (-at[1].log_odds, at[0], at[1].word.start))[:most]
    return [each.word.text for _, each in sorted(ranked, key=lambda at: (at[0], at[1].word.start))]


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
