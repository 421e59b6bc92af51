"""Questions about the world's library: right answers, computed again in another way; disjoint splits.

Fixed questions.
"""

import ast
import hashlib
import json
import operator
import re
from random import Random

import pytest

from common.records import clean
from datamodules.world.library.asking import ask
from datamodules.world.library.composing import compose
from datamodules.world.library.families import FAMILIES
from datamodules.world.library.manual import Manual
from datamodules.world.library.parameters import SHARED, Value
from datamodules.world.library.products import draw_products
from datamodules.world.library.questions import LibraryQuestion

SPLITS = ("test", "validation")
OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
DIGEST = "5ae0b963ca8d90b7344f891b2ac014665a06176db05c9cce6c84cb61736fe87b"


@pytest.fixture(scope="module")
def manuals() -> list[Manual]:
    """The manuals of the default world."""
    return [compose(product) for product in draw_products(FAMILIES, Random("1/library/products"))]


@pytest.fixture(scope="module")
def asked(manuals: list[Manual]) -> dict[str, list[LibraryQuestion]]:
    return {split: ask(manuals, split, Random(f"1/library/{split}")) for split in SPLITS}


def of_kind(asked: dict[str, list[LibraryQuestion]], *kinds: str) -> list[LibraryQuestion]:
    found = [one for split in SPLITS for one in asked[split] if one.kind in kinds]
    assert len(found) >= 90
    return found


def evidence(one: LibraryQuestion, place: int) -> str:
    manual, key = one.gold[place]
    return " | ".join(manual.facts[key].evidence)


def calculate(node: ast.expr) -> float:
    if isinstance(node, ast.BinOp):
        return OPERATIONS[type(node.op)](calculate(node.left), calculate(node.right))
    if isinstance(node, ast.UnaryOp):
        return -calculate(node.operand)
    assert isinstance(node, ast.Constant)
    return node.value


def number(text: str) -> float:
    return float(re.search(r"-?\d[\d,]*(?:\.\d+)?", text)[0].replace(",", ""))


def test_the_questions_of_the_default_world_are_fixed(asked: dict[str, list[LibraryQuestion]]) -> None:
    rows = [
        [one.kind, one.text, one.answers, [[m.file, m.facts[key].evidence] for m, key in one.gold], one.more]
        for split in SPLITS
        for one in asked[split]
    ]
    assert hashlib.sha256(json.dumps(rows).encode()).hexdigest() == DIGEST


def test_calculations_are_right_and_use_what_the_gold_segments_say(asked: dict[str, list[LibraryQuestion]]) -> None:
    calculated = [one for one in of_kind(asked, "calculation", "across") if "expression" in one.more]
    assert len(calculated) > 96
    for one in calculated:
        expression = str(one.more["expression"])
        result = calculate(ast.parse(expression, mode="eval").body)
        places = 1 if "/" in expression else 2
        assert number(one.answers[0].removeprefix("EUR ")) == pytest.approx(round(result, places)), one
        told = [one.text, "2", *(evidence(one, place).replace(",", "") for place in range(len(one.gold)))]
        for term in re.findall(r"(?<![\d.])-?\d+(?:\.\d+)?", expression.replace("- ", "+ ")):
            assert any(re.search(rf"(?<![\d.]){re.escape(term)}(?![\d.]*\d)", text) for text in told), (term, one)
        assert len(one.gold) == 2


def test_the_best_product_has_the_extreme_value(asked: dict[str, list[LibraryQuestion]]) -> None:
    compared = [one for one in of_kind(asked, "comparison", "across") if len({key for _, key in one.gold}) == 1]
    seen = set()
    for one in compared:
        values = {}
        for manual, key in one.gold:
            value = manual.product.values[key]
            assert value.text in " | ".join(manual.facts[key].evidence)
            values[manual.product.name] = value.amount
        if asked_for := re.search(r"Which has the (\w+) |is the (\w+)\?$", one.text):
            least = {"lowest", "smallest"} & {*asked_for.groups()}
            assert least or {"highest", "greatest"} & {*asked_for.groups()}
            seen.add("least" if least else "most")
            wanted = (min if least else max)(values.values())
            assert values[one.answers[0]] == wanted, one
            assert [*values.values()].count(wanted) == 1
        elif "expression" not in one.more and "ambient temperature of" not in one.text and "as hot as" not in one.text:
            seen.add("both")
            assert [part.strip() for part in one.answers[1].split(",")] == [
                manual.product.values[key].text.replace(",", "") for manual, key in one.gold
            ]
    assert seen == {"most", "least", "both"}


def test_hot_rooms_leave_one_product(asked: dict[str, list[LibraryQuestion]]) -> None:
    rooms = [one for one in of_kind(asked, "across") if re.search("ambient temperature of|gets as hot", one.text)]
    assert len(rooms) > 8
    for one in rooms:
        limit = float(re.search(r"(\d+) °C", one.text)[1])
        fit = [m.product.name for m, _ in one.gold if m.product.values["ambient_high"].amount >= limit]
        assert fit == [one.answers[0]]


def test_right_options_stand_in_the_evidence_and_wrong_ones_do_not(asked: dict[str, list[LibraryQuestion]]) -> None:
    for one in of_kind(asked, "choice"):
        options = one.more["options"]
        assert isinstance(options, dict)
        assert all(f"{letter}) {option}" in one.text for letter, option in options.items())
        assert len(set(options.values())) == 4
        if len(one.gold) == 1:
            told = f"{evidence(one, 0)} "
            right = [n for n, option in options.items() if re.search(rf"(?<![\w.,-]){re.escape(option)}(?!\w)", told)]
            assert right == [one.answers[0]], one
            assert options[right[0]] in one.answers
        else:
            stated = [option.split(": ")[1] for option in options.values()]
            right = [
                letter
                for place, letter in enumerate(options)
                if one.gold[place][0].facts[one.gold[place][1]].answers[0] == stated[place]
            ]
            assert "".join(right) == one.answers[2]
            assert len(right) in (2, 3)


def test_table_answers_are_cells_of_the_gold_row(asked: dict[str, list[LibraryQuestion]]) -> None:
    for one in of_kind(asked, "table"):
        (manual, key), cells = one.gold[0], one.gold[0][0].facts[one.gold[0][1]].evidence
        assert any(answer in cells for answer in one.answers), one
        entry = key.partition(" ")[2]
        assert not entry or (entry in one.text and entry in cells)
        assert manual.product.model in one.text


def test_terminals_are_those_of_the_drawing(asked: dict[str, list[LibraryQuestion]]) -> None:
    terminals = [one for one in of_kind(asked, "image") if one.answers[0].startswith("X")]
    assert len(terminals) > 15
    for one in terminals:
        manual, key = one.gold[0]
        (drawn,) = (block for block in manual.blocks if block.name == "terminals")
        assert drawn.rows[int(one.answers[0][1:]) - 1] == [key.removeprefix("terminal ")]


def test_splits_share_neither_product_nor_phrasing(asked: dict[str, list[LibraryQuestion]]) -> None:
    products, phrasings = {}, {}
    names = sorted({m.product.short for split in SPLITS for one in asked[split] for m, _ in one.gold}, key=len)
    for split in SPLITS:
        products[split] = {manual.product.name for one in asked[split] for manual, _ in one.gold}
        phrasings[split] = set()
        for one in asked[split]:
            text = re.sub(r"[A-D]\) .*$", "", one.text)  # without the options
            for name in reversed(names):
                text = text.replace(name, "NAME")
            entry = one.gold[0][1].partition(" ")[2]
            phrasings[split].add(text.replace(entry, "ENTRY") if entry else text)
    assert not products["test"] & products["validation"]
    assert not phrasings["test"] & phrasings["validation"]
    assert (len(products["test"]), len(products["validation"])) == (30, 18)


def test_products_are_named_in_several_ways(asked: dict[str, list[LibraryQuestion]]) -> None:
    whole = [one.gold[0][0].product.name in one.text for one in asked["test"] if one.kind == "descriptive"]
    assert 0.2 < sum(whole) / len(whole) < 0.7


def test_siblings_differ_in_every_value(manuals: list[Manual]) -> None:
    for family in FAMILIES:
        siblings = [manual for manual in manuals if manual.product.family is family]
        assert len(siblings) == 8
        for key in SHARED | family.parameters:
            assert len({manual.product.values[key] for manual in siblings}) == 8, key


def test_values_and_the_ways_to_write_them() -> None:
    assert Value(12000, "rpm").answers == ["12,000 rpm", "12000 rpm"]
    assert Value(2.5, "mm").answers == ["2.5 mm", "2.5mm", "2.5 millimetres"]
    assert Value(4711).answers == ["4711"]
    assert Value(-5, "°C").text == clean("-5 °C")
