"""A whole world in memory, grown from a seed."""

from dataclasses import dataclass, replace
from random import Random

from datamodules.world.contexts import Lookalikes
from datamodules.world.entities import Entity, count_entities
from datamodules.world.passages import Written, write_passage
from datamodules.world.population import Population, divide_years
from datamodules.world.questions import MIX, Asked, Interviewer, contains

VERSION = 3  # of the generator: raise it with every change that changes a byte of the output
SPLIT_SHARES = {"test": 0.28, "validation": 0.12, "train": 0.60}  # of the questions
YEAR_SHARES = {"test": 0.26, "validation": 0.14, "web": 0.14, "train": 0.46}
WEB_MIX = {"single": (0.5, 1), "bridge": (0.5, 2)}
CONTEXT_SIZE = 10
PARTS = (
    2  # other passages of the same title beside a single-hop question's gold one, as of a long article cut in pieces
)


@dataclass(frozen=True, slots=True)
class WorldConfig:
    """What world to grow."""

    seed: int = 1
    questions: int = 1600  # of train, validation and test together
    singles: int = 5000  # single-hop questions of the three splits together, for readers and relevance estimators
    open_singles: int = 1200  # more of them, half without the passage that holds the answer
    web_questions: int = 100  # whose passages only the web has
    manuals: int = 12
    entities_per_question: float = 1.9


@dataclass(frozen=True, slots=True)
class Shipped:
    """A question with the entities of its paragraphs."""

    asked: Asked
    context: list[Entity]
    parts: tuple[Written, ...] = ()  # further passages about the gold entity, silent on what is asked


@dataclass(frozen=True, slots=True)
class World:
    """All of it.  Keys are "train", "validation", "test" and "web"."""

    entities: dict[str, list[Entity]]
    passages: dict[Entity, Written]
    questions: dict[str, list[Shipped]]
    singles: dict[str, list[Shipped]]
    open_singles: dict[str, list[Shipped]]


def grow(recipe: WorldConfig) -> World:
    """Grow the world of a recipe: the same recipe, the same world."""
    shared = Random(f"{recipe.seed}/shared")
    taken: set[str] = set()
    years = divide_years(shared, YEAR_SHARES)
    world = World({}, {}, {}, {}, {})
    sizes = {split: round(recipe.questions * share) for split, share in SPLIT_SHARES.items()}
    sizes["web"] = recipe.web_questions
    for split, size in sizes.items():
        random = Random(f"{recipe.seed}/{split}")
        counts = count_entities(size, recipe.entities_per_question)
        population = Population(split, counts, random, taken, years[split])
        entities = population.entities
        world.entities[split] = entities
        for entity in entities:
            world.passages[entity] = write_passage(entity, random)
        interviewer = Interviewer(split, entities, world.passages, random)
        asked: list[Asked] = []
        for kind, (share, hops) in (WEB_MIX if split == "web" else MIX).items():
            asked += interviewer.ask(kind, max(1, round(size * share)), hops)
        random.shuffle(asked)
        lookalikes = Lookalikes(entities, world.passages)
        ship = [Shipped(one, lookalikes.context(one, CONTEXT_SIZE, random)) for one in asked]
        world.questions[split] = ship
        asked = interviewer.singles()
        share = SPLIT_SHARES.get(split, 0)
        wanted, more = round(recipe.singles * share), round(recipe.open_singles * share)
        single = _Singles(lookalikes, world.passages, random)
        world.singles[split] = [single.ship(one) for one in asked[:wanted]]
        rest = asked[wanted : wanted + more]
        world.open_singles[split] = [single.ship(one, answerable=number % 2 == 0) for number, one in enumerate(rest)]
    return world


@dataclass(frozen=True, slots=True)
class _Singles:
    """Ships single-hop questions: the gold passage, other parts of its article, look-alikes."""

    lookalikes: Lookalikes
    passages: dict[Entity, Written]
    random: Random

    def ship(self, asked: Asked, answerable: bool = True) -> Shipped:
        (step,) = asked.steps
        parts = [self._part(step.entity, step.relation, asked.answer) for _ in range(PARTS + (not answerable))]
        told = tuple(part for part in parts if part is not None)
        if answerable:
            return Shipped(asked, self.lookalikes.context(asked, CONTEXT_SIZE - len(told), self.random), told)
        context = self.lookalikes.context(asked, 2 * CONTEXT_SIZE, self.random)
        silent = [e for e in context if e is not step.entity and not contains(self.passages[e].text, asked.answer)]
        return Shipped(asked, silent[: CONTEXT_SIZE - len(told)], told)  # as many as where there is an answer

    def _part(self, entity: Entity, relation: str, answer: str) -> Written | None:
        """About half of the entity's other facts; None where even they give the answer away."""
        others = [other for other in entity.facts if other != relation]
        silent = {relation, *self.random.sample(others, len(others) // 2)}
        written = write_passage(entity, self.random, silent)
        named = replace(written, title=self.passages[entity].title)
        return None if contains(named.text, answer) else named
