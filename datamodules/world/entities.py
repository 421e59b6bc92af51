"""The things of the world and what is true of them.  Look-alikes are made on purpose: people of one surname, films of one
title, cities of one name in two regions, companies of one root, neighbouring model numbers."""

from dataclasses import dataclass, field
from random import Random

from datamodules.world.facts import RELATIONS
from datamodules.world.names import (
    ADJECTIVES,
    ARTISTS,
    CITY_ENDINGS,
    GIVEN_ENDINGS,
    NOUNS,
    REGION_ENDINGS,
    RIVER_ENDINGS,
    ROOT_ENDINGS,
    SURNAME_ENDINGS,
    NameMaker,
)

SHARES = {"person": 0.30, "city": 0.15, "film": 0.16, "company": 0.13, "book": 0.10, "band": 0.08, "product": 0.08}
LEAST = {"person": 21, "city": 8, "film": 6, "company": 12, "book": 4, "band": 4, "product": 4}
TWINS = 0.2  # share of films, books and cities that bear the name of another one of their kind

# Whom a relation may pick: a person's trade or a company's line of business.
TRADES = {
    "director": "film director",
    "composer": "composer",
    "author": "novelist",
    "singer": "singer",
    "founder": "entrepreneur",
    "mayor": "politician",
    "designer": "engineer",
    "studio": "Pictures",
    "publisher": "Press",
    "label": "Records",
    "maker": "Instruments",
}
PERSON_TRADES = tuple(TRADES[r] for r in TRADES if RELATIONS[r].target == "person")
COMPANY_TRADES = tuple(TRADES[r] for r in TRADES if RELATIONS[r].target == "company")
DEVICES = ("kettle", "drill", "printer", "heater", "camera", "scanner", "mixer", "pump")
YEAR_RANGES = {"person": (1880, 1960), "work": (1960, 2020), "company": (1900, 2020), "city": (1100, 1880)}
YEAR_RELATIONS = {"birth_year": "person", "company_year": "company", "city_year": "city"}


@dataclass(eq=False)
class Entity:
    """One thing with a passage of its own."""

    kind: str
    name: str
    split: str
    year: int = 0  # of release, for films, books, bands and products
    region: str = ""  # of a city
    trade: str = ""  # a person's profession, a company's line of business, a product's class of device
    pronoun: str = "it"
    twin: "Entity | None" = None  # another of the same kind and the same name
    facts: dict[str, "Entity | str"] = field(default_factory=dict)  # relation -> object

    @property
    def full_name(self) -> str:
        """Names this thing and no other of its kind; how other passages mention it."""
        if self.twin is None:
            return self.name
        return f"{self.name}, {self.region}" if self.kind == "city" else f"{self.name} ({self.year})"


def count_entities(questions: int, per_question: float) -> dict[str, int]:
    """How many entities of each kind a split of that many questions has."""
    return {kind: max(LEAST[kind], round(questions * per_question * share)) for kind, share in SHARES.items()}


class Population:
    """The entities of one split, linked.

    Args:
        split: Whose they are.
        counts: Entities per kind.
        random: Source of chance.
        taken: Words and names given out in this world so far; extended.
        given_names: The world's given names by pronoun, shared by all splits.
        nouns: The nouns of this split's titles; another split has others.
        years: The years of this split by range (`YEAR_RANGES`); another split has others.
    """

    def __init__(
        self,
        split: str,
        counts: dict[str, int],
        random: Random,
        taken: set[str],
        given_names: dict[str, list[str]],
        nouns: list[str],
        years: dict[str, list[int]],
    ) -> None:
        self.split, self.random, self.taken = split, random, taken
        self.given_names, self.nouns, self.years = given_names, nouns, years
        self.make = NameMaker(random, taken)
        self.surnames = self.make.words(max(6, counts["person"] // 4), SURNAME_ENDINGS)
        self.roots = self.make.words(max(4, counts["company"] // 2), ROOT_ENDINGS)
        self.regions = self.make.words(max(4, counts["city"] // 12), REGION_ENDINGS)
        self.places = self.make.words(max(4, counts["film"] // 4), CITY_ENDINGS)  # occur in titles only
        self.brands = self.make.words(max(2, counts["product"] // 5), ROOT_ENDINGS)
        self.of: dict[str, list[Entity]] = {}
        for kind, count in counts.items():
            self.of[kind] = [self._entity(kind, number) for number in range(count)]
        for kind in ("film", "book", "city"):
            self._make_twins(self.of[kind])
        self.entities = [entity for group in self.of.values() for entity in group]
        for entity in self.entities:
            self._link(entity)

    def _name(self, kind: str, pronoun: str, trade: str) -> str:
        """A name of the kind that nothing in the world has yet; from shared parts while they last."""
        choice = self.random.choice
        for _ in range(200):
            match kind:
                case "person":
                    name = f"{choice(self.given_names[pronoun])} {choice(self.surnames)}"
                case "company":
                    name = f"{choice(self.roots)} {trade}"
                case "band":
                    name = f"The {choice(ADJECTIVES)} {choice(ARTISTS)}"
                case "product":
                    name = f"{choice(self.brands)} {choice('TXRK')}{self.random.randrange(10, 60) * 10}"
                case _:
                    name = choice(
                        [
                            f"The {choice(ADJECTIVES)} {choice(self.nouns)}",
                            f"The {choice(self.nouns)} of {choice(self.places)}",
                        ]
                    )
            if name.casefold() not in self.taken:
                self.taken.add(name.casefold())
                return name
        word = self.make.word(ROOT_ENDINGS)  # the parts are used up: a world may be of any size
        if kind in ("film", "book"):
            return f"The {choice(self.nouns)} of {word}"
        return f"{word} {trade}" if kind == "company" else f"The {word} Band" if kind == "band" else f"{word} T100"

    def _entity(self, kind: str, number: int) -> Entity:
        if kind == "city":
            return Entity(kind, self.make.word(CITY_ENDINGS), self.split, region=self.random.choice(self.regions))
        trade = {"person": PERSON_TRADES, "company": COMPANY_TRADES, "product": DEVICES}.get(kind, ("",))
        pronoun = self.random.choice(("she", "he")) if kind == "person" else "it"
        chosen = trade[number % len(trade)]
        name = self._name(kind, pronoun, chosen)
        return Entity(kind, name, self.split, self.random.choice(self.years["work"]), "", chosen, pronoun)

    def _make_twins(self, group: list[Entity]) -> None:
        """Give the name of one half of the twins to the other half, with another year or region."""
        pairs = int(len(group) * TWINS) // 2
        for first, second in zip(group[:pairs], group[pairs : 2 * pairs], strict=True):
            second.name, first.twin, second.twin = first.name, second, first
            second.year = self.random.choice([y for y in self.years["work"] if y != first.year])
            second.region = self.random.choice([r for r in self.regions if r != first.region])

    def _link(self, entity: Entity) -> None:
        for name, relation in RELATIONS.items():
            if relation.head != entity.kind:
                continue
            if relation.target == "year":
                entity.facts[name] = str(self.random.choice(self.years[YEAR_RELATIONS[name]]))
            elif relation.target == "river":
                entity.facts[name] = self.make.word(RIVER_ENDINGS)
            else:
                trade = TRADES.get(name, entity.trade if name == "mentor" else "")
                others = [e for e in self.of[relation.target] if e is not entity and e.trade == trade]
                entity.facts[name] = self.random.choice(others)


def given_names(random: Random, taken: set[str], count: int) -> dict[str, list[str]]:
    """Given names by pronoun."""
    make = NameMaker(random, taken)
    return {pronoun: make.words(count, endings) for pronoun, endings in GIVEN_ENDINGS.items()}


def divide(random: Random, items: list, shares: dict[str, float]) -> dict[str, list]:
    """Deal items to splits in disjoint parts, the shares summing to 1; every split gets two at least."""
    items = random.sample(items, len(items))
    parts, start = {}, 0.0
    for split, share in shares.items():
        parts[split] = items[round(start * len(items)) : round((start + share) * len(items))]
        start += share
    return parts


def divide_titles_and_years(random: Random, shares: dict[str, float]) -> tuple[dict, dict]:
    """Nouns by split, and years by split and range."""
    nouns = divide(random, NOUNS, shares)
    ranges = {name: divide(random, list(range(*span)), shares) for name, span in YEAR_RANGES.items()}
    return nouns, {split: {name: parts[split] for name, parts in ranges.items()} for split in shares}
