"""Documents on disk: what is read back is what was written, and what is damaged is not taken."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from documents.normal_form import normalized
from documents.records import Document, Heading, Image, Paragraph
from documents.stored_document import DOCUMENT, load_about, load_document, save_document
from tests.documents.reading.test_markdown import documents


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents.map(normalized), st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=2))
def test_what_is_read_back_is_what_was_written(tmp_path: Path, document: Document, left_out: list[str]) -> None:
    document = replace(document, left_out=tuple(left_out))
    save_document(tmp_path / "one", document, "# text\n", {"seconds": 1.5})
    assert load_document(tmp_path / "one") == document
    assert load_about(tmp_path / "one")["seconds"] == 1.5


def test_a_damaged_document_is_not_taken(tmp_path: Path) -> None:
    image = Image(b"\x89PNG", ".png", "Figure 1")
    document = Document("a.pdf", "Alba", (Heading("One", 1), Paragraph("Text."), image, Image(b"GIF", ".gif")), 3)
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
