"""The passage of an entity: its facts in any order, phrased in its split's words, under a title that may repeat."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from random import Random

from datamodules.world.entities import Entity
from datamodules.world.facts import RELATIONS
from datamodules.world.frames import FILLERS, INTRODUCED, KIND_NOUNS, NOT_TO_CONFUSE, OPENINGS, RECALLS

POSSESSIVES = {"she": "her", "he": "his", "it": "its"}
NAMED_AGAIN = {"person": 0.35, "company": 0.35, "city": 0.35}  # share of later clauses with the name, not a pronoun
INTRODUCING = 0.5  # share of objects introduced by what they are and whence
RECALLED = 0.2  # share of passages that name something that refers to them


@dataclass(frozen=True, slots=True)
class Written:
    """A passage as written.  `sentences` after the first start with a blank, as in HotpotQA."""

    title: str
    sentences: tuple[str, ...]
    said_in: dict[str, int]  # relation (and "year", the opening's) -> index of its sentence

    @property
    def text(self) -> str:
        """The whole passage without its title."""
        return "".join(self.sentences)


def tidy(sentence: str) -> str:
    """A capital at the front; no comma before another mark."""
    sentence = re.sub(r",([?.;,])", r"\1", sentence)
    return sentence[0].upper() + sentence[1:]


def title_of(entity: Entity, random: Random) -> str:
    """The bare name, or as often, where another thing bears it, the name with what tells them apart."""
    if entity.twin is None or random.random() < 0.5:
        return entity.name
    kind = {"film": "film", "book": "novel"}.get(entity.kind, "")
    return entity.full_name if entity.kind == "city" else f"{entity.name} ({entity.year} {kind})"


def write_passage(entity: Entity, random: Random, without: Collection[str] = ()) -> Written:
    """One passage of about 50 words: the opening, every fact once, two fillers, at times a warning of the twin.

    Args:
        entity: What it is about.
        random: Source of chance.
        without: Relations that it does not tell of.
    """

    def phrase(template: str, said: str = "") -> str:
        subject, possessive = entity.pronoun, POSSESSIVES[entity.pronoun]
        if random.random() < NAMED_AGAIN.get(entity.kind, 0.1):
            subject, possessive = entity.name, f"{entity.name}'s"
        elif random.random() < 0.2:
            subject = KIND_NOUNS.get(entity.kind, subject)
        return template.format(s=subject, p=possessive, o=said)

    def named_object(said: Entity | str) -> str:
        if isinstance(said, str):
            return said
        if random.random() >= INTRODUCING:
            return said.full_name
        template = random.choice(INTRODUCED[said.kind].of(split))
        return template.format(n=said.name, t=said.trade, r=said.region)

    split = entity.split
    opening = random.choice(OPENINGS[entity.kind].of(split))
    clauses = [("year", opening.format(n=entity.name, y=entity.year, r=entity.region, t=entity.trade))]
    rest = []
    for relation, said in entity.facts.items():
        if relation in without:
            continue
        clause = phrase(random.choice(RELATIONS[relation].statements.of(split)), named_object(said))
        rest.append((relation, clause))
    words = random.sample(entity.theme, len(entity.theme))
    for filler, some in zip(random.sample(FILLERS.of(split), 2), (words[:3], words[3:]), strict=True):
        listed = f"{', '.join(some[:-1])} and {some[-1]}"
        rest.append(("", filler.format(r=entity.region, w=listed)))
    if entity.referred_by and random.random() < RECALLED:
        rest.append(("", phrase(random.choice(RECALLS.of(split)), random.choice(entity.referred_by).full_name)))
    if entity.twin is not None and random.random() < 0.3:
        rest.append(("", phrase(random.choice(NOT_TO_CONFUSE.of(split)), entity.twin.full_name)))
    random.shuffle(rest)

    sentences: list[list[str]] = []
    said_in = {}
    for relation, clause in clauses + rest:
        if sentences and len(sentences[-1]) == 1 and random.random() < 0.3:
            sentences[-1].append(clause)
        else:
            sentences.append([clause])
        if relation:
            said_in[relation] = len(sentences) - 1
    joined = [tidy(random.choice((", and ", "; ")).join(clauses) + ".") for clauses in sentences]
    written = [("" if n == 0 else " ") + s for n, s in enumerate(joined)]
    return Written(title_of(entity, random), tuple(written), said_in)
