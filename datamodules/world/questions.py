"""Generates questions from the facts of one split: unambiguous chains of one to four hops, and comparisons."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random

from datamodules.world.entities import Entity
from datamodules.world.facts import LITERALS, RELATIONS
from datamodules.world.frames import (
    DECIDING_FACT,
    EARLIER,
    FRAMES,
    LATER,
    MENTIONS,
    NAMESAKE_MENTIONS,
    PERSON_FRAMES,
    SAME,
    YEAR_ASKS,
)
from datamodules.world.noise import add_noise
from datamodules.world.passages import WrittenPassage, tidy

# kind -> (share of a split's questions, hops).  Comparisons that can be guessed from the question (one of two names,
# yes or no) are 7% in total, so that a reader without contexts stays under 5% EM.
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
    """One hop: a single-hop question ("#1" stands for the first hop's answer), its answer and supporting fact."""

    question: str
    answer: str
    entity: Entity
    relation: str  # or "year" for the year in the passage's opening


@dataclass(frozen=True, slots=True)
class GeneratedQuestion:
    """A question with its answer and its hops in order, one gold passage each."""

    kind: str  # a key of MIX
    question: str
    answer: str
    steps: tuple[Step, ...]
    clean: str  # the question before `add_noise`


def contains(text: str, phrase: str) -> bool:
    """Whether the text contains the phrase as whole words, ignoring case."""
    return _whole_words(phrase).search(text) is not None


@cache  # a name is looked up in many texts, and there are more names than the module `re` keeps patterns
def _whole_words(phrase: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(phrase)}(?!\w)", re.IGNORECASE)


class QuestionGenerator:
    """Generates questions about the entities of one split, with the templates of that split.

    Args:
        split: Name of the split.
        entities: Its entities.
        passages: The passage of every entity.
        random: Source of randomness.
    """

    def __init__(
        self, split: str, entities: list[Entity], passages: dict[Entity, WrittenPassage], random: Random
    ) -> None:
        self.split, self.entities, self.passages, self.random = split, entities, passages, random
        self.by_kind: dict[str, list[Entity]] = {}
        for entity in entities:
            self.by_kind.setdefault(entity.kind, []).append(entity)

    def ask(self, kind: str, count: int, hops: int) -> list[GeneratedQuestion]:
        """Distinct questions of one kind of `MIX`; fewer than `count` if the split is too small."""
        propose: dict[str, Callable[[], GeneratedQuestion | None]] = {
            "comparison_fact": self._compare_facts,
            "comparison_name": self._compare_names,
            "comparison_same": lambda: self._compare_sameness(yes=len(generated) % 2 == 0),
        }
        generated: list[GeneratedQuestion] = []
        seen: set[tuple] = set()
        for _ in range(count * 200):
            if len(generated) == count:
                break
            question = propose.get(kind, lambda: self._chain(kind, hops))()
            if question is None:
                continue
            key = (kind, question.answer, *((step.entity.full_name, step.relation) for step in question.steps))
            if key not in seen:
                seen.add(key)
                generated.append(question)
        return generated

    def singles(self) -> list[GeneratedQuestion]:
        """A single-hop question for every fact of the split, in random order."""
        pairs = [(entity, relation) for entity in self.entities for relation in entity.facts]
        self.random.shuffle(pairs)
        generated = (self._follow("single", entity, [relation]) for entity, relation in pairs)
        return [question for question in generated if question is not None]

    def mention(self, entity: Entity) -> str:
        """An unambiguous mention of the entity in a question."""
        table = NAMESAKE_MENTIONS if entity.namesake is not None else MENTIONS
        if entity.kind not in table:
            return entity.name
        template = self.random.choice(table[entity.kind].of(self.split))
        return template.format(n=entity.name, y=entity.year, r=entity.region)

    def noun_phrase(self, relations: list[str], what: str) -> str:
        """A noun phrase for the end of a chain of relations from `what`: "the mayor of the birthplace of ..."."""
        for relation in relations:
            what = self._noun_phrase(relation, what)
        return what

    def frame(self, target: str, noun_phrase: str) -> str:
        """A complete question for the entity of a noun phrase; `target` is its kind."""
        frames = PERSON_FRAMES if target == "person" else FRAMES
        return tidy(self.random.choice(frames.of(self.split)).format(np=noun_phrase))

    def _noun_phrase(self, relation: str, what: str) -> str:
        return self.random.choice(RELATIONS[relation].noun_phrases.of(self.split)).format(x=what)

    def _finish(self, relation: str, what: str) -> str:
        """A complete question for a relation's object: the relation's template, or a frame around a noun phrase."""
        if self.random.random() < 0.5:
            question = self.random.choice(RELATIONS[relation].asks.of(self.split)).format(x=what)
        else:
            frames = PERSON_FRAMES if RELATIONS[relation].target == "person" else FRAMES
            question = self.random.choice(frames.of(self.split)).format(np=self._noun_phrase(relation, what))
        return tidy(question)

    def _chain(self, kind: str, hops: int) -> GeneratedQuestion | None:
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

    def _follow(self, kind: str, start: Entity, relations: list[str]) -> GeneratedQuestion | None:
        """The question of a chain; None if it is circular, or if its text reveals a bridge entity or the answer."""
        steps: list[Step] = []
        what, entity = self.mention(start), start
        phrase = what
        for hop, relation in enumerate(relations):
            value = entity.facts[relation]
            answer = value if isinstance(value, str) else value.name
            about = what if hop == 0 else f"#{hop}"
            steps.append(Step(self._finish(relation, about), answer, entity, relation))
            if hop < len(relations) - 1:
                assert isinstance(value, Entity)
                phrase, entity = self._noun_phrase(relation, phrase), value
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
        return GeneratedQuestion(kind, add_noise(question, self.random), answer, tuple(steps), question)

    def _pair(self) -> tuple[str, Entity, Entity, Step, Step] | None:
        """Two entities of a kind with different years and without namesakes, the earlier one first, and their hops."""
        kind = self.random.choice(sorted(DECIDING_FACT))
        fact = DECIDING_FACT[kind]
        candidates = [e for e in self.by_kind[kind] if e.namesake is None and (not fact or fact in e.facts)]
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
        """The noun phrase of a comparison, the entity it denotes, and the hops, those of the denoted entity last."""
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

    def _compare_names(self) -> GeneratedQuestion | None:
        """A question for one of two names."""
        won = self._winner()
        if won is None:
            return None
        phrase, winner, steps = won
        question = self.frame(winner.kind, phrase)
        return GeneratedQuestion("comparison_name", add_noise(question, self.random), winner.name, steps, question)

    def _compare_facts(self) -> GeneratedQuestion | None:
        """A question for a fact about the earlier or later of two entities."""
        won = self._winner()
        if won is None:
            return None
        phrase, winner, steps = won
        relations = [r for r in winner.facts if RELATIONS[r].target not in LITERALS]
        if not relations:
            return None
        relation = self.random.choice(relations)
        value = winner.facts[relation]
        assert isinstance(value, Entity)
        loser = self.passages[steps[0].entity]
        question = self._finish(relation, phrase)
        if contains(f"{loser.title} {loser.text}", value.name) or contains(question, value.name):
            return None
        return GeneratedQuestion("comparison_fact", add_noise(question, self.random), value.name, steps, question)

    def _compare_sameness(self, yes: bool) -> GeneratedQuestion | None:
        """A yes-no question whether two entities have the same object of a relation."""
        relation = self.random.choice(sorted(SAME))
        candidates = [e for e in self.by_kind[RELATIONS[relation].head] if e.namesake is None and relation in e.facts]
        if not candidates:
            return None
        first = self.random.choice(candidates)
        near = [e for e in candidates if e.cluster == first.cluster and e is not first]  # same region: no hint
        seconds = [e for e in near if (e.facts[relation] is first.facts[relation]) == yes]
        if not seconds:
            return None
        second = self.random.choice(seconds)
        template = self.random.choice(SAME[relation].of(self.split))
        clean = tidy(template.format(a=first.name, b=second.name))
        question = add_noise(clean, self.random)
        steps = []
        for entity in (first, second):
            value = entity.facts[relation]
            assert isinstance(value, Entity)
            steps.append(Step(self._finish(relation, entity.name), value.name, entity, relation))
        return GeneratedQuestion("comparison_same", question, "yes" if yes else "no", tuple(steps), clean)
