"""Generates the entities of one split: names, attributes, and facts that link them."""

from collections import defaultdict
from itertools import pairwise
from random import Random

from datamodules.world.entities import Entity
from datamodules.world.entity_naming import EntityNamer
from datamodules.world.facts import RELATIONS, relations_of
from datamodules.world.word_lists import RIVER_ENDINGS

CLUSTER_SIZE = 12  # entities per cluster, which share a region and a theme; facts stay within a cluster if possible
NAMESAKE_SHARE = 0.2  # share of films, books and cities that have the name of another one of their kind
FEWEST_FACTS, MAX_FACTS = 2, 3  # facts per entity

# Profession that a relation requires of a person; assigned to persons who have none yet.
PROFESSIONS = {
    "director": "film director",
    "composer": "composer",
    "author": "novelist",
    "singer": "singer",
    "founder": "entrepreneur",
    "mayor": "politician",
    "designer": "engineer",
}
DEVICES = ("kettle", "drill", "printer", "heater", "camera", "scanner", "mixer", "pump")
YEAR_RANGES = {"person": (1880, 1960), "work": (1960, 2020), "company": (1900, 2020), "city": (1100, 1880)}
YEAR_RELATIONS = {"birth_year": "person", "company_year": "company", "city_year": "city"}


class Population:
    """The entities of one split.  Facts never refer to entities of another split.

    Args:
        split: Name of the split.
        counts: Number of entities per kind.
        random: Source of randomness.
        taken: Words and names already used in this world; extended in place.
        years: Years of this split by range (`YEAR_RANGES`); splits share no year.
    """

    def __init__(
        self,
        split: str,
        counts: dict[str, int],
        random: Random,
        taken: set[str],
        years: dict[str, list[int]],
    ) -> None:
        self.split, self.random, self.years = split, random, years
        clusters = max(2, sum(counts.values()) // CLUSTER_SIZE)
        self.namer = EntityNamer(clusters, random, taken)
        self.of: dict[str, list[Entity]] = {}
        self.near: dict[tuple[str, int], list[Entity]] = defaultdict(list)  # kind and cluster -> entities
        for kind, count in counts.items():
            self.of[kind] = [self._entity(kind, number * clusters // count) for number in range(count)]
        for kind in ("film", "book", "city"):
            self._make_namesakes(self.of[kind])
        self.entities = [entity for group in self.of.values() for entity in group]
        for entity in self.entities:
            self.near[entity.kind, entity.cluster].append(entity)
        for entity in self.entities:
            self._link(entity)
        for person in self.of["person"]:
            person.category = person.category or random.choice(list(PROFESSIONS.values()))

    def _entity(self, kind: str, cluster: int) -> Entity:
        category = self.random.choice(DEVICES) if kind == "product" else ""
        pronoun = self.random.choice(("she", "he")) if kind == "person" else "it"
        name = self.namer.name(kind, cluster, pronoun)
        year = self.random.choice(self.years["work"])
        region, theme = self.namer.regions[cluster], self.namer.themes[cluster]
        return Entity(kind, name, self.split, year, region, theme, cluster, category, pronoun)

    def _make_namesakes(self, group: list[Entity]) -> None:
        """Copy the names of some entities to others of the same kind, which differ in year and region."""
        pairs = int(len(group) * NAMESAKE_SHARE) // 2
        namesakes = self.random.sample(group, 2 * pairs)
        for first, second in zip(namesakes[:pairs], namesakes[pairs:], strict=True):
            if first.cluster == second.cluster:
                continue  # two cities of the same region need different names
            second.name, first.namesake, second.namesake = first.name, second, first
            second.year = self.random.choice([y for y in self.years["work"] if y != first.year])

    def _link(self, entity: Entity) -> None:
        """Give an entity random facts that are possible for its kind."""
        possible = relations_of(entity.kind)
        count = min(len(possible), self.random.randint(FEWEST_FACTS, MAX_FACTS))
        for name in self.random.sample(possible, count):
            target = RELATIONS[name].target
            if target == "year":
                entity.facts[name] = str(self.random.choice(self.years[YEAR_RELATIONS[name]]))
            elif target == "river":
                entity.facts[name] = self.namer.make.word(RIVER_ENDINGS)
            else:
                value = self._object(entity, name)
                entity.facts[name] = value
                value.referred_by.append(entity)

    def _object(self, entity: Entity, relation: str) -> Entity:
        """The object of a relation: from the same cluster and with the required profession, if possible."""
        kind = RELATIONS[relation].target
        near = [e for e in self.near[kind, entity.cluster] if e is not entity]
        near = near or [e for e in self.of[kind] if e is not entity]
        profession = PROFESSIONS.get(relation, "")
        fitting = [e for e in near if not profession or e.category in ("", profession)] or near
        value = self.random.choice(fitting)
        if profession:
            value.category = value.category or profession
        return value


def divide_years(random: Random, shares: dict[str, float]) -> dict[str, dict[str, list[int]]]:
    """Divide the years among the splits, without overlap: years by split and range.

    Args:
        random: Source of randomness.
        shares: Share of the years by split; they sum to 1.
    """
    bounds = sorted({bound for span in YEAR_RANGES.values() for bound in span})
    owned: dict[str, set[int]] = {split: set() for split in shares}
    for low, high in pairwise(bounds):
        years = random.sample(range(low, high), high - low)
        start = 0.0
        for split, share in shares.items():
            owned[split].update(years[round(start * len(years)) : round((start + share) * len(years))])
            start += share
    return {
        split: {name: [year for year in range(*span) if year in own] for name, span in YEAR_RANGES.items()}
        for split, own in owned.items()
    }
