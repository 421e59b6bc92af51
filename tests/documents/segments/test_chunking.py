"""Fixed-size chunks."""

from hypothesis import given
from hypothesis import strategies as st

from documents.records import Document, Heading, Image, Paragraph, Table
from documents.segments.augmentation import passages
from documents.segments.chunking import fixed_chunks

DOCUMENT = Document("p.pdf", "Pump", (Heading("A", 1, 1), Paragraph("b c d", 2), Paragraph("e f g h", 3)))


def test_chunks_overlap_and_know_their_pages() -> None:
    found = fixed_chunks(DOCUMENT, 4, 1)
    assert [(s.text, s.page, s.last_page) for s in found] == [("A\n\nb c d", 1, 2), ("d\n\ne f g", 2, 3), ("g h", 3, 3)]
    assert {(s.kind, s.headings, s.document, s.embedded == s.text) for s in found} == {("text", (), "p.pdf", True)}
    assert [passage.title for passage in passages(found)] == ["Pump"] * 3
    assert [passage.title for passage in passages(found, "none")] == [""] * 3


@given(st.integers(0, 50), st.integers(1, 9), st.integers(0, 8))
def test_all_words_stand_in_the_chunks(count: int, words: int, overlap: int) -> None:
    overlap = min(overlap, words - 1)
    given_words = [f"w{n}" for n in range(count)]
    document = Document("a", "T", (Paragraph(" ".join(given_words)),))
    chunks = [segment.text.split() for segment in fixed_chunks(document, words, overlap)]
    assert [word for place, chunk in enumerate(chunks) for word in chunk[overlap if place else 0 :]] == given_words
    assert all(len(chunk) == words for chunk in chunks[:-1])
    assert all(len(chunk) > overlap for chunk in chunks[1:])


def test_tables_and_captions_are_text() -> None:
    blocks = (Table((("a", "b"), ("1", "2")), caption="Table 1"), Image(b"x", ".png", "Figure 1", "in it"))
    (chunk,) = fixed_chunks(Document("a", "T", blocks))
    assert chunk.text == "Table 1\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\nFigure 1\nin it"


def test_an_empty_document_has_no_chunk() -> None:
    assert not fixed_chunks(Document("a", "T", ()))
