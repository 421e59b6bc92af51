"""Names of things, with look-alikes made on purpose: families of one surname, companies of one root, titles that share
their words, neighbouring model numbers."""

from random import Random

from datamodules.world.themes import THEMES
from datamodules.world.word_lists import (
    ADJECTIVES,
    CITY_ENDINGS,
    GIVEN_NAMES,
    REGION_ENDINGS,
    ROOT_ENDINGS,
    SURNAME_ENDINGS,
    NameMaker,
)

HOUSES = ("Brothers", "Works", "House", "Group", "Union", "Partners", "Company", "Sons")
SHARED_BY = 2  # corners that have their surnames, roots and brands in common
ATTEMPTS = 100  # at a name from shared parts before a new word makes room


class Namer:
    """Names the things of one split; no name is given twice.

    Args:
        corners: Corners of this part of the world; each has a region and a theme.
        random: Source of chance.
        taken: Casefolded words and names given out in this world so far; extended.
    """

    def __init__(self, corners: int, random: Random, taken: set[str]) -> None:
        self.random, self.taken = random, taken
        self.make = NameMaker(random, taken)
        self.regions = self.make.words(corners, REGION_ENDINGS)
        self.themes = (random.sample(THEMES, len(THEMES)) * (1 + corners // len(THEMES)))[:corners]
        groups = 1 + corners // SHARED_BY
        self.surnames = [self.make.words(3, SURNAME_ENDINGS) for _ in range(groups)]
        self.roots = [self.make.words(2, ROOT_ENDINGS) for _ in range(groups)]
        self.brands = self.make.words(groups, ROOT_ENDINGS)

    def name(self, kind: str, corner: int, pronoun: str) -> str:
        """A new name for something of the kind in the corner."""
        if kind == "city":
            return self.make.word(CITY_ENDINGS)
        for attempt in range(2 * ATTEMPTS):
            name = self._propose(kind, corner, pronoun)
            if attempt >= ATTEMPTS:
                name = f"{name} {self.make.word(ROOT_ENDINGS)}"
            if name.casefold() not in self.taken:
                self.taken.add(name.casefold())
                return name
        raise RuntimeError("no new name though every one had a new word")  # unreachable

    def _propose(self, kind: str, corner: int, pronoun: str) -> str:
        choice, group = self.random.choice, corner // SHARED_BY
        if kind == "person":
            return f"{choice(GIVEN_NAMES[pronoun])} {choice(self.surnames[group])}"
        if kind == "company":
            return f"{choice(self.roots[group])} {choice(HOUSES)}"
        if kind == "product":
            return f"{self.brands[group]} {choice('TXRK')}{self.random.randrange(10, 60) * 10}"
        return f"The {choice(ADJECTIVES)} {choice(self.themes[corner]).title()}"
