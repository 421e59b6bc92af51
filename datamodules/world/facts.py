"""Table of all relations between entities (director, author, birthplace, ...) with their phrase templates."""

from datamodules.world import phrases_people, phrases_trade, phrases_works
from datamodules.world.phrases import Relation

RELATIONS: dict[str, Relation] = {**phrases_works.RELATIONS, **phrases_trade.RELATIONS, **phrases_people.RELATIONS}
LITERALS = ("year", "river")  # relation targets that are strings, not entities


def relations_of(kind: str) -> list[str]:
    """Names of the relations whose subject has the given kind."""
    return [name for name, relation in RELATIONS.items() if relation.head == kind]
