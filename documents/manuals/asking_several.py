"""Questions about several products of the library: comparisons of siblings, and questions across families."""

from collections.abc import Sequence

from documents.manuals.manual import Manual
from documents.manuals.parameters import SHARED, Parameter, Value
from documents.manuals.questions import PHRASES, UNORDERED, Draws, LibraryQuestion, amount


def comparison(draws: Draws, manual: Manual) -> LibraryQuestion:
    """Which of two to four siblings has the highest or the lowest value."""
    family = [other for other in draws.manuals if other.product.family is manual.product.family and other is not manual]
    count = min(len(family), draws.random.choice((1, 1, 1, 2, 2, 3)))
    compared = draws.random.sample([manual, *draws.random.sample(family, count)], count + 1)
    return _extreme(draws, compared, draws.parameters(manual))


def across(draws: Draws, manual: Manual) -> LibraryQuestion:
    """Products of different families: two values, their sum, the extreme one, or one that fits."""
    return draws.random.choice((_both, _total, _best_of_families, _room))(draws, manual)


def _both(draws: Draws, manual: Manual) -> LibraryQuestion:
    pair = draws.strangers(manual, 1)
    key = draws.random.choice([*SHARED])
    first, second = (draws.name(one) for one in pair)
    text = PHRASES["both"][draws.form].format(noun=SHARED[key].noun[draws.form], n=first, other=second)
    values = [one.facts[key].answers[0] for one in pair]
    answers = (" and ".join(values), ", ".join(values), f"{first}: {values[0]}, {second}: {values[1]}")
    return LibraryQuestion(text, answers, tuple((one, key) for one in pair))


def _total(draws: Draws, manual: Manual) -> LibraryQuestion:
    pair = draws.strangers(manual, 1)
    key = draws.random.choice([*PHRASES["totals"]])
    first, second = (draws.name(one) for one in pair)
    text = PHRASES["totals"][key][draws.form].format(n=first, other=second)
    amounts = [amount(one.facts[key]) for one in pair]
    total = Value(round(sum(amounts), 2), SHARED[key].unit)
    expression = " + ".join(f"{amount:.10g}" for amount in amounts)
    return LibraryQuestion(text, tuple(total.answers), tuple((one, key) for one in pair), {"expression": expression})


def _best_of_families(draws: Draws, manual: Manual) -> LibraryQuestion:
    ordered = {key: parameter for key, parameter in SHARED.items() if key not in UNORDERED}
    return _extreme(draws, draws.strangers(manual, draws.random.choice((2, 2, 3))), ordered)


def _room(draws: Draws, manual: Manual) -> LibraryQuestion:
    """Which one of several products may be operated where it is hot."""
    while True:
        several = draws.strangers(manual, draws.random.choice((2, 3)))
        limits = sorted(amount(one.facts["ambient_high"]) for one in several)
        if limits[-1] - limits[-2] >= 2:
            break
    best = max(several, key=lambda one: amount(one.facts["ambient_high"]))
    limit = Value(draws.random.randint(int(limits[-2]) + 1, int(limits[-1])), "°C")
    names = _listed([f"the {draws.name(one)}" for one in several], "or")
    text = PHRASES["room"][draws.form].format(limit=limit.text, names=names)
    return LibraryQuestion(text, _called(best), tuple((one, "ambient_high") for one in several))


def _extreme(draws: Draws, compared: list[Manual], parameters: dict[str, Parameter]) -> LibraryQuestion:
    """Which product has the highest or the lowest value of a parameter that all differ in."""
    keys = [key for key in parameters if len({one.facts[key].amount for one in compared}) == len(compared)]
    key, direction = draws.random.choice(keys), draws.random.choice([*PHRASES["most"]])
    best = {"max": max, "min": min}[direction](compared, key=lambda one: amount(one.facts[key]))
    names = _listed([f"the {draws.name(one)}" for one in compared], "or" if draws.form == 0 else "and")
    text = PHRASES["comparison"][draws.form].format(
        most=PHRASES["most"][direction][draws.form], noun=parameters[key].noun[draws.form], names=names
    )
    return LibraryQuestion(text, _called(best), tuple((one, key) for one in compared))


def _listed(names: Sequence[str], word: str) -> str:
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


def _called(manual: Manual) -> tuple[str, ...]:
    """Ways to name a product in an answer."""
    product = manual.product
    return product.name, product.short, f"the {product.name}", f"the {product.short}"
