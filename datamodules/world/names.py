"""Invented names: pronounceable, several syllables long, never given twice."""

from random import Random

_ONSETS = [
    "b",
    "br",
    "c",
    "d",
    "dr",
    "f",
    "g",
    "gr",
    "h",
    "j",
    "k",
    "l",
    "l",
    "m",
    "m",
    "n",
    "n",
    "p",
    "pr",
    "r",
    "r",
    "s",
    "s",
    "st",
    "t",
    "t",
    "th",
    "tr",
    "v",
    "v",
    "w",
    "z",
]  # one per syllable
_VOWELS = ["a", "a", "a", "e", "e", "e", "i", "i", "o", "o", "o", "u", "u", "ai", "ou"]
_CODAS = ["", "", "", *["l", "m", "n", "r", "s"]]

GIVEN_ENDINGS = {"she": ("a", "ia", "ine", "elle", "is"), "he": ("o", "an", "us", "ek", "or")}
SURNAME_ENDINGS = ("ane", "ov", "eld", "ick", "ard", "ow", "ett", "ini", "ade", "osk")
CITY_ENDINGS = ("burg", "mere", "holm", "ford", "vik", "stad", "mouth", "haven", "ton", "wick")
REGION_ENDINGS = ("ia", "land", "mark", "shire", "esse")
RIVER_ENDINGS = ("a", "e", "une", "iss", "ou")
ROOT_ENDINGS = ("ex", "al", "or", "ine", "on", "um", "ax", "is")

ADJECTIVES = [
    "Silent",
    "Hollow",
    "Crimson",
    "Distant",
    "Broken",
    "Golden",
    "Frozen",
    "Hidden",
    "Restless",
    "Patient",
    "Burning",
    "Forgotten",
    "Gentle",
    "Iron",
    "Paper",
    "Salted",
    "Velvet",
    "Wandering",
    "Bitter",
    "Quiet",
    "Narrow",
    "Painted",
    "Sleeping",
    "Stolen",
    "Tender",
    "Upper",
    "Weary",
    "Winter",
    "Amber",
    "Brave",
    "Copper",
    "Drowned",
    "Early",
    "Faithful",
    "Grey",
    "Honest",
    "Idle",
    "Lonely",
    "Marble",
    "Nameless",
    "Pale",
    "Rusted",
    "Scarlet",
    "Tall",
    "Vacant",
    "Wicked",
    "Yellow",
    "Blind",
]


class NameMaker:
    """Gives out invented words, each once.

    Args:
        random: Source of chance.
        taken: Casefolded words given out so far; shared by the makers of all splits, so that no two have a word in common.
    """

    def __init__(self, random: Random, taken: set[str]) -> None:
        self.random, self.taken = random, taken

    def word(self, endings: tuple[str, ...]) -> str:
        """A new capitalised word of two or more syllables with one of the endings."""
        choice = self.random.choice
        for attempt in range(10_000):
            syllables = 1 + attempt // 200 + (self.random.random() < 0.4)  # longer words when the short ones run out
            stem = "".join(choice(_ONSETS) + choice(_VOWELS) + choice(_CODAS) for _ in range(syllables))
            joint = choice(_ONSETS) if stem[-1] in "aeiou" and endings[0][0] in "aeiou" else ""
            word = (stem + joint + choice(endings)).capitalize()
            if word.casefold() not in self.taken:
                self.taken.add(word.casefold())
                return word
        raise RuntimeError("no new word in 10,000 attempts")  # unreachable: words grow without bound

    def words(self, count: int, endings: tuple[str, ...]) -> list[str]:
        """Several new words."""
        return [self.word(endings) for _ in range(count)]
