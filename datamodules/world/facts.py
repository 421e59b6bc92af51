"""Table of all relations between entities (director, author, birthplace, ...) with their phrase templates."""

from pathlib import Path

from datamodules.world.phrases import Relation, read_table

RELATIONS = {name: Relation(**each) for name, each in read_table(Path(__file__).with_name("relations.json")).items()}
LITERALS = ("year", "river")  # relation targets that are strings, not entities


def relations_of(kind: str) -> list[str]:
    """Names of the relations whose subject has the given kind."""
    return [name for name, relation in RELATIONS.items() if relation.head == kind]
