"""Where a segment stands, as it is cited."""

import pytest

from common.records import Passage
from documents.records import Segment, as_passage
from harness.runtime.citation import citation

SEGMENT = Segment(
    "pumps/a1.pdf", "Alba A1", ("Installation", "Power supply"), "text", "It takes 24 V.", "It takes 24 V."
)


def cited(segment: Segment, **metadata: object) -> str:
    passage = as_passage(segment, segment.path)
    assert passage.metadata is not None
    passage.metadata.update(metadata)
    return citation(passage)


def test_document_page_and_headings() -> None:
    base = ("pumps/a1.pdf", "Alba A1")
    assert cited(Segment(*base, ("Installation", "Power supply"), "text", "x", "x", 3, 3)) == (
        "pumps/a1.pdf, page 3: Installation > Power supply"
    )
    assert cited(Segment(*base, ("Safety",), "table", "x", "y", 3, 5)) == "pumps/a1.pdf, pages 3 to 5: Safety"
    assert cited(Segment(*base, (), "text", "x", "x", 1)) == "pumps/a1.pdf, page 1"
    assert cited(Segment(*base, (), "text", "x", "x")) == "pumps/a1.pdf"
    assert cited(Segment(*base, ("Safety",), "text", "x", "x", part=2, parts=3)) == "pumps/a1.pdf: Safety (part 2 of 3)"


def test_a_document_under_several_names_is_cited_by_all() -> None:
    assert cited(SEGMENT, copies=["old/a1.pdf", "b.pdf"]) == (
        "pumps/a1.pdf (also old/a1.pdf, b.pdf): Installation > Power supply"
    )


@pytest.mark.parametrize(
    "metadata",
    [None, {}, {"document": "a.pdf"}, {"document": 5, "headings": [], "kind": "text"},
     {"document": "a.pdf", "headings": "Safety", "kind": "text"},
     {"document": "a.pdf", "headings": [], "kind": "patent"}],
)  # fmt: skip
def test_a_passage_of_another_corpus_is_not_cited(metadata: dict[str, object] | None) -> None:
    assert citation(Passage.of("Alba", "A river.", metadata=metadata)) == ""
