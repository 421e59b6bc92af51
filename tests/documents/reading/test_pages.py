"""Pages of documentation generators and users' files in `pages`: each is read as the Markdown beside it (`.read`)."""

from pathlib import Path

import pytest

from documents.markdown_writing import to_markdown
from documents.reading.any_file import read_document

PAGES = sorted(page for page in Path(__file__).with_name("pages").iterdir() if page.suffix != ".read")
PICTURES = {"p.png": b"\x89PNG\r\n\x1a\n" + bytes(20)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_read_as_the_markdown_beside_it(page: Path) -> None:
    document = read_document(page.read_bytes(), page.name, load_image=PICTURES.get)
    assert document.left_out == ()
    assert to_markdown(document) == page.with_suffix(".read").read_text(encoding="utf-8")
