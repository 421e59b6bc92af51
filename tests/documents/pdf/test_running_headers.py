"""Running headers, footers and page numbers of the pages in `running_headers.yaml`."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from documents.pdf.lines import Line
from documents.pdf.running_headers import running
from tests.helpers.pdf_lines import laid_out

CASES = yaml.safe_load(Path(__file__).with_name("running_headers.yaml").read_text(encoding="utf-8"))


def pages(count: int, each: str, some: dict[int, str]) -> list[Line]:
    found: list[Line] = []
    for number in range(1, max(count, *some, 0) + 1):
        text = f"y100 | Text {'abcdefghijklmnopqrstuvwxyz'[number % 26]} begins\ntext 40\n" * (number <= count)
        own = each.replace("#", str(number)) if number <= count else ""
        script = "\n".join([own.strip("\n"), text, some.get(number, "")])
        found += [replace(line, page=number) for line in laid_out(script)]
    return found


def left_out(pieces: list[Line]) -> list[str]:
    found = running(pieces, {piece.page: 800.0 for piece in pieces})
    return [pieces[at].text for at in sorted(found)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["is"])
def test_what_runs_is_found(case: dict[str, Any]) -> None:
    found = left_out(pages(case["pages"], case.get("each", ""), case.get("some", {})))
    assert (found if isinstance(case["found"], list) else len(found)) == case["found"]


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize(
    "first",
    [
        "y88 | Question #: Which valve of pump # must be closed?",  # the next line's distance
        "y88 | In 199# the factory moved to the harbour",
        "y88 | 199# was the year of the new factory",
        "y84 | Switch off the pump before you open it.",  # a paragraph's distance
        "y60 | Report number # says that the pump of unit # failed.",  # further away, but a sentence
    ],
)
def test_a_page_s_first_line_of_text_stays_whatever_its_numbers_count(count: int, first: str) -> None:
    assert left_out(pages(count, first, {})) == []
