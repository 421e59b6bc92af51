"""Composes a manual's blocks from a template and a product.

A template's lines: `# `, `## `, `### ` headings; `1. ` steps; `! ` a warning; `@table NAME: CAPTION` with the rows
below it, cells parted by `|`, where `*NAME` stands for rows that are drawn for each product; `@figure NAME: CAPTION`;
`@own PLACE` for the family's own sections; any other line is a paragraph. In texts `{n}` is the product's name,
`{unit}` and the family's terms what they say, `{table:NAME}` and `{figure:NAME}` references, and every other name in
braces a parameter: the sentence, or the row, states a fact.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, takewhile
from pathlib import Path

from documents.manuals.manual import Evidence, Fact, Manual, ManualBlock
from documents.manuals.products import Product
from documents.manuals.styles import STYLES, ManualStyle

KINDS = {  # wording -> what such a manual calls itself; its template is the file `wording_NAME.txt`
    "formal": "Installation and Operating Instructions", "brief": "User Manual", "technical": "Technical Manual",
}  # fmt: skip
_FIELD = re.compile(r"\{(?:(table|figure):)?(\w+)\}")
_SENTENCE_END = re.compile(r"(?<=[.!?]) +(?=[A-Z{])")
_STEP = re.compile(r"\d\. ")
_Stated = tuple[str, tuple[str, ...], float | None]  # key, answers and amount of a fact


def compose(product: Product) -> Manual:
    """A manual that is not typeset yet."""
    wording = product.family.wording
    template = Path(__file__).with_name(f"wording_{wording}.txt").read_text(encoding="utf-8")
    composer = _Composer(product, STYLES[product.family.style], template)
    composer.read()
    return Manual(product, f"{product.name} {KINDS[wording]}", composer.blocks, composer.facts)


class _Composer:
    def __init__(self, product: Product, style: ManualStyle, template: str) -> None:
        self.product, self.style = product, style
        lines: list[str] = []
        for line in template.splitlines():
            own = line.startswith("@own ")
            lines += product.family.own.get(line.removeprefix("@own "), ()) if own else [line]
        self.lines = lines
        self.numbers: dict[str, dict[str, int]] = {}  # of tables and figures, by name
        for kind in ("table", "figure"):
            names = [line.split(":")[0].split()[1] for line in lines if line.startswith(f"@{kind} ")]
            self.numbers[kind] = {name: number for number, name in enumerate(names, 1)}
        self.counts = [0, 0, 0]  # of headings, by level
        self.headings: list[str] = []
        self.blocks: list[ManualBlock] = []
        self.facts: dict[str, Fact] = {}

    def read(self) -> None:
        """Make all blocks."""
        place = 0
        while place < len(self.lines):
            place += self._block(self.lines[place:])

    def _block(self, lines: list[str]) -> int:
        """Make the block with which the lines begin; returns the number of lines that it took."""
        first = lines[0]
        if first.startswith("#"):
            mark, text = first.split(" ", 1)
            self._heading(len(mark), self._text(text))
            return 1
        if _STEP.match(first):
            steps = [line[3:] for line in takewhile(_STEP.match, lines)]
            block = self._add(ManualBlock("steps", rows=[[self._text(step)] for step in steps]))
            for row, step in enumerate(steps):
                self._state(step, block, row)
            return len(steps)
        if first.startswith("@figure "):
            self._figure(first)
            return 1
        if first.startswith("@table "):
            rows = list(takewhile(lambda line: "|" in line or line.startswith("*"), lines[1:]))
            self._table(first, rows)
            return 1 + len(rows)
        warning = first.startswith("! ")
        text = first.removeprefix("! ")
        block = self._add(ManualBlock("warning" if warning else "paragraph", self._text(text), whole=warning))
        self._state(text, block, 0)
        return 1

    def _add(self, block: ManualBlock) -> ManualBlock:
        self.blocks.append(block)
        return block

    def _heading(self, level: int, text: str) -> None:
        self.counts[level - 1] += 1
        self.counts[level:] = [0] * (len(self.counts) - level)
        text = self.style.numbered(text, self.counts[:level])
        self.headings[level - 1 :] = [text]
        self._add(ManualBlock("heading", text, level))

    def _figure(self, line: str) -> None:
        name, caption = self._caption("figure", line)
        family = self.product.family
        labels = {"blocks": family.components, "terminals": self._terminals(), "curve": family.axes}.get(name, ())
        block = self._add(ManualBlock("figure", caption, rows=[[label] for label in labels], name=name))
        number = self.numbers["figure"][name]
        answers = dict.fromkeys((self.style.figure.format(number=number), f"Figure {number}", caption))
        self._fact((f"figure {name}", tuple(answers), None), (caption,), block)
        if name == "terminals":
            for place, label in enumerate(labels, 1):
                self._fact((f"terminal {label}", (f"X{place}", f"terminal X{place}"), None), (caption,), block)

    def _terminals(self) -> tuple[str, ...]:
        """The signals in the order of this product's terminals: the first three are the same for all."""
        supply, signals = self.product.family.terminals[:3], self.product.family.terminals[3:]
        turn = self.product.family.models.index(self.product.model) % len(signals)
        return (*supply, *signals[turn:], *signals[:turn])

    def _table(self, line: str, lines: list[str]) -> None:
        name, caption = self._caption("table", line)
        block = self._add(ManualBlock("table", caption, name=name))
        for cells, stated in chain.from_iterable(map(self._rows, lines)):
            block.rows.append([*cells])
            for each in stated:
                self._fact(each, cells, block, len(block.rows) - 1)

    def _rows(self, line: str) -> Iterator[tuple[Evidence, Sequence[_Stated]]]:
        """The cells of a template's line, or of the rows that it stands for, and what each row states."""
        product, family = self.product, self.product.family
        match line:
            case "*specifications":
                yield from chain.from_iterable(map(self._rows, family.specifications))
            case "*errors":
                for code, place in product.codes.items():
                    fault, remedy = family.errors[place]
                    facts = [(f"error {code}", (fault,), None), (f"remedy {code}", (remedy,), None)]
                    yield (code, fault, remedy), facts
            case "*parts":
                for part, number, price in zip(family.parts, product.numbers, product.prices, strict=True):
                    text = f"{price:.2f}"
                    priced = (f"price {part}", (f"EUR {text}", f"{text} EUR", text), price)
                    yield (part, number, text), [(f"part {part}", (number, number.replace("-", " ")), None), priced]
            case "*intervals":
                for (job, _, who), interval in zip(family.jobs, product.intervals, strict=True):
                    answers = (*interval.answers, *(f"every {answer}" for answer in interval.answers))
                    yield (job, interval.text, who), [(f"job {job}", answers, interval.amount)]
            case "*torques":
                for (joint, thread), torque in zip(family.joints, product.torques, strict=True):
                    yield (joint, thread, torque.text), [(f"torque {joint}", tuple(torque.answers), torque.amount)]
            case _:
                values = {key: product.values[key] for key in self._parameters(line)}
                stated = [(key, tuple(value.answers), value.amount) for key, value in values.items()]
                yield tuple(self._text(cell.strip()) for cell in line.split("|")), stated

    def _caption(self, kind: str, line: str) -> tuple[str, str]:
        name, _, text = line.removeprefix(f"@{kind} ").partition(": ")
        return name, self.style.caption(kind, self.numbers[kind][name], self._text(text))

    def _state(self, template: str, block: ManualBlock, row: int) -> None:
        """Record the facts that the sentences of a paragraph or a step state."""
        for sentence in _SENTENCE_END.split(template):
            for key in self._parameters(sentence):
                block.whole = True
                value = self.product.values[key]
                self._fact((key, tuple(value.answers), value.amount), (self._text(sentence),), block, row)

    def _fact(self, stated: _Stated, evidence: Evidence, block: ManualBlock, row: int = 0) -> None:
        key, answers, amount = stated
        if key in self.facts:
            raise ValueError(f"the manual of the {self.product.name} states {key!r} twice")
        self.facts[key] = Fact(key, answers, evidence, block, row, tuple(self.headings), amount)

    def _parameters(self, template: str) -> list[str]:
        return [key for kind, key in _FIELD.findall(template) if not kind and key in self.product.values]

    def _text(self, template: str) -> str:
        """A template's text for this product."""
        family = self.product.family
        words = {"n": self.product.name, "unit": family.unit, **family.terms}

        def shown(match: re.Match) -> str:
            kind, name = match.groups()
            if kind:
                return getattr(self.style, kind).format(number=self.numbers[kind][name])
            return self.product.values[name].text if name in self.product.values else self._text(words[name])

        return _FIELD.sub(shown, template)
