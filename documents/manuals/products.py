"""Draws the products of the library: the differences between manuals that otherwise read alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from documents.manuals.family import Family
from documents.manuals.parameters import SHARED, Value, steps

SPLIT_OF = ("test",) * 5 + ("validation",) * 3  # of a family's eight products, in random order
CODE_LETTERS = {"formal": "F", "brief": "E", "technical": "T"}
INTERVALS = {  # by unit
    "days": steps(1, 16, 1), "weeks": steps(2, 50, 1), "operating hours": steps(500, 9500, 250),
    "cups": steps(1500, 30000, 500), "rolls": steps(2, 60, 1), "runs": steps(100, 6000, 100),
}  # fmt: skip
TORQUES = steps(0.6, 58, 0.7)


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """A product.

    The rows of its tables are in the order of its family's, but for the errors, which are sorted by code.
    """

    family: Family
    model: str
    split: str
    values: dict[str, Value]
    codes: dict[str, int]  # code -> place of the error among its family's
    numbers: tuple[str, ...]  # order numbers of the parts
    prices: tuple[float, ...]  # EUR
    intervals: tuple[Value, ...]
    torques: tuple[Value, ...]

    @property
    def name(self) -> str:
        """Maker, series and model."""
        return f"{self.family.maker} {self.short}"

    @property
    def short(self) -> str:
        """Series and model."""
        return f"{self.family.series} {self.model}"

    @property
    def file(self) -> str:
        """Name of its manual without the suffix."""
        return self.name.lower().replace(" ", "-")


def draw_products(families: Sequence[Family], random: Random) -> list[Product]:
    """The products of all families; siblings differ in every value."""
    taken: set[str] = set()
    return [product for family in families for product in _siblings(family, random, taken)]


def _siblings(family: Family, random: Random, taken: set[str]) -> list[Product]:
    count = len(family.models)
    known = SHARED | family.parameters
    values = {key: parameter.draw(count, random) for key, parameter in known.items()}
    intervals = [[Value(n, unit) for n in random.sample(INTERVALS[unit], count)] for _, unit, _ in family.jobs]
    torques = [[Value(n, "Nm") for n in random.sample(TORQUES, count)] for _ in family.joints]
    splits = random.sample(SPLIT_OF, count)
    letter = CODE_LETTERS[family.wording]
    made = []
    for place, model in enumerate(family.models):
        errors = random.sample(range(len(family.errors)), len(family.errors))
        codes = sorted(random.sample(range(1, 90), len(errors)))
        made.append(
            Product(
                family,
                model,
                splits[place],
                {key: drawn[place] for key, drawn in values.items()},
                {f"{letter}{code:02}": error for code, error in zip(codes, errors, strict=True)},
                tuple(_order_number(family, random, taken) for _ in family.parts),
                tuple(random.randrange(65, 4800) / 10 for _ in family.parts),
                tuple(drawn[place] for drawn in intervals),
                tuple(drawn[place] for drawn in torques),
            )
        )
    return made


def _order_number(family: Family, random: Random, taken: set[str]) -> str:
    while (number := f"{family.maker[:2].upper()}-{random.randrange(10_000, 99_999)}") in taken:
        pass
    taken.add(number)
    return number
