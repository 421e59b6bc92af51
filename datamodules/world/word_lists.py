"""Word parts and lists for names, from `words.json`, and a generator of invented words, unique and pronounceable."""

from pathlib import Path
from random import Random

from datamodules.world.phrases import read_table

_TABLE = read_table(Path(__file__).with_name("words.json"))

# English stems keep names at two or three word pieces, which are short to encode and easy to recognize when repeated.
STEMS: tuple[str, ...] = _TABLE["stems"]
_ONSETS, _VOWELS, _CODAS = _TABLE["onsets"], _TABLE["vowels"], _TABLE["codas"]
_STEM_ATTEMPTS = 300  # afterwards random syllables, whose supply is unlimited

GIVEN_NAMES: dict[str, tuple[str, ...]] = _TABLE["given_names"]  # by pronoun
SURNAME_ENDINGS: tuple[str, ...] = _TABLE["surname_endings"]
CITY_ENDINGS: tuple[str, ...] = _TABLE["city_endings"]
REGION_ENDINGS: tuple[str, ...] = _TABLE["region_endings"]
RIVER_ENDINGS: tuple[str, ...] = _TABLE["river_endings"]
ROOT_ENDINGS: tuple[str, ...] = _TABLE["root_endings"]
ADJECTIVES: tuple[str, ...] = _TABLE["adjectives"]
# Topic words of a cluster of entities.  Linked entities mostly share a theme, so that their passages are similar in
# retrieval, but the theme does not reveal how they are related.
THEMES: tuple[tuple[str, ...], ...] = _TABLE["themes"]


class WordGenerator:
    """Generates invented words without repetition.

    Args:
        random: Source of randomness.
        taken: Casefolded words already used; shared by all splits, so that no word occurs in two of them.
    """

    def __init__(self, random: Random, taken: set[str]) -> None:
        self.random, self.taken = random, taken

    def word(self, endings: tuple[str, ...]) -> str:
        """A new capitalized word of two or more syllables with one of the endings."""
        choice = self.random.choice
        for attempt in range(10_000):
            stem = choice(STEMS) if attempt < _STEM_ATTEMPTS else self._syllables(1 + attempt // 600)
            joint = choice(_ONSETS) if stem[-1] in "aeiou" and endings[0][0] in "aeiou" else ""
            word = (stem + joint + choice(endings)).capitalize()
            if word.casefold() not in self.taken:
                self.taken.add(word.casefold())
                return word
        raise RuntimeError("no new word in 10,000 attempts")  # unreachable: words grow without bound

    def _syllables(self, count: int) -> str:
        choice = self.random.choice
        return "".join(choice(_ONSETS) + choice(_VOWELS) + choice(_CODAS) for _ in range(count))

    def words(self, count: int, endings: tuple[str, ...]) -> list[str]:
        """Several new words."""
        return [self.word(endings) for _ in range(count)]
