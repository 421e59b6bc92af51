"""The paragraphs a question is shipped with: its gold passages among look-alikes."""

from collections import defaultdict
from random import Random

from datamodules.world.entities import Entity
from datamodules.world.passages import Written
from datamodules.world.questions import Asked


class Lookalikes:
    """Finds entities that share a part of a name or a fact with another.

    Args:
        entities: All of one split.
        passages: The passage of every entity.
    """

    def __init__(self, entities: list[Entity], passages: dict[Entity, Written]) -> None:
        self.entities, self.passages = entities, passages
        self.by_part: dict[str, list[Entity]] = defaultdict(list)
        for entity in entities:
            for part in self._parts(entity):
                self.by_part[part].append(entity)

    @staticmethod
    def _parts(entity: Entity) -> list[str]:
        words = [word for word in entity.name.split() if word not in ("The", "of")]
        return words + [
            f"{relation}={said if isinstance(said, str) else said.full_name}" for relation, said in entity.facts.items()
        ]

    def context(self, asked: Asked, size: int, random: Random) -> list[Entity]:
        """The gold entities and distractors, shuffled, `size` in all; no distractor has a gold one's title, so that
        `supporting_facts`, which name titles, mean one paragraph each.

        Half of the distractors share a word of the name or a fact with a gold one; the others are of a gold one's kind.
        """
        gold = list(dict.fromkeys(step.entity for step in asked.steps))
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
        some = random.sample(self.entities, min(len(self.entities), 12 * size))
        take([e for e in some if e.kind in kinds], size)
        take(some, size)
        random.shuffle(chosen)
        return chosen
