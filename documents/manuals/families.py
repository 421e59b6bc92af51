"""The library's product families, each from a file `family_NAME.json`."""

from documents.manuals.family import Family
from documents.manuals.parameters import parameters_of, read_table


def read_family(name: str) -> Family:
    """A family by the name in its file's."""
    table = read_table(f"family_{name}")
    return Family(**table | {"parameters": parameters_of(table["parameters"])})


FAMILIES = tuple(map(read_family, ("pumps", "ventilation", "coffee", "printers", "drives", "centrifuges")))
