"""Questions about one product of the library: descriptive, choice, table, calculation and image questions."""

import operator
import re
from collections.abc import Callable, Sequence

from documents.manuals import phrasing
from documents.manuals.manual import Manual
from documents.manuals.parameters import SHARED, Value
from documents.manuals.questions import Draws, LibraryQuestion, amount

LETTERS = "ABCD"
_TERM = re.compile(r"\{(\w+)\}")
_OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "/": operator.truediv,
    "+ 2 *": lambda first, second: first + 2 * second,
}


def descriptive(draws: Draws, manual: Manual) -> LibraryQuestion:
    """What a paragraph, or a list of steps, describes; the answer is all of it."""
    phrases = phrasing.DESCRIBED | manual.product.family.asked
    key = draws.random.choice([*phrases])
    block = manual.facts[key].block
    answer = " ".join(row[0] for row in block.rows) or block.text
    return LibraryQuestion(phrases[key][draws.form].format(n=draws.name(manual)), (answer,), ((manual, key),))


def choice(draws: Draws, manual: Manual) -> LibraryQuestion:
    """One right option of four, or several."""
    return (_one_choice if draws.random.random() < 0.5 else _several_choices)(draws, manual)


def _one_choice(draws: Draws, manual: Manual) -> LibraryQuestion:
    key = draws.random.choice([*draws.parameters(manual)])
    right = manual.facts[key]
    wrong = [other.facts[key].answers[0] for other in draws.random.sample(draws.siblings(manual), 3)]
    values = draws.random.sample([right.answers[0], *wrong], len(LETTERS))
    letter = LETTERS[values.index(right.answers[0])]
    question = draws.parameters(manual)[key].ask[draws.form].format(n=draws.name(manual))
    text = phrasing.ONE_CHOICE[draws.form].format(question=question, options=_options(values))
    answers = (letter, f"{letter}) {values[LETTERS.index(letter)]}", *right.answers)
    return LibraryQuestion(text, answers, ((manual, key),), {"options": dict(zip(LETTERS, values, strict=True))})


def _several_choices(draws: Draws, manual: Manual) -> LibraryQuestion:
    """Four statements, two or three of them true; the false ones are true of a sibling."""
    parameters = draws.parameters(manual)
    keys = draws.random.sample([*parameters], len(LETTERS))
    true = set(draws.random.sample(keys, draws.random.choice((2, 2, 3))))
    sibling = draws.random.choice(draws.siblings(manual))
    values = []
    for key in keys:
        noun = parameters[key].noun[draws.form]
        values.append(f"{noun[0].upper()}{noun[1:]}: {(manual if key in true else sibling).facts[key].answers[0]}")
    right = [letter for letter, key in zip(LETTERS, keys, strict=True) if key in true]
    text = phrasing.SEVERAL_CHOICES[draws.form].format(n=draws.name(manual), options=_options(values))
    answers = (f"{', '.join(right[:-1])} and {right[-1]}", ", ".join(right), "".join(right))
    more: dict[str, object] = {"options": dict(zip(LETTERS, values, strict=True))}
    return LibraryQuestion(text, answers, tuple((manual, key) for key in keys), more)


def table(draws: Draws, manual: Manual) -> LibraryQuestion:
    """A cell of a table's row."""
    rows = [key for key, fact in manual.facts.items() if fact.kind == "table"]
    start = draws.random.choice([*phrasing.ENTRIES, "", ""])  # "": a parameter
    key = draws.random.choice([key for key in rows if key.startswith(f"{start} ") or (not start and " " not in key)])
    name, (_, _, entry) = draws.name(manual), key.partition(" ")
    phrases = phrasing.ENTRIES[start] if start else draws.parameters(manual)[key].ask
    text = phrases[draws.form].format(n=name, x=entry)
    return LibraryQuestion(text, manual.facts[key].answers, ((manual, key),))


def calculation(draws: Draws, manual: Manual) -> LibraryQuestion:
    """A number to be computed of two that the manual states."""
    template = draws.random.choice([*phrasing.CALCULATIONS, "", ""])
    if not template:
        return _prices(draws, manual)
    keys = _TERM.findall(template)
    terms = {key: amount(manual.facts[key]) for key in keys}
    operation = _TERM.sub("", template).strip()
    unit, places = ("A", 1) if operation == "/" else (SHARED[keys[0]].unit, 2)
    total = Value(round(_OPERATIONS[operation](*terms.values()), places), unit)
    text = phrasing.CALCULATIONS[template][draws.form].format(n=draws.name(manual))
    more: dict[str, object] = {"expression": template.format(**{key: f"{n:.10g}" for key, n in terms.items()})}
    return LibraryQuestion(text, tuple(total.answers), tuple((manual, key) for key in keys), more)


def _prices(draws: Draws, manual: Manual) -> LibraryQuestion:
    first, second = draws.random.sample(manual.product.family.parts, 2)
    count = draws.random.randint(2, 6)
    keys = (f"price {first}", f"price {second}")
    one, other = (amount(manual.facts[key]) for key in keys)
    total = f"{count * one + other:.2f}"
    text = phrasing.PRICES[draws.form].format(count=count, x=first, y=second, n=draws.name(manual))
    answers = (f"EUR {total}", total, f"{total} EUR", f"{float(total):.10g}")
    more: dict[str, object] = {"expression": f"{count} * {one:.2f} + {other:.2f}"}
    return LibraryQuestion(text, answers, tuple((manual, key) for key in keys), more)


def image(draws: Draws, manual: Manual) -> LibraryQuestion:
    """Which figure shows something, or what stands in a drawing."""
    start = draws.random.choice([*phrasing.FIGURES, "terminal", "terminal"])
    signals = [f"terminal {label}" for label in manual.product.family.terminals[3:]]
    key = draws.random.choice(signals) if start == "terminal" else start
    text = phrasing.FIGURES[start][draws.form].format(n=draws.name(manual), x=key.partition(" ")[2])
    return LibraryQuestion(text, manual.facts[key].answers, ((manual, key),))


def _options(values: Sequence[str]) -> str:
    return " ".join(f"{letter}) {value}" for letter, value in zip(LETTERS, values, strict=True))
