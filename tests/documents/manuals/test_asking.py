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

from documents.manuals.asking import ask
from documents.manuals.composing import compose
from documents.manuals.family import FAMILIES
from documents.manuals.manual import Manual
from documents.manuals.products import draw_products
from documents.manuals.questions import LibraryQuestion

SPLITS = ("test", "validation")
OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
DIGEST = "5ae0b963ca8d90b7344f891b2ac014665a06176db05c9cce6c84cb61736fe87b"


@pytest.fixture(scope="module")
def asked() -> dict[str, list[LibraryQuestion]]:
    """The questions about the manuals of the default world."""
    manuals = [compose(product) for product in draw_products(FAMILIES, Random("1/library/products"))]
    return {split: ask(manuals, split, Random(f"1/library/{split}")) for split in SPLITS}


def of_kind(asked: dict[str, list[LibraryQuestion]], kind: str) -> list[LibraryQuestion]:
    found = [one for split in SPLITS for one in asked[split] if one.kind in (kind, "across")]
    assert len(found) >= 90
    return found


def evidence(manual: Manual, key: str) -> str:
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
    calculated = [one for one in of_kind(asked, "calculation") if "expression" in one.more]
    assert len(calculated) > 96
    for one in calculated:
        expression = str(one.more["expression"])
        result = calculate(ast.parse(expression, mode="eval").body)
        assert number(one.answers[0].removeprefix("EUR ")) == pytest.approx(
            round(result, 1 if "/" in expression else 2)
        ), one
        told = [one.text, "2", *(evidence(*gold).replace(",", "") for gold in one.gold)]
        for term in re.findall(r"(?<![\d.])-?\d+(?:\.\d+)?", expression.replace("- ", "+ ")):
            assert any(re.search(rf"(?<![\d.]){re.escape(term)}(?![\d.]*\d)", text) for text in told), (term, one)
        assert len(one.gold) == 2


def test_the_best_product_has_the_extreme_value(asked: dict[str, list[LibraryQuestion]]) -> None:
    seen = set()
    for one in of_kind(asked, "comparison"):
        if len({key for _, key in one.gold}) > 1:
            continue
        values = {manual.product.name: manual.product.values[key].amount for manual, key in one.gold}
        texts = [manual.product.values[key].text for manual, key in one.gold]
        assert all(text in evidence(*gold) for text, gold in zip(texts, one.gold, strict=True))
        if asked_for := re.search(r"Which has the (\w+) |is the (\w+)\?$", one.text):
            least = {"lowest", "smallest"} & {*asked_for.groups()}
            assert least or {"highest", "greatest"} & {*asked_for.groups()}
            seen.add("least" if least else "most")
            wanted = (min if least else max)(values.values())
            assert values[one.answers[0]] == wanted, one
            assert [*values.values()].count(wanted) == 1
        elif "expression" not in one.more and "ambient temperature of" not in one.text and "as hot as" not in one.text:
            seen.add("both")
            assert [part.strip() for part in one.answers[1].split(",")] == [text.replace(",", "") for text in texts]
    assert seen == {"most", "least", "both"}


def test_splits_share_neither_product_nor_phrasing(asked: dict[str, list[LibraryQuestion]]) -> None:
    names = sorted({m.product.short for split in SPLITS for one in asked[split] for m, _ in one.gold}, key=len)

    def phrasing(one: LibraryQuestion) -> str:
        text = re.sub(r"[A-D]\) .*$", "", one.text)  # without the options
        for name in reversed(names):
            text = text.replace(name, "NAME")
        entry = one.gold[0][1].partition(" ")[2]
        return text.replace(entry, "ENTRY") if entry else text

    test, validation = ({m.product.name for one in asked[split] for m, _ in one.gold} for split in SPLITS)
    assert (len(test), len(validation), test & validation) == (30, 18, set())
    assert not {*map(phrasing, asked["test"])} & {*map(phrasing, asked["validation"])}
