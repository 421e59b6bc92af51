"""Questions over the facts of one split: chains of one to four hops, and comparisons; none can be read in two ways."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from datamodules.world.entities import Entity
from datamodules.world.facts import LITERALS, RELATIONS
from datamodules.world.frames import (
    DECIDING_FACT,
    EARLIER,
    FRAMES,
    LATER,
    MENTIONS,
    PERSON_FRAMES,
    SAME,
    TWIN_MENTIONS,
    YEAR_ASKS,
)
from datamodules.world.noise import blur
from datamodules.world.passages import Written, tidy

# kind -> (share of a split's questions, hops).  Comparisons that can be guessed from the question (one of two names, yes or
# no) are 7% together, so that a reader without contexts stays under 5%.
MIX = {
    "single": (0.16, 1),
    "bridge": (0.50, 2),
    "comparison_fact": (0.16, 2),
    "comparison_name": (0.04, 2),
    "comparison_same": (0.03, 2),
    "bridge3": (0.07, 3),
    "bridge4": (0.04, 4),
}


@dataclass(frozen=True, slots=True)
class Step:
    """One look-up: a question of its own (in which "#1" is the first step's answer), its answer, where it is said."""

    question: str
    answer: str
    entity: Entity
    relation: str  # "year": the year in the passage's opening


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its answer and the look-ups that lead there, one gold passage each, in order."""

    kind: str  # a key of MIX
    question: str
    answer: str
    steps: tuple[Step, ...]


def contains(text: str, phrase: str) -> bool:
    """Whether the phrase stands in the text as whole words, whatever the case."""
    return re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text, re.IGNORECASE) is not None


class Interviewer:
    """Asks about the entities of one split, in that split's words.

    Args:
        split: The split.
        entities: Its entities.
        passages: The passage of every entity.
        random: Source of chance.
    """

    def __init__(self, split: str, entities: list[Entity], passages: dict[Entity, Written], random: Random) -> None:
        self.split, self.entities, self.passages, self.random = split, entities, passages, random
        self.by_kind: dict[str, list[Entity]] = {}
        for entity in entities:
            self.by_kind.setdefault(entity.kind, []).append(entity)

    def ask(self, kind: str, count: int, hops: int) -> list[Asked]:
        """Different questions of one kind of `MIX`; fewer than `count` if the split is too small to hold as many."""
        propose: dict[str, Callable[[], Asked | None]] = {
            "comparison_fact": self._compare_facts,
            "comparison_name": self._compare_names,
            "comparison_same": lambda: self._compare_sameness(yes=len(asked) % 2 == 0),
        }
        asked: list[Asked] = []
        seen: set[tuple] = set()
        for _ in range(count * 200):
            if len(asked) == count:
                break
            question = propose.get(kind, lambda: self._chain(kind, hops))()
            if question is None:
                continue
            key = (kind, question.answer, *((step.entity.full_name, step.relation) for step in question.steps))
            if key not in seen:
                seen.add(key)
                asked.append(question)
        return asked

    def singles(self) -> list[Asked]:
        """Every fact of the split once, as a question of one hop, shuffled."""
        pairs = [(entity, relation) for entity in self.entities for relation in entity.facts]
        self.random.shuffle(pairs)
        asked = (self._follow("single", entity, [relation]) for entity, relation in pairs)
        return [question for question in asked if question is not None]

    def mention(self, entity: Entity) -> str:
        """The entity as a question names it: so that it is no other."""
        table = TWIN_MENTIONS if entity.twin is not None else MENTIONS
        if entity.kind not in table:
            return entity.name
        template = self.random.choice(table[entity.kind].of(self.split))
        return template.format(n=entity.name, y=entity.year, r=entity.region)

    def _noun_phrase(self, relation: str, what: str) -> str:
        return self.random.choice(RELATIONS[relation].noun_phrases.of(self.split)).format(x=what)

    def _finish(self, relation: str, what: str) -> str:
        """A whole question for the object of a relation: the relation's own, or a frame around the noun phrase."""
        if self.random.random() < 0.5:
            question = self.random.choice(RELATIONS[relation].asks.of(self.split)).format(x=what)
        else:
            frames = PERSON_FRAMES if RELATIONS[relation].target == "person" else FRAMES
            question = self.random.choice(frames.of(self.split)).format(np=self._noun_phrase(relation, what))
        return tidy(question)

    def _chain(self, kind: str, hops: int) -> Asked | None:
        """A random walk of `hops` relations from a random entity."""
        start = entity = self.random.choice(self.by_kind[self.random.choice(sorted(self.by_kind))])
        relations: list[str] = []
        for hop in range(hops):
            last = hop == hops - 1
            fitting = [r for r in entity.facts if last or RELATIONS[r].target not in LITERALS]
            if not fitting:
                return None
            relations.append(self.random.choice(fitting))
            if not last:
                reached = entity.facts[relations[-1]]
                assert isinstance(reached, Entity)
                entity = reached
        return self._follow(kind, start, relations)

    def _follow(self, kind: str, start: Entity, relations: list[str]) -> Asked | None:
        """The question of a chain, or None where it would be circular, or give away its bridges or its answer."""
        steps: list[Step] = []
        what, entity = self.mention(start), start
        phrase = what
        for hop, relation in enumerate(relations):
            said = entity.facts[relation]
            answer = said if isinstance(said, str) else said.name
            about = what if hop == 0 else f"#{hop}"
            steps.append(Step(self._finish(relation, about), answer, entity, relation))
            if hop < len(relations) - 1:
                assert isinstance(said, Entity)
                phrase, entity = self._noun_phrase(relation, phrase), said
        question = self._finish(relations[-1], phrase)
        answer = steps[-1].answer
        bridges = [step.entity for step in steps[1:]]
        earlier = [self.passages[step.entity] for step in steps[:-1]]
        if (
            len({step.entity for step in steps}) < len(steps)
            or any(contains(question, word) for bridge in bridges for word in bridge.name.split() if word != "The")
            or contains(question, answer)
            or any(contains(f"{passage.title} {passage.text}", answer) for passage in earlier)
        ):
            return None
        return Asked(kind, blur(question, self.random), answer, tuple(steps))

    def _pair(self) -> tuple[str, Entity, Entity, Step, Step] | None:
        """Two things of a kind that a year tells apart, neither sharing its name with a third; the earlier one first."""
        kind = self.random.choice(sorted(DECIDING_FACT))
        fact = DECIDING_FACT[kind]
        candidates = [e for e in self.by_kind[kind] if e.twin is None and (not fact or fact in e.facts)]
        if len(candidates) < 2:
            return None
        dated = [(int(str(e.facts[fact])) if fact else e.year, e) for e in self.random.sample(candidates, 2)]
        (first_year, first), (second_year, second) = sorted(dated, key=lambda pair: pair[0])
        if first_year == second_year:
            return None
        steps = []
        for year, entity in ((first_year, first), (second_year, second)):
            release = self.random.choice(YEAR_ASKS.of(self.split)).format(x=entity.name)
            own = self._finish(fact, entity.name) if fact else release
            steps.append(Step(own, str(year), entity, fact or "year"))
        return kind, first, second, steps[0], steps[1]

    def _winner(self) -> tuple[str, Entity, tuple[Step, Step]] | None:
        """The noun phrase of a comparison, who wins it, and its look-ups, the winner's last."""
        pair = self._pair()
        if pair is None:
            return None
        kind, first, second, first_step, second_step = pair
        if self.random.random() < 0.5:
            table, winner, steps = EARLIER, first, (second_step, first_step)
        else:
            table, winner, steps = LATER, second, (first_step, second_step)
        named = self.random.sample([first.name, second.name], 2)
        phrase = self.random.choice(table[kind].of(self.split)).format(a=named[0], b=named[1])
        return phrase, winner, steps

    def _compare_names(self) -> Asked | None:
        """Which of the two?"""
        won = self._winner()
        if won is None:
            return None
        phrase, winner, steps = won
        frames = PERSON_FRAMES if winner.kind == "person" else FRAMES
        question = tidy(self.random.choice(frames.of(self.split)).format(np=phrase))
        return Asked("comparison_name", blur(question, self.random), winner.name, steps)

    def _compare_facts(self) -> Asked | None:
        """A fact about the earlier or the later of the two."""
        won = self._winner()
        if won is None:
            return None
        phrase, winner, steps = won
        relations = [r for r in winner.facts if RELATIONS[r].target not in LITERALS]
        if not relations:
            return None
        relation = self.random.choice(relations)
        said = winner.facts[relation]
        assert isinstance(said, Entity)
        loser = self.passages[steps[0].entity]
        question = self._finish(relation, phrase)
        if contains(f"{loser.title} {loser.text}", said.name) or contains(question, said.name):
            return None
        return Asked("comparison_fact", blur(question, self.random), said.name, steps)

    def _compare_sameness(self, yes: bool) -> Asked | None:
        """Have the two the same object of a relation?"""
        relation = self.random.choice(sorted(SAME))
        candidates = [e for e in self.by_kind[RELATIONS[relation].head] if e.twin is None and relation in e.facts]
        if not candidates:
            return None
        first = self.random.choice(candidates)
        near = [e for e in candidates if e.corner == first.corner and e is not first]  # or the region would tell
        seconds = [e for e in near if (e.facts[relation] is first.facts[relation]) == yes]
        if not seconds:
            return None
        second = self.random.choice(seconds)
        template = self.random.choice(SAME[relation].of(self.split))
        question = blur(tidy(template.format(a=first.name, b=second.name)), self.random)
        steps = []
        for entity in (first, second):
            said = entity.facts[relation]
            assert isinstance(said, Entity)
            steps.append(Step(self._finish(relation, entity.name), said.name, entity, relation))
        return Asked("comparison_same", question, "yes" if yes else "no", tuple(steps))
