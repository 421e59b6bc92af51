"""Entities of the generated world (people, cities, films, companies, ...) and their facts."""

from dataclasses import dataclass, field

SHARES = {"person": 0.30, "city": 0.15, "film": 0.16, "company": 0.13, "book": 0.10, "band": 0.08, "product": 0.08}
MIN_COUNTS = {"person": 15, "city": 8, "film": 6, "company": 8, "book": 5, "band": 5, "product": 4}
PER_QUESTION = 1.9  # entities of the world, relative to the number of questions


@dataclass(eq=False, repr=False)
class Entity:
    """An entity, described by one passage."""

    kind: str
    name: str
    split: str
    year: int = 0  # of release (films, books, bands, products)
    region: str = ""  # fictional region it belongs to
    theme: tuple[str, ...] = ()  # topic words of its cluster
    cluster: int = 0  # index of its cluster within the split; facts link entities of the same cluster if possible
    category: str = ""  # profession of a person, device type of a product
    pronoun: str = "it"
    namesake: "Entity | None" = None  # another entity of the same kind and name
    facts: dict[str, "Entity | str"] = field(default_factory=dict)  # relation -> object
    referred_by: list["Entity"] = field(default_factory=list)  # entities with a fact whose object is this entity

    def __repr__(self) -> str:
        """Short, because facts are cyclic references."""
        return f"<{self.kind} {self.full_name}>"

    @property
    def full_name(self) -> str:
        """A name that is unique within the kind; used where other passages mention the entity."""
        if self.namesake is None:
            return self.name
        return f"{self.name}, {self.region}" if self.kind == "city" else f"{self.name} ({self.year})"


def count_entities(questions: int) -> dict[str, int]:
    """Number of entities of each kind in a split with this many questions."""
    return {kind: max(MIN_COUNTS[kind], round(questions * PER_QUESTION * share)) for kind, share in SHARES.items()}
