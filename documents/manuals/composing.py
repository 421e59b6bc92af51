"""Composes a manual's blocks from a template and a product.

A template's lines: `# `, `## `, `### ` headings; `1. ` steps; `! ` a warning; `@table NAME: CAPTION` with the rows
below it, cells parted by `|`, where `*NAME` stands for rows that are drawn for each product; `@figure NAME: CAPTION`;
`@own PLACE` for the family's own sections; any other line is a paragraph. In texts `{n}` is the product's name,
`{unit}` and the family's terms what they say, `{table:NAME}` and `{figure:NAME}` references, and every other name in
braces a parameter: the sentence, or the row, states a fact.
"""

import re
from itertools import takewhile
from pathlib import Path

from documents.manuals.manual import Fact, Manual, ManualBlock
from documents.manuals.products import Product
from documents.manuals.styles import STYLES, ManualStyle

KINDS = {  # wording -> what such a manual calls itself; its template is the file `wording_NAME.txt`
    "formal": "Installation and Operating Instructions", "brief": "User Manual", "technical": "Technical Manual",
}  # fmt: skip
_FIELD = re.compile(r"\{(?:(table|figure):)?(\w+)\}")
_SENTENCE_END = re.compile(r"(?<=[.!?]) +(?=[A-Z{])")
_STEP = re.compile(r"\d\. ")


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
        self.names = {
            kind: [line.split(":")[0].split()[1] for line in lines if line.startswith(f"@{kind} ")]
            for kind in ("table", "figure")
        }
        self.counts = [0, 0, 0]  # of headings, by level
        self.headings: list[str] = []
        self.blocks: list[ManualBlock] = []
        self.facts: dict[str, Fact] = {}

    def read(self) -> None:
        """Make all blocks."""
        place = 0
        while place < len(self.lines):
            taken = self._block(self.lines[place:])
            place += taken

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
        number = self.names["figure"].index(name) + 1
        answers = dict.fromkeys((self.style.figure.format(number=number), f"Figure {number}", caption))
        self._fact(f"figure {name}", tuple(answers), (caption,), block, 0)
        if name == "terminals":
            for place, label in enumerate(labels, 1):
                self._fact(f"terminal {label}", (f"X{place}", f"terminal X{place}"), (caption,), block, 0)

    def _terminals(self) -> tuple[str, ...]:
        """The signals in the order of this product's terminals: the first three are the same for all."""
        supply, signals = self.product.family.terminals[:3], self.product.family.terminals[3:]
        turn = self.product.family.models.index(self.product.model) % len(signals)
        return (*supply, *signals[turn:], *signals[:turn])

    def _table(self, line: str, lines: list[str]) -> None:
        name, caption = self._caption("table", line)
        block = self._add(ManualBlock("table", caption, name=name))
        for line in lines:
            if line in _DRAWN_ROWS:
                _DRAWN_ROWS[line](self, block)
            elif line == "*specifications":
                for specification in self.product.family.specifications:
                    self._row(specification, block)
            else:
                self._row(line, block)

    def _row(self, line: str, block: ManualBlock) -> None:
        cells = [self._text(cell.strip()) for cell in line.split("|")]
        block.rows.append(cells)
        for key in self._parameters(line):
            value = self.product.values[key]
            self._fact(key, tuple(value.answers), tuple(cells), block, len(block.rows) - 1, value.amount)

    def _errors(self, block: ManualBlock) -> None:
        for code, place in self.product.codes.items():
            cells = [code, *self.product.family.errors[place]]
            block.rows.append(cells)
            for key, answer in ((f"error {code}", cells[1]), (f"remedy {code}", cells[2])):
                self._fact(key, (answer,), tuple(cells), block, len(block.rows) - 1)

    def _parts(self, block: ManualBlock) -> None:
        for part, number, price in zip(
            self.product.family.parts, self.product.numbers, self.product.prices, strict=True
        ):
            cells = (part, number, f"{price:.2f}")
            block.rows.append([*cells])
            row = len(block.rows) - 1
            self._fact(f"part {part}", (number, number.replace("-", " ")), cells, block, row)
            self._fact(
                f"price {part}", (f"EUR {price:.2f}", f"{price:.2f} EUR", f"{price:.2f}"), cells, block, row, price
            )

    def _jobs(self, block: ManualBlock) -> None:
        for (job, _, who), interval in zip(self.product.family.jobs, self.product.intervals, strict=True):
            cells = (job, f"{interval.text}", who)
            block.rows.append([*cells])
            answers = (*interval.answers, *(f"every {answer}" for answer in interval.answers))
            self._fact(f"job {job}", answers, cells, block, len(block.rows) - 1, interval.amount)

    def _joints(self, block: ManualBlock) -> None:
        for (joint, thread), torque in zip(self.product.family.joints, self.product.torques, strict=True):
            cells = (joint, thread, torque.text)
            block.rows.append([*cells])
            self._fact(f"torque {joint}", tuple(torque.answers), cells, block, len(block.rows) - 1, torque.amount)

    def _caption(self, kind: str, line: str) -> tuple[str, str]:
        name, _, text = line.removeprefix(f"@{kind} ").partition(": ")
        number = self.names[kind].index(name) + 1
        return name, self.style.caption(kind, number, self._text(text))

    def _state(self, template: str, block: ManualBlock, row: int) -> None:
        """Record the facts that the sentences of a paragraph or a step state."""
        for sentence in _SENTENCE_END.split(template):
            for key in self._parameters(sentence):
                block.whole = True
                value = self.product.values[key]
                self._fact(key, tuple(value.answers), (self._text(sentence),), block, row, value.amount)

    def _fact(
        self,
        key: str,
        answers: tuple[str, ...],
        evidence: tuple[str, ...],
        block: ManualBlock,
        row: int,
        amount: float | None = None,
    ) -> None:
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
                number = self.names[kind].index(name) + 1
                return getattr(self.style, kind).format(number=number)
            return self.product.values[name].text if name in self.product.values else self._text(words[name])

        return _FIELD.sub(shown, template)


_DRAWN_ROWS = {
    "*errors": _Composer._errors,
    "*parts": _Composer._parts,
    "*intervals": _Composer._jobs,
    "*torques": _Composer._joints,
}
