"""All relations of the world."""

from datamodules.world import phrases_people, phrases_trade, phrases_works
from datamodules.world.phrases import Relation

RELATIONS: dict[str, Relation] = {**phrases_works.RELATIONS, **phrases_trade.RELATIONS, **phrases_people.RELATIONS}
LITERALS = ("year", "river")


def relations_of(kind: str) -> list[str]:
    """Names of the relations whose subject is of that kind."""
    return [name for name, relation in RELATIONS.items() if relation.head == kind]
