"""Documents on disk: what is read back is what was written, and what is damaged is not taken."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from documents.records import Document, Heading, Image, Paragraph, Table
from documents.stored_document import DOCUMENT, load_about, load_document, save_document

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
PAGE = st.none() | st.integers(1, 9)
BLOCKS = st.one_of(
    st.builds(Heading, TEXT, st.integers(1, 6), PAGE),
    st.builds(Paragraph, TEXT, PAGE, st.booleans()),
    st.builds(
        Table,
        st.integers(1, 3).flatmap(lambda width: st.lists(st.tuples(*[TEXT] * width), min_size=1,
            max_size=3).map(tuple)),
        st.integers(0, 1),
        TEXT | st.just(""),
        PAGE,
    ),
    st.builds(Image, st.binary(min_size=1, max_size=9), st.sampled_from([".png", ".jpg", ".svg"]), TEXT, st.just(""),
        PAGE),
)  # fmt: skip
DOCUMENTS = st.builds(
    Document, TEXT, TEXT, st.lists(BLOCKS, max_size=6).map(tuple), PAGE, st.lists(TEXT, max_size=2).map(tuple)
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(DOCUMENTS)
def test_what_is_read_back_is_what_was_written(tmp_path: Path, document: Document) -> None:
    save_document(tmp_path / "one", document, "# text\n", {"seconds": 1.5})
    assert load_document(tmp_path / "one") == document
    assert load_about(tmp_path / "one")["seconds"] == 1.5


def test_a_damaged_document_is_not_taken(tmp_path: Path) -> None:
    image = Image(b"\x89PNG", ".png", "Figure 1")
    document = Document("a.pdf", "Alba", (Heading("One", 1), Paragraph("Text."), image), 3)
    save_document(tmp_path, document, "", {})
    lines = (tmp_path / DOCUMENT).read_text().splitlines(keepends=True)
    for damaged in ("".join(lines[:-1]), "".join(lines)[:-9], "".join(lines).replace("Text", "Texu"), "", lines[0]):
        (tmp_path / DOCUMENT).write_text(damaged)
        with pytest.raises(ValueError, match="damaged"):
            load_document(tmp_path)
    (tmp_path / DOCUMENT).write_text("".join(lines))
    assert load_document(tmp_path) == document
    (tmp_path / "images" / image.file).unlink()
    with pytest.raises(OSError, match=image.file):
        load_document(tmp_path)
