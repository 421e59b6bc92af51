"""The things of the world and what is true of them."""

from dataclasses import dataclass, field

SHARES = {"person": 0.30, "city": 0.15, "film": 0.16, "company": 0.13, "book": 0.10, "band": 0.08, "product": 0.08}
LEAST = {"person": 15, "city": 8, "film": 6, "company": 8, "book": 5, "band": 5, "product": 4}


@dataclass(eq=False, repr=False)
class Entity:
    """One thing with a passage of its own."""

    kind: str
    name: str
    split: str
    year: int = 0  # of release, for films, books, bands and products
    region: str = ""  # where it belongs
    theme: tuple[str, ...] = ()  # what its corner of the world is about
    corner: int = 0  # number of that corner within the split; links stay inside it where they can
    trade: str = ""  # a person's profession, a product's class of device
    pronoun: str = "it"
    twin: "Entity | None" = None  # another of the same kind and the same name
    facts: dict[str, "Entity | str"] = field(default_factory=dict)  # relation -> object
    referred_by: list["Entity"] = field(default_factory=list)  # things of which this is an object

    def __repr__(self) -> str:
        """Short, for facts lead in circles."""
        return f"<{self.kind} {self.full_name}>"

    @property
    def full_name(self) -> str:
        """Names this thing and no other of its kind; how other passages mention it."""
        if self.twin is None:
            return self.name
        return f"{self.name}, {self.region}" if self.kind == "city" else f"{self.name} ({self.year})"


def count_entities(questions: int, per_question: float) -> dict[str, int]:
    """How many entities of each kind a split of that many questions has."""
    return {kind: max(LEAST[kind], round(questions * per_question * share)) for kind, share in SHARES.items()}
