"""Types of the phrase tables: templates per split, and relations with their statements and questions.

The tables are JSON files beside the code that uses them.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

SPLITS = ("train", "validation", "test")


class Phrases(NamedTuple):
    """Templates with the same meaning, in disjoint sets, so that no validation or test phrasing occurs in training.

    Placeholders: statements use {s} (subject), {p} (possessive of the subject) and {o} (object); questions use {x}
    (subject of the question), {np} (a noun phrase), {a} and {b} (the compared entities).
    """

    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]

    def of(self, split: str) -> tuple[str, ...]:
        """The templates of one split; the web split uses those of the test split."""
        return {"train": self.train, "validation": self.validation, "test": self.test, "web": self.test}[split]


class Relation(NamedTuple):
    """A functional relation: a subject of kind `head` has at most one object."""

    head: str  # kind of the subject
    target: str  # kind of the object: an entity kind, or the literal "year" or "river"
    statements: Phrases  # clauses without a full stop, for passages
    noun_phrases: Phrases  # noun phrases for the object: "the director of {x}"
    asks: Phrases  # complete questions


def read_table(file: Path) -> dict[str, Any]:
    """The content of a JSON file: lists as tuples, and an object with a list for each split as `Phrases`."""
    return {name: _entry(value) for name, value in json.loads(file.read_text(encoding="utf-8")).items()}


def _entry(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_entry, value))
    if not isinstance(value, dict):
        return value
    entries = {name: _entry(each) for name, each in value.items()}
    templates = tuple(entries) == SPLITS and all(isinstance(each, tuple) for each in entries.values())
    return Phrases(**entries) if templates else entries
