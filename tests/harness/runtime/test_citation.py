"""Where a segment stands, as it is cited."""

from typing import Any

import pytest

from common.records import Passage
from documents.records import Segment, as_passage
from harness.runtime.citation import citation


@pytest.mark.parametrize(
    ("headings", "options", "copies", "cited"),
    [
        (("Installation", "Power"), {"page": 3, "last_page": 3}, [], "a1.pdf, page 3: Installation > Power"),
        (("Safety",), {"page": 3, "last_page": 5}, [], "a1.pdf, pages 3 to 5: Safety"),
        ((), {"page": 1}, [], "a1.pdf, page 1"),
        ((), {}, [], "a1.pdf"),
        (("Safety",), {"part": 2, "parts": 3}, [], "a1.pdf: Safety (part 2 of 3)"),
        (("Safety",), {}, ["old/a1.pdf", "b.pdf"], "a1.pdf (also old/a1.pdf, b.pdf): Safety"),
    ],
)
def test_document_page_and_headings(
    headings: tuple[str, ...], options: dict[str, Any], copies: list[str], cited: str
) -> None:
    segment = Segment("a1.pdf", "Alba A1", headings, "text", "x", "x", **options)
    passage = as_passage(segment, segment.path)
    assert passage.metadata is not None
    passage.metadata.update({"copies": copies} if copies else {})
    assert citation(passage) == cited


@pytest.mark.parametrize(
    "metadata", [None, {}, {"document": "a.pdf"}, {"document": 5}, {"headings": "Safety"}, {"kind": "patent"}]
)
def test_a_passage_of_another_corpus_is_not_cited(metadata: dict[str, object] | None) -> None:
    whole = {"document": "a.pdf", "headings": [], "kind": "text"}
    about = {**whole, **metadata} if metadata and metadata != {"document": "a.pdf"} else metadata
    assert citation(Passage.of("Alba", "A river.", metadata=about)) == ""
