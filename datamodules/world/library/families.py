"""The library's product families, each from a file `family_NAME.json`."""

from pathlib import Path

from datamodules.world.library.family import Family
from datamodules.world.library.parameters import parameters_of
from datamodules.world.phrases import read_table


def read_family(name: str) -> Family:
    """A family by the name in its file's."""
    table = read_table(Path(__file__).with_name(f"family_{name}.json"))
    return Family(**table | {"parameters": parameters_of(table["parameters"])})


FAMILIES = tuple(map(read_family, ("pumps", "ventilation", "coffee", "printers", "drives", "centrifuges")))
