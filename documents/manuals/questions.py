"""Questions about the library, and what drawing them needs.

The products of one split, its phrasings, a source of randomness.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from documents.manuals.manual import Fact, Manual
from documents.manuals.parameters import SHARED, Parameter, read_table

# Of each pair of phrasings the first is for test, the second for validation. {n} is a product's name, {x} the entry of
# a table or a drawing. By the first word of a fact's key (entries, figures), by the parameter that a paragraph states
# (described), by an expression of parameters whose result has the unit of the first (calculations), by parameter
# (totals), by "max" and "min" (most); else one pair.
PHRASES = read_table("phrasing")
UNORDERED = ("code", "address")  # numbers of which none is more than another


@dataclass(frozen=True, slots=True)
class LibraryQuestion:
    """A question with the facts that answer it."""

    text: str
    answers: tuple[str, ...]
    gold: tuple[tuple[Manual, str], ...]  # manual and key of the fact; one to four
    more: dict[str, object] = field(default_factory=dict)  # further metadata: options, expression
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Draws:
    """Draws products and their names."""

    manuals: Sequence[Manual]  # of one split
    everything: Sequence[Manual]  # the whole library, for wrong options
    form: int  # place of the split's phrasing in each pair of `phrasing`
    random: Random

    def turns(self) -> Iterator[Manual]:
        """The manuals in turn, each round in another order."""
        while True:
            yield from self.random.sample(self.manuals, len(self.manuals))

    def name(self, manual: Manual) -> str:
        """One of the ways in which people call a product."""
        product = manual.product
        kind = f"{product.short} {product.family.unit}" if self.form == 0 else f"{product.family.unit} {product.short}"
        return self.random.choice((product.name, product.name, product.short, product.short, kind))

    def parameters(self, manual: Manual) -> dict[str, Parameter]:
        """The quantities of a product that can be compared."""
        known = SHARED | manual.product.family.parameters
        return {key: parameter for key, parameter in known.items() if key not in UNORDERED}

    def siblings(self, manual: Manual) -> list[Manual]:
        """The other manuals of the family."""
        family = manual.product.family
        return [other for other in self.everything if other.product.family is family and other is not manual]

    def strangers(self, manual: Manual, count: int) -> list[Manual]:
        """A manual and others of families that differ, in random order."""
        families = {other.product.family.maker for other in self.manuals} - {manual.product.family.maker}
        drawn = self.random.sample(sorted(families), count)
        others = [self.random.choice([m for m in self.manuals if m.product.family.maker == maker]) for maker in drawn]
        return self.random.sample([manual, *others], count + 1)


def amount(fact: Fact) -> float:
    """The number that a fact states."""
    if fact.amount is None:
        raise ValueError(f"{fact.key!r} is no number")
    return fact.amount
