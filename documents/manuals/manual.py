"""A manual of the library: its blocks in reading order, and where it states which fact."""

from dataclasses import dataclass, field

from common.records import GoldSegment
from documents.manuals.products import Product

Evidence = tuple[str, ...]


@dataclass(slots=True, eq=False)
class ManualBlock:
    """A block of a manual."""

    kind: str  # heading, paragraph, warning, steps, table or figure
    text: str = ""  # of a heading or paragraph; the caption of a table or figure
    level: int = 0  # of a heading, from 1
    rows: list[list[str]] = field(default_factory=list)  # of a table, its header first; of steps, one cell each
    name: str = ""  # of a table or figure
    whole: bool = False  # whether it may not be broken over pages
    pages: list[int] = field(default_factory=list)  # where each row, or else the block, begins; set by `typesetting`


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that one place of a manual states."""

    # of a parameter, or "error F07", "part Impeller", "price Impeller", "job ...", "torque ...", "figure blocks"
    key: str
    answers: tuple[str, ...]  # the main form first
    evidence: Evidence
    block: ManualBlock
    row: int  # of the block
    headings: tuple[str, ...]
    amount: float | None = None

    @property
    def kind(self) -> str:
        """Kind of the segment that holds it."""
        return {"table": "table", "figure": "image"}.get(self.block.kind, "text")


@dataclass(slots=True, eq=False)
class Manual:
    """A manual.  Pages are known once it is typeset."""

    product: Product
    title: str
    blocks: list[ManualBlock]
    facts: dict[str, Fact]
    page_count: int = 0

    @property
    def file(self) -> str:
        """Name of its PDF file."""
        return f"{self.product.file}.pdf"

    def gold(self, key: str) -> GoldSegment:
        """The gold segment of a fact."""
        fact = self.facts[key]
        return GoldSegment(self.file, fact.evidence, fact.kind, fact.headings, fact.block.pages[fact.row])

    def truth(self) -> dict:
        """The true structure, for scoring what is read from the PDF.

        Title, number of pages, and blocks in reading order with the page on which each begins.
        """
        return {"title": self.title, "pages": self.page_count, "blocks": [_truth(block) for block in self.blocks]}


def _truth(block: ManualBlock) -> dict:
    steps = "\n".join(f"{number}. {row[0]}" for number, row in enumerate(block.rows, 1))
    shown: dict[str, dict] = {
        "heading": {"kind": "heading", "level": block.level, "text": block.text},
        "table": {"kind": "table", "caption": block.text, "header_rows": 1, "rows": block.rows},
        "figure": {"kind": "image", "caption": block.text, "labels": [cell for row in block.rows for cell in row]},
        "steps": {"kind": "paragraph", "text": steps},
    }
    return shown.get(block.kind, {"kind": "paragraph", "text": block.text}) | {"page": block.pages[0]}
