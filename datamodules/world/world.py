"""A whole world in memory, grown from a seed."""

from dataclasses import dataclass
from random import Random

from datamodules.world.contexts import Lookalikes
from datamodules.world.entities import Entity, count_entities
from datamodules.world.passages import Written, write_passage
from datamodules.world.population import Population, divide_years
from datamodules.world.questions import MIX, Asked, Interviewer

VERSION = 2  # of the generator: raise it with every change that changes a byte of the output
SPLIT_SHARES = {"test": 0.28, "validation": 0.12, "train": 0.60}  # of the questions
YEAR_SHARES = {"test": 0.26, "validation": 0.14, "web": 0.14, "train": 0.46}
WEB_MIX = {"single": (0.5, 1), "bridge": (0.5, 2)}
CONTEXT_SIZE = 10


@dataclass(frozen=True, slots=True)
class Recipe:
    """What world to grow."""

    seed: int = 1
    questions: int = 1600  # of train, validation and test together
    singles: int = 5000  # single-hop questions of the three splits together, for readers and relevance estimators
    web_questions: int = 100  # whose passages only the web has
    manuals: int = 12
    entities_per_question: float = 1.9


@dataclass(frozen=True, slots=True)
class Shipped:
    """A question with the entities of its paragraphs."""

    asked: Asked
    context: list[Entity]


@dataclass(frozen=True, slots=True)
class World:
    """All of it.  Keys are "train", "validation", "test" and "web"."""

    entities: dict[str, list[Entity]]
    passages: dict[Entity, Written]
    questions: dict[str, list[Shipped]]
    singles: dict[str, list[Shipped]]


def grow(recipe: Recipe) -> World:
    """Grow the world of a recipe: the same recipe, the same world."""
    shared = Random(f"{recipe.seed}/shared")
    taken: set[str] = set()
    years = divide_years(shared, YEAR_SHARES)
    world = World({}, {}, {}, {})
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
        wanted = round(recipe.singles * SPLIT_SHARES.get(split, 0))
        singles = interviewer.singles()[:wanted]
        world.singles[split] = [Shipped(one, lookalikes.context(one, CONTEXT_SIZE, random)) for one in singles]
    return world
