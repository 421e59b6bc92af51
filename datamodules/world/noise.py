"""Typing noise for questions: lower case, missing articles or punctuation, and typos (never in names, so that a
question keeps its answer)."""

import re
from random import Random


def _lower(text: str, random: Random) -> str:
    return text.lower()


def _drop_articles(text: str, random: Random) -> str:
    return re.sub(r"\b(the|a|an) ", "", text)


def _drop_mark(text: str, random: Random) -> str:
    return text.rstrip("?.")


def typo(text: str, random: Random) -> str:
    """Swap, drop or double a letter inside one word that is not a name (names are capitalized)."""
    words = list(re.finditer(r"(?<!\w)[a-z]{5,}(?!\w)", text))
    if not words:
        return text
    word = random.choice(words)
    return misspell(text, random.randrange(word.start() + 1, word.end() - 2), random)


def misspell(text: str, place: int, random: Random) -> str:
    """Swap, drop or double a letter at the index `place`."""
    one, two = text[place], text[place + 1]
    return text[:place] + random.choice([two + one, one, one + one + two]) + text[place + 2 :]


_NOISES = (_lower, _drop_articles, _drop_mark, typo)


def add_noise(text: str, random: Random, share: float = 0.3) -> str:
    """The question with one kind of noise, with probability `share`."""
    return random.choice(_NOISES)(text, random) if random.random() < share else text
