"""The inhabitants of one split of the world, named and linked."""

from collections import defaultdict
from itertools import pairwise
from random import Random

from datamodules.world.entities import Entity
from datamodules.world.entity_naming import Namer
from datamodules.world.facts import RELATIONS, relations_of
from datamodules.world.word_lists import RIVER_ENDINGS

CORNER = 12  # entities of a corner of the world: a region and a theme; links stay inside a corner where they can
TWINS = 0.2  # share of films, books and cities that bear the name of another one of their kind
FEWEST_FACTS, MOST_FACTS = 2, 3  # of an entity

# The profession that a relation asks of a person; one who has none yet takes it up.
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
    """The entities of one split.  Chains of facts never leave it.

    Args:
        split: Whose they are.
        counts: Entities per kind.
        random: Source of chance.
        taken: Words and names given out in this world so far; extended.
        years: The years of this split by range (`YEAR_RANGES`); another split has others.
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
        corners = max(2, sum(counts.values()) // CORNER)
        self.namer = Namer(corners, random, taken)
        self.of: dict[str, list[Entity]] = {}
        self.near: dict[tuple[str, int], list[Entity]] = defaultdict(list)  # kind and corner -> entities
        for kind, count in counts.items():
            self.of[kind] = [self._entity(kind, number * corners // count) for number in range(count)]
        for kind in ("film", "book", "city"):
            self._make_twins(self.of[kind])
        self.entities = [entity for group in self.of.values() for entity in group]
        for entity in self.entities:
            self.near[entity.kind, entity.corner].append(entity)
        for entity in self.entities:
            self._link(entity)
        for person in self.of["person"]:
            person.trade = person.trade or random.choice(list(PROFESSIONS.values()))

    def _entity(self, kind: str, corner: int) -> Entity:
        trade = self.random.choice(DEVICES) if kind == "product" else ""
        pronoun = self.random.choice(("she", "he")) if kind == "person" else "it"
        name = self.namer.name(kind, corner, pronoun)
        year = self.random.choice(self.years["work"])
        region, theme = self.namer.regions[corner], self.namer.themes[corner]
        return Entity(kind, name, self.split, year, region, theme, corner, trade, pronoun)

    def _make_twins(self, group: list[Entity]) -> None:
        """Give the name of one half of the twins to the other half, which differs in year and region."""
        pairs = int(len(group) * TWINS) // 2
        twins = self.random.sample(group, 2 * pairs)
        for first, second in zip(twins[:pairs], twins[pairs:], strict=True):
            if first.corner == second.corner:
                continue  # cities of one region need two names
            second.name, first.twin, second.twin = first.name, second, first
            second.year = self.random.choice([y for y in self.years["work"] if y != first.year])

    def _link(self, entity: Entity) -> None:
        """Give an entity some of the facts its kind may have."""
        possible = relations_of(entity.kind)
        count = min(len(possible), self.random.randint(FEWEST_FACTS, MOST_FACTS))
        for name in self.random.sample(possible, count):
            target = RELATIONS[name].target
            if target == "year":
                entity.facts[name] = str(self.random.choice(self.years[YEAR_RELATIONS[name]]))
            elif target == "river":
                entity.facts[name] = self.namer.make.word(RIVER_ENDINGS)
            else:
                said = self._object(entity, name)
                entity.facts[name] = said
                said.referred_by.append(entity)

    def _object(self, entity: Entity, relation: str) -> Entity:
        """Whom or what a relation leads to: of the same corner, and of the right profession, where there is one."""
        kind = RELATIONS[relation].target
        near = [e for e in self.near[kind, entity.corner] if e is not entity]
        near = near or [e for e in self.of[kind] if e is not entity]
        profession = PROFESSIONS.get(relation, "")
        fitting = [e for e in near if not profession or e.trade in ("", profession)] or near
        said = self.random.choice(fitting)
        if profession:
            said.trade = said.trade or profession
        return said


def divide_years(random: Random, shares: dict[str, float]) -> dict[str, dict[str, list[int]]]:
    """Years by split and range: no two splits have a year in common, and each has its share of every range.

    Args:
        random: Source of chance.
        shares: Share of the years by split, summing to 1.
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
