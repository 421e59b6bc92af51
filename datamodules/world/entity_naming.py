"""Names of entities, deliberately similar: shared surnames, company stems, title words and close model numbers."""

from random import Random

from datamodules.world.word_lists import (
    ADJECTIVES,
    CITY_ENDINGS,
    GIVEN_NAMES,
    REGION_ENDINGS,
    ROOT_ENDINGS,
    SURNAME_ENDINGS,
    THEMES,
    WordGenerator,
)

COMPANY_SUFFIXES = ("Brothers", "Works", "House", "Group", "Union", "Partners", "Company", "Sons")
CLUSTERS_PER_GROUP = 2  # clusters that share surnames, company stems and brands
ATTEMPTS = 100  # to combine shared parts into a new name, before a new word is appended


class EntityNamer:
    """Generates unique names for the entities of one split.

    Args:
        clusters: Number of clusters; each has a region and a theme.
        random: Source of randomness.
        taken: Casefolded words and names already used in this world; extended in place.
    """

    def __init__(self, clusters: int, random: Random, taken: set[str]) -> None:
        self.random, self.taken = random, taken
        self.make = WordGenerator(random, taken)
        self.regions = self.make.words(clusters, REGION_ENDINGS)
        self.themes = (random.sample(THEMES, len(THEMES)) * (1 + clusters // len(THEMES)))[:clusters]
        groups = 1 + clusters // CLUSTERS_PER_GROUP
        self.surnames = [self.make.words(3, SURNAME_ENDINGS) for _ in range(groups)]
        self.roots = [self.make.words(2, ROOT_ENDINGS) for _ in range(groups)]
        self.brands = self.make.words(groups, ROOT_ENDINGS)

    def name(self, kind: str, cluster: int, pronoun: str) -> str:
        """A new name for an entity of a kind in a cluster."""
        if kind == "city":
            return self.make.word(CITY_ENDINGS)
        for attempt in range(2 * ATTEMPTS):
            name = self._propose(kind, cluster, pronoun)
            if attempt >= ATTEMPTS:
                name = f"{name} {self.make.word(ROOT_ENDINGS)}"
            if name.casefold() not in self.taken:
                self.taken.add(name.casefold())
                return name
        raise RuntimeError("no unused name found")  # unreachable

    def _propose(self, kind: str, cluster: int, pronoun: str) -> str:
        choice, group = self.random.choice, cluster // CLUSTERS_PER_GROUP
        if kind == "person":
            return f"{choice(GIVEN_NAMES[pronoun])} {choice(self.surnames[group])}"
        if kind == "company":
            return f"{choice(self.roots[group])} {choice(COMPANY_SUFFIXES)}"
        if kind == "product":
            return f"{self.brands[group]} {choice('TXRK')}{self.random.randrange(10, 60) * 10}"
        return f"The {choice(ADJECTIVES)} {choice(self.themes[cluster]).title()}"
