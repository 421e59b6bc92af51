"""Sampling of a question's context: its gold passages and similar distractors."""

from collections import defaultdict
from random import Random

from datamodules.world.entities import Entity
from datamodules.world.passages import WrittenPassage
from datamodules.world.questions import GeneratedQuestion


class DistractorSampler:
    """Samples distractors that share a name part or a fact with the gold entities.

    Args:
        entities: All entities of one split.
        passages: The passage of every entity.
    """

    def __init__(self, entities: list[Entity], passages: dict[Entity, WrittenPassage]) -> None:
        self.entities, self.passages = entities, passages
        self.by_part: dict[str, list[Entity]] = defaultdict(list)
        for entity in entities:
            for part in self._parts(entity):
                self.by_part[part].append(entity)

    @staticmethod
    def _parts(entity: Entity) -> list[str]:
        words = [word for word in entity.name.split() if word not in ("The", "of")]
        return words + [
            f"{name}={value if isinstance(value, str) else value.full_name}" for name, value in entity.facts.items()
        ]

    def context(self, generated: GeneratedQuestion, size: int, random: Random) -> list[Entity]:
        """`size` entities in random order: the gold ones and distractors.  Titles are unique, so that the titles in
        `supporting_facts` are unambiguous.

        Half of the distractors share a name word or a fact with a gold entity; the others have the kind of one.
        """
        gold = list(dict.fromkeys(step.entity for step in generated.steps))
        titles = {self.passages[entity].title for entity in gold}
        similar = list(dict.fromkeys(e for g in gold for part in self._parts(g) for e in self.by_part[part]))
        kinds = {g.kind for g in gold}
        random.shuffle(similar)
        chosen = list(gold)

        def take(candidates: list[Entity], until: int) -> None:
            for entity in candidates:
                if len(chosen) >= until:
                    return
                title = self.passages[entity].title
                if title not in titles:
                    titles.add(title)
                    chosen.append(entity)

        take(similar, len(gold) + (size - len(gold) + 1) // 2)
        others = random.sample(self.entities, min(len(self.entities), 12 * size))
        take([e for e in others if e.kind in kinds], size)
        take(others, size)
        random.shuffle(chosen)
        return chosen
