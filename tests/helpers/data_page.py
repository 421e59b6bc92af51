"""The example rows of docs/data.md, by layout."""

import json
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/data.md"
SECTION = re.compile(r"^### (\w+)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)

SECTIONS = {name: text for name, text in SECTION.findall(PAGE.read_text(encoding="utf-8"))}


def examples(layout: str) -> dict[str, str]:
    """The files that the page shows of a layout, by the kind of file."""
    return dict(FENCE.findall(SECTIONS[layout]))


def example_rows(layout: str) -> list[dict]:
    """The rows that the page shows of a layout as JSON Lines."""
    return [json.loads(line) for line in examples(layout)["json"].splitlines()]
