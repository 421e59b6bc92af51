"""Writes the passage of an entity: its facts in random order, with the templates of its split; titles may repeat."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from random import Random

from datamodules.world.entities import Entity
from datamodules.world.facts import RELATIONS
from datamodules.world.frames import FILLERS, INTRODUCED, KIND_NOUNS, NOT_TO_CONFUSE, OPENINGS, RECALLS

POSSESSIVES = {"she": "her", "he": "his", "it": "its"}
NAMED_AGAIN = {"person": 0.35, "company": 0.35, "city": 0.35}  # share of later clauses with the name, not a pronoun
INTRODUCING = 0.5  # share of objects that are introduced with their profession or region
RECALLED = 0.2  # share of passages that mention an entity that refers to their subject


@dataclass(frozen=True, slots=True)
class WrittenPassage:
    """A passage as sentences; those after the first start with a space, as in HotpotQA."""

    title: str
    sentences: tuple[str, ...]
    sentence_of: dict[str, int]  # relation, or "year" for the opening -> index of its sentence

    @property
    def text(self) -> str:
        """The complete passage without its title."""
        return "".join(self.sentences)


def tidy(sentence: str) -> str:
    """Capitalize the first letter and remove commas before other punctuation."""
    sentence = re.sub(r",([?.;,])", r"\1", sentence)
    return sentence[0].upper() + sentence[1:]


def title_of(entity: Entity, random: Random) -> str:
    """The name; for entities with a namesake, in half of the cases with a disambiguating suffix."""
    if entity.namesake is None or random.random() < 0.5:
        return entity.name
    kind = {"film": "film", "book": "novel"}.get(entity.kind, "")
    return entity.full_name if entity.kind == "city" else f"{entity.name} ({entity.year} {kind})"


def write_passage(entity: Entity, random: Random, without: Collection[str] = ()) -> WrittenPassage:
    """Write a passage of about 50 words: opening, every fact once, two fillers, sometimes a note on the namesake.

    Args:
        entity: Its subject.
        random: Source of randomness.
        without: Relations to omit.
    """

    def phrase(template: str, value: str = "") -> str:
        subject, possessive = entity.pronoun, POSSESSIVES[entity.pronoun]
        if random.random() < NAMED_AGAIN.get(entity.kind, 0.1):
            subject, possessive = entity.name, f"{entity.name}'s"
        elif random.random() < 0.2:
            subject = KIND_NOUNS.get(entity.kind, subject)
        return template.format(s=subject, p=possessive, o=value)

    def named_object(value: Entity | str) -> str:
        if isinstance(value, str):
            return value
        if random.random() >= INTRODUCING:
            return value.full_name
        template = random.choice(INTRODUCED[value.kind].of(split))
        return template.format(n=value.name, t=value.category, r=value.region)

    split = entity.split
    opening = random.choice(OPENINGS[entity.kind].of(split))
    clauses = [("year", opening.format(n=entity.name, y=entity.year, r=entity.region, t=entity.category))]
    rest = []
    for relation, value in entity.facts.items():
        if relation in without:
            continue
        clause = phrase(random.choice(RELATIONS[relation].statements.of(split)), named_object(value))
        rest.append((relation, clause))
    words = random.sample(entity.theme, len(entity.theme))
    for filler, some in zip(random.sample(FILLERS.of(split), 2), (words[:3], words[3:]), strict=True):
        listed = f"{', '.join(some[:-1])} and {some[-1]}"
        rest.append(("", filler.format(r=entity.region, w=listed)))
    if entity.referred_by and random.random() < RECALLED:
        rest.append(("", phrase(random.choice(RECALLS.of(split)), random.choice(entity.referred_by).full_name)))
    if entity.namesake is not None and random.random() < 0.3:
        rest.append(("", phrase(random.choice(NOT_TO_CONFUSE.of(split)), entity.namesake.full_name)))
    random.shuffle(rest)

    sentences: list[list[str]] = []
    sentence_of = {}
    for relation, clause in clauses + rest:
        if sentences and len(sentences[-1]) == 1 and random.random() < 0.3:
            sentences[-1].append(clause)
        else:
            sentences.append([clause])
        if relation:
            sentence_of[relation] = len(sentences) - 1
    joined = [tidy(random.choice((", and ", "; ")).join(clauses) + ".") for clauses in sentences]
    written = [("" if n == 0 else " ") + s for n, s in enumerate(joined)]
    return WrittenPassage(title_of(entity, random), tuple(written), sentence_of)
