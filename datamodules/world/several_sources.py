"""Questions for answering from several sources.

A corpus that stands for the web, and one that stands for a language model's knowledge.

Every fact of the world is drawn to be stated on the web only, in the knowledge only, in both, or in neither. Some facts
that the knowledge does not hold it states wrongly, with the object of the same relation of another entity; what the web
states is right. Both corpora have at most one passage per entity, with the facts that the source states and in other
words than `corpus.jsonl`.

A question asks for one fact and belongs to the share of that fact: `web`, `knowledge`, `both` or `neither`. A source
that does not state it has no passage with both its subject's name and the answer. The shares are for reports: no system
reads them. The source of randomness is separate: no other part of the world depends on it.
"""

from dataclasses import dataclass, replace
from random import Random

from datamodules.world.entities import Entity
from datamodules.world.passages import WrittenPassage, write_passage
from datamodules.world.phrases import SPLITS
from datamodules.world.questions import GeneratedQuestion, contains
from datamodules.world.world import World, WorldConfig

WEB, KNOWLEDGE, BOTH, NEITHER = "web", "knowledge", "both", "neither"
SHARES = {WEB: 0.35, KNOWLEDGE: 0.25, BOTH: 0.25, NEITHER: 0.15}  # of the facts, and of the questions
WRONG = 0.5  # share of the facts that the knowledge does not hold, which it states wrongly
ASKED = ("validation", "test")  # splits with questions, half of them each
RIGHT, STATED_WRONGLY, ABSENT = "right", "wrong", "absent"  # what the knowledge says about a fact
_Fact = tuple[Entity, str]  # subject and relation


@dataclass(frozen=True, slots=True)
class SourcedQuestion:
    """A single-hop question of the world and where its fact is stated."""

    share: str  # a key of SHARES
    knowledge: str  # right, wrong or absent
    source: str  # id of the question in the other files
    base: GeneratedQuestion


@dataclass(frozen=True, slots=True)
class SeveralSources:
    """The two corpora and the questions."""

    web: list[WrittenPassage]
    knowledge: list[WrittenPassage]
    questions: dict[str, list[SourcedQuestion]]  # by split
    facts: dict[str, int]  # how many each corpus states, and how many of these wrongly


def several_sources(world: World, config: WorldConfig) -> SeveralSources:
    """The corpora of all splits, and `config.msrag` questions, half of them for validation.

    Fewer if the world is too small.
    """
    made = SeveralSources([], [], {}, {"web": 0, "knowledge": 0, "knowledge, wrong": 0})
    for split in SPLITS:
        random = Random(f"{config.seed}/msrag/{split}")
        drawn = _Split(world.entities[split], random)
        made.web.extend(drawn.web.values())
        made.knowledge.extend(drawn.knowledge.values())
        for fact in drawn.share:
            made.facts["web"] += drawn.on_web(fact)
            made.facts["knowledge"] += drawn.known(fact) != ABSENT
            made.facts["knowledge, wrong"] += drawn.known(fact) == STATED_WRONGLY
        if split in ASKED:
            made.questions[split] = drawn.questions(world, split, config.msrag // len(ASKED))
    for passages in (made.web, made.knowledge):
        Random(f"{config.seed}/msrag/order").shuffle(passages)
    return made


class _Split:
    """The facts that the sources state about the entities of one split."""

    def __init__(self, entities: list[Entity], random: Random) -> None:
        self.random = random
        facts = [(entity, relation) for entity in entities for relation in entity.facts]
        self.share: dict[_Fact, str] = dict(
            zip(facts, random.choices([*SHARES], [*SHARES.values()], k=len(facts)), strict=True)
        )
        self.wrong = {fact: value for fact in facts if (value := self._wrong_value(fact, facts)) is not None}
        self.web = self._written(entities, {fact: fact[0].facts[fact[1]] for fact in facts if self.on_web(fact)})
        known = {f: self.wrong.get(f, f[0].facts[f[1]]) for f in facts if self.known(f) != ABSENT}
        self.knowledge = self._written(entities, known)

    def on_web(self, fact: _Fact) -> bool:
        """Whether the web states the fact."""
        return self.share[fact] in (WEB, BOTH)

    def known(self, fact: _Fact) -> str:
        """What the knowledge says about the fact."""
        return RIGHT if self.share[fact] in (KNOWLEDGE, BOTH) else STATED_WRONGLY if fact in self.wrong else ABSENT

    def _wrong_value(self, fact: _Fact, facts: list[_Fact]) -> Entity | str | None:
        """A wrong object for some of the facts that the knowledge does not hold; None for the others."""
        if self.share[fact] in (KNOWLEDGE, BOTH) or self.random.random() >= WRONG:
            return None
        entity, relation = fact
        others = [e.facts[r] for e, r in facts if r == relation and e is not entity]
        others = [value for value in others if _name(value) not in (_name(entity.facts[relation]), entity.name)]
        return self.random.choice(others) if others else None

    def _written(self, entities: list[Entity], stated: dict[_Fact, Entity | str]) -> dict[Entity, WrittenPassage]:
        """A passage for every entity of which something is stated."""
        passages = {}
        for entity in entities:
            facts = {relation: stated[entity, relation] for relation in entity.facts if (entity, relation) in stated}
            if facts:
                passages[entity] = write_passage(replace(entity, facts=facts), self.random)
        return passages

    def questions(self, world: World, split: str, count: int) -> list[SourcedQuestion]:
        """`count` single-hop questions in random order, in the shares `SHARES`, as far as there are enough of each."""
        bases = [(f"{split}_single_{n:05d}", one.generated) for n, one in enumerate(world.singles[split])]
        self.random.shuffle(bases)
        left = {share: round(count * part) for share, part in SHARES.items()}
        made = []
        for source, base in bases:
            (step,) = base.steps
            share = self.share[step.entity, step.relation]
            if left[share] and self._only_there(base, share):
                left[share] -= 1
                made.append(SourcedQuestion(share, self.known((step.entity, step.relation)), source, base))
        self.random.shuffle(made)
        return made

    def _only_there(self, base: GeneratedQuestion, share: str) -> bool:
        """Whether no passage of a source that does not state the fact has both its subject's name and the answer."""
        subject = base.steps[0].entity.name
        silent = [*(self.web.values() if share in (KNOWLEDGE, NEITHER) else ())]
        silent += self.knowledge.values() if share in (WEB, NEITHER) else ()
        texts = (f"{passage.title} {passage.text}" for passage in silent)
        return not any(
            base.answer in text and contains(text, base.answer) and contains(text, subject) for text in texts
        )


def _name(value: Entity | str) -> str:
    return value if isinstance(value, str) else value.name
