"""Quantities that a product of the library has: their unit, the values they can have, and how questions name them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from common.files import read_json

UNIT_WORDS = {
    "mm": "millimetres", "cm": "centimetres", "m": "metres", "kg": "kilograms", "g": "grams", "l": "litres",
    "ml": "millilitres", "V": "volts", "A": "amperes", "mA": "milliamperes", "W": "watts", "kHz": "kilohertz",
    "Pa": "pascals", "bar": "bar", "Nm": "newton metres", "°C": "degrees Celsius", "%": "per cent", "s": "seconds",
    "min": "minutes", "h": "hours",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Value:
    """A number with its unit."""

    amount: float
    unit: str = ""

    @property
    def number(self) -> str:
        """The number as manuals print it: "12,000", "7.5"."""
        return f"{self.amount:,.10g}" if self.amount >= 10_000 else f"{self.amount:.10g}"

    @property
    def text(self) -> str:
        """As manuals print it: "12,000 rpm"."""
        return f"{self.number} {self.unit}".strip()

    @property
    def answers(self) -> list[str]:
        """The text, and other natural ways to write it."""
        forms = [self.text]
        if word := UNIT_WORDS.get(self.unit):
            forms += [f"{self.number}{self.unit}", f"{self.number} {word}"]
        return list(dict.fromkeys(forms + [form.replace(",", "") for form in forms]))


@dataclass(frozen=True, slots=True)
class Parameter:
    """A quantity.  Pairs of texts are for test and for validation questions; {n} is the product's name."""

    unit: str
    values: Sequence[float]  # siblings have different ones
    ask: Sequence[str]
    noun: Sequence[str]  # fits "Which has the highest ...?" and "...: 5 mm"

    def draw(self, count: int, random: Random) -> list[Value]:
        """Different values for `count` siblings."""
        return [Value(amount, self.unit) for amount in random.sample(self.values, count)]


def steps(low: float, high: float, step: float) -> tuple[float, ...]:
    """Values from `low` to `high`."""
    return tuple(round(low + n * step, 4) for n in range(round((high - low) / step) + 1))


def parameters_of(table: Mapping[str, Any]) -> dict[str, Parameter]:
    """The parameters of a table, whose values are a list, or `steps` with its three arguments."""
    values = {name: each["values"] if "values" in each else steps(*each["steps"]) for name, each in table.items()}
    return {name: Parameter(each["unit"], values[name], each["ask"], each["noun"]) for name, each in table.items()}


def read_table(name: str) -> dict[str, Any]:
    """A JSON file of this folder."""
    return read_json(Path(__file__).with_name(f"{name}.json"), "Install the project again.")


SHARED = parameters_of(read_table("parameters"))  # what manuals of every family state, each in one place
