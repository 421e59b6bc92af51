"""How a fact is said and asked for: the shape of the phrase tables.  No phrase may appear under two splits."""

from typing import NamedTuple

SPLITS = ("train", "validation", "test")


class Phrases(NamedTuple):
    """Templates of one meaning, in three disjoint sets: a model never meets a test phrasing in training.

    Place holders: statements use {s} (subject), {p} (its possessive) and {o} (object); questions use {x} (what is asked
    about), {np} (a noun phrase), {a} and {b} (two things compared).
    """

    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]

    def of(self, split: str) -> tuple[str, ...]:
        """The templates of one split; the web's entities are spoken of as the test's are."""
        return {"train": self.train, "validation": self.validation, "test": self.test, "web": self.test}[split]


class Relation(NamedTuple):
    """A functional relation: every entity of kind `head` has exactly one object."""

    head: str  # kind of the subject
    target: str  # kind of the object: an entity's kind, or the literals "year" and "river"
    statements: Phrases  # clauses without a full stop, for passages
    noun_phrases: Phrases  # name the object: "the director of {x}"
    asks: Phrases  # whole questions
