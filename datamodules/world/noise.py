"""Questions as people type them: lower case, dropped articles and marks, a slip of the finger.  Names keep their letters,
so that a question still has one answer."""

import re
from random import Random


def _lower(text: str, random: Random) -> str:
    return text.lower()


def _drop_articles(text: str, random: Random) -> str:
    return re.sub(r"\b(the|a|an) ", "", text)


def _drop_mark(text: str, random: Random) -> str:
    return text.rstrip("?.")


def _slip(text: str, random: Random) -> str:
    """Swap, drop or double a letter inside one word that is no name (names are capitalised)."""
    words = list(re.finditer(r"(?<!\w)[a-z]{5,}(?!\w)", text))
    if not words:
        return text
    word = random.choice(words)
    place = random.randrange(word.start() + 1, word.end() - 2)
    one, two = text[place], text[place + 1]
    return text[:place] + random.choice([two + one, one, one + one + two]) + text[place + 2 :]


_WAYS = (_lower, _drop_articles, _drop_mark, _slip)


def blur(text: str, random: Random, share: float = 0.3) -> str:
    """Spoil a share of the questions in one way each."""
    return random.choice(_WAYS)(text, random) if random.random() < share else text
