"""Questions about one product of the library: descriptive, choice, table, calculation and image questions."""

import operator
import re
from collections.abc import Callable

from documents.manuals.manual import Manual
from documents.manuals.parameters import SHARED, Value
from documents.manuals.questions import PHRASES, Draws, LibraryQuestion, amount

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
    phrases = PHRASES["described"] | manual.product.family.asked
    key = draws.random.choice([*phrases])
    block = manual.facts[key].block
    answer = " ".join(row[0] for row in block.rows) or block.text
    return LibraryQuestion(phrases[key][draws.form].format(n=draws.name(manual)), (answer,), ((manual, key),))


def choice(draws: Draws, manual: Manual) -> LibraryQuestion:
    """One right option of four, or several."""
    return (_one_choice if draws.random.random() < 0.5 else _several_choices)(draws, manual)


def _one_choice(draws: Draws, manual: Manual) -> LibraryQuestion:
    key = draws.random.choice([*draws.parameters(manual)])
    right = manual.facts[key].answers
    wrong = [other.facts[key].answers[0] for other in draws.random.sample(draws.siblings(manual), 3)]
    options = dict(zip(LETTERS, draws.random.sample([right[0], *wrong], len(LETTERS)), strict=True))
    letter = next(letter for letter, value in options.items() if value == right[0])
    question = draws.parameters(manual)[key].ask[draws.form].format(n=draws.name(manual))
    text = PHRASES["one_choice"][draws.form].format(question=question, options=_listed(options))
    return LibraryQuestion(text, (letter, f"{letter}) {right[0]}", *right), ((manual, key),), {"options": options})


def _several_choices(draws: Draws, manual: Manual) -> LibraryQuestion:
    """Four statements, two or three of them true; the false ones are true of a sibling."""
    parameters = draws.parameters(manual)
    keys = draws.random.sample([*parameters], len(LETTERS))
    true = set(draws.random.sample(keys, draws.random.choice((2, 2, 3))))
    sibling = draws.random.choice(draws.siblings(manual))
    options = {}
    for letter, key in zip(LETTERS, keys, strict=True):
        noun = parameters[key].noun[draws.form]
        value = (manual if key in true else sibling).facts[key].answers[0]
        options[letter] = f"{noun[0].upper()}{noun[1:]}: {value}"
    right = [letter for letter, key in zip(LETTERS, keys, strict=True) if key in true]
    text = PHRASES["several_choices"][draws.form].format(n=draws.name(manual), options=_listed(options))
    answers = (f"{', '.join(right[:-1])} and {right[-1]}", ", ".join(right), "".join(right))
    return LibraryQuestion(text, answers, tuple((manual, key) for key in keys), {"options": options})


def table(draws: Draws, manual: Manual) -> LibraryQuestion:
    """A cell of a table's row."""
    rows = [key for key, fact in manual.facts.items() if fact.kind == "table"]
    start = draws.random.choice([*PHRASES["entries"], "", ""])  # "": a parameter
    key = draws.random.choice([key for key in rows if key.startswith(f"{start} ") or (not start and " " not in key)])
    name, (_, _, entry) = draws.name(manual), key.partition(" ")
    phrases = PHRASES["entries"][start] if start else draws.parameters(manual)[key].ask
    text = phrases[draws.form].format(n=name, x=entry)
    return LibraryQuestion(text, manual.facts[key].answers, ((manual, key),))


def calculation(draws: Draws, manual: Manual) -> LibraryQuestion:
    """A number to be computed of two that the manual states."""
    template = draws.random.choice([*PHRASES["calculations"], "", ""])
    if not template:
        return _prices(draws, manual)
    keys = _TERM.findall(template)
    terms = {key: amount(manual.facts[key]) for key in keys}
    operation = _TERM.sub("", template).strip()
    unit, places = ("A", 1) if operation == "/" else (SHARED[keys[0]].unit, 2)
    total = Value(round(_OPERATIONS[operation](*terms.values()), places), unit)
    text = PHRASES["calculations"][template][draws.form].format(n=draws.name(manual))
    expression = template.format(**{key: f"{number:.10g}" for key, number in terms.items()})
    return LibraryQuestion(text, tuple(total.answers), tuple((manual, key) for key in keys), {"expression": expression})


def _prices(draws: Draws, manual: Manual) -> LibraryQuestion:
    first, second = draws.random.sample(manual.product.family.parts, 2)
    count = draws.random.randint(2, 6)
    keys = (f"price {first}", f"price {second}")
    one, other = (amount(manual.facts[key]) for key in keys)
    total = f"{count * one + other:.2f}"
    text = PHRASES["prices"][draws.form].format(count=count, x=first, y=second, n=draws.name(manual))
    answers = (f"EUR {total}", total, f"{total} EUR", f"{float(total):.10g}")
    expression = f"{count} * {one:.2f} + {other:.2f}"
    return LibraryQuestion(text, answers, tuple((manual, key) for key in keys), {"expression": expression})


def image(draws: Draws, manual: Manual) -> LibraryQuestion:
    """Which figure shows something, or what stands in a drawing."""
    start = draws.random.choice([*PHRASES["figures"], "terminal", "terminal"])
    signals = [f"terminal {label}" for label in manual.product.family.terminals[3:]]
    key = draws.random.choice(signals) if start == "terminal" else start
    text = PHRASES["figures"][start][draws.form].format(n=draws.name(manual), x=key.partition(" ")[2])
    return LibraryQuestion(text, manual.facts[key].answers, ((manual, key),))


def _listed(options: dict[str, str]) -> str:
    return " ".join(f"{letter}) {value}" for letter, value in options.items())
