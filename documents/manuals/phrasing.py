"""Phrasings of the library's questions, from `phrasing.json`.

The first of each pair for test, the second for validation. {n} is a product's name, {x} the entry of a table or a
drawing.
"""

from documents.manuals.parameters import read_table

Pair = list[str]
_TABLE = read_table("phrasing")

ENTRIES: dict[str, Pair] = _TABLE["entries"]  # first word of a fact's key -> question about a table's row
FIGURES: dict[str, Pair] = _TABLE["figures"]
DESCRIBED: dict[str, Pair] = _TABLE[
    "described"
]  # parameter -> what the paragraph, or the steps, that state it describe
CALCULATIONS: dict[str, Pair] = _TABLE["calculations"]  # by expression of parameters; the result has the first's unit
PRICES: Pair = _TABLE["prices"]
ONE_CHOICE: Pair = _TABLE["one_choice"]
SEVERAL_CHOICES: Pair = _TABLE["several_choices"]
COMPARISON: Pair = _TABLE["comparison"]
MOST: dict[str, Pair] = _TABLE["most"]
BOTH: Pair = _TABLE["both"]
TOTALS: dict[str, Pair] = _TABLE["totals"]  # parameter -> sum over products
ROOM: Pair = _TABLE["room"]
