"""Generates the synthetic world (entities, passages, questions with contexts) in memory, from a seed."""

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from common.errors import UserError
from common.ranges import NonNegativeInt, at_least
from datamodules.world.contexts import DistractorSampler
from datamodules.world.entities import Entity, count_entities
from datamodules.world.passages import WrittenPassage, write_passage
from datamodules.world.population import Population, divide_years
from datamodules.world.questions import MIX, GeneratedQuestion, QuestionGenerator, contains

VERSION = 4  # of the generator: increase it with every change of the output
SPLIT_SHARES = {"test": 0.28, "validation": 0.12, "train": 0.60}  # shares of the questions
YEAR_SHARES = {"test": 0.26, "validation": 0.14, "web": 0.14, "train": 0.46}
WEB_MIX = {"single": (0.5, 1), "bridge": (0.5, 2)}
CONTEXT_SIZE = 10
if TYPE_CHECKING:
    Questions = int
else:
    Questions = at_least(50)  # so that every kind occurs
PARTS = 2  # further passages with the gold passage's title for single-hop questions, like pieces of a long article


@dataclass(frozen=True, slots=True)
class WorldConfig:
    """Seed and sizes of a world.

    Args:
        seed: The same seed and sizes give the same files.
        questions: Train, validation and test questions in total; at least 50, so that every kind occurs.
        singles: Single-hop questions of the three splits in total, for readers and relevance estimators.
        open_singles: Additional single-hop questions, half without the gold passage.
        web_questions: Questions whose passages are only in the web corpus.
        manuals: Product manuals in Markdown.
        rephrased: Noisy, over-long and under-specified forms of train, validation and test questions in total; 0 writes
            no files of them.
        msrag: Validation and test questions together, half of them each, for answering from a corpus that stands for
            the web and one that stands for a language model's knowledge; 0 writes no files of them.
        library: Whether to write a library of 48 look-alike product manuals as PDFs with their true structure, and
            questions about them; needs reportlab.
        mixed: Test questions of each of five kinds (single, multi-hop, noisy, web-only, manuals) in one more file, and
            half as many validation questions in another; needs rephrased questions and the library; 0 writes no such
            file.

    Raises:
        UserError: If what `mixed` needs is not written.
    """

    seed: int = 1
    questions: Questions = 1600
    singles: NonNegativeInt = 5000
    open_singles: NonNegativeInt = 1200
    web_questions: NonNegativeInt = 100
    manuals: NonNegativeInt = 12
    rephrased: NonNegativeInt = 2400
    msrag: NonNegativeInt = 840
    library: bool = False
    mixed: NonNegativeInt = 0

    def __post_init__(self) -> None:
        if self.mixed and not (self.library and self.rephrased):
            raise UserError(
                "mixed needs the library and rephrased questions: add --library true and give --rephrased at least 1, "
                "or omit --mixed."
            )


@dataclass(frozen=True, slots=True)
class QuestionWithContext:
    """A question with the entities of its context passages."""

    generated: GeneratedQuestion
    context: list[Entity]
    parts: tuple[WrittenPassage, ...] = ()  # further passages about the gold entity, without the answer


@dataclass(frozen=True, slots=True)
class World:
    """The generated world.  Keys of the dictionaries are "train", "validation", "test" and "web"."""

    entities: dict[str, list[Entity]]
    passages: dict[Entity, WrittenPassage]
    questions: dict[str, list[QuestionWithContext]]
    singles: dict[str, list[QuestionWithContext]]
    open_singles: dict[str, list[QuestionWithContext]]


def generate(config: WorldConfig) -> World:
    """Generate a world; the same configuration gives the same world."""
    shared = Random(f"{config.seed}/shared")
    taken: set[str] = set()
    years = divide_years(shared, YEAR_SHARES)
    world = World({}, {}, {}, {}, {})
    sizes = {split: round(config.questions * share) for split, share in SPLIT_SHARES.items()}
    sizes["web"] = config.web_questions
    for split, size in sizes.items():
        random = Random(f"{config.seed}/{split}")
        counts = count_entities(size)
        population = Population(split, counts, random, taken, years[split])
        entities = population.entities
        world.entities[split] = entities
        for entity in entities:
            world.passages[entity] = write_passage(entity, random)
        generator = QuestionGenerator(split, entities, world.passages, random)
        generated: list[GeneratedQuestion] = []
        for kind, (share, hops) in (WEB_MIX if split == "web" else MIX).items():
            generated += generator.ask(kind, max(1, round(size * share)), hops)
        random.shuffle(generated)
        distractors = DistractorSampler(entities, world.passages)
        contexts = [distractors.context(one, CONTEXT_SIZE, random) for one in generated]
        world.questions[split] = [QuestionWithContext(*pair) for pair in zip(generated, contexts, strict=True)]
        generated = generator.singles()
        share = SPLIT_SHARES.get(split, 0)
        wanted, more = round(config.singles * share), round(config.open_singles * share)
        single = _Singles(distractors, world.passages, random)
        world.singles[split] = [single.add_context(one) for one in generated[:wanted]]
        rest = generated[wanted : wanted + more]
        world.open_singles[split] = [single.add_context(one, number % 2 == 0) for number, one in enumerate(rest)]
    return world


@dataclass(frozen=True, slots=True)
class _Singles:
    """Adds contexts to single-hop questions: the gold passage, other parts of its article, distractors."""

    distractors: DistractorSampler
    passages: dict[Entity, WrittenPassage]
    random: Random

    def add_context(self, one: GeneratedQuestion, answerable: bool = True) -> QuestionWithContext:
        (step,) = one.steps
        drawn = [self._part(step.entity, step.relation, one.answer) for _ in range(PARTS + (not answerable))]
        parts = tuple(part for part in drawn if part is not None)
        size = CONTEXT_SIZE - len(parts)
        if answerable:
            return QuestionWithContext(one, self.distractors.context(one, size, self.random), parts)
        context = self.distractors.context(one, 2 * CONTEXT_SIZE, self.random)
        context = [e for e in context if e is not step.entity and not contains(self.passages[e].text, one.answer)]
        return QuestionWithContext(one, context[:size], parts)

    def _part(self, entity: Entity, relation: str, answer: str) -> WrittenPassage | None:
        """A passage with about half of the entity's other facts; None if it contains the answer."""
        others = [other for other in entity.facts if other != relation]
        silent = {relation, *self.random.sample(others, len(others) // 2)}
        written = write_passage(entity, self.random, silent)
        named = replace(written, title=self.passages[entity].title)
        return None if contains(named.text, answer) else named
