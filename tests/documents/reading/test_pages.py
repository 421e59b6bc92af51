"""Pages of documentation generators and users' files in `pages`: each is read as the Markdown beside it (`.read`).

Below the Markdown stands what was left out.
"""

from pathlib import Path

import pytest

from documents.markdown_writing import to_markdown
from documents.reading.any_file import read_document
from documents.reading.markdown_reading import parse_markdown

PAGES = sorted(page for page in Path(__file__).with_name("pages").iterdir() if page.suffix != ".read")
PICTURES = {"p.png": b"\x89PNG\r\n\x1a\n" + bytes(20)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_read_as_the_markdown_beside_it(page: Path) -> None:
    document = read_document(page.read_bytes(), page.name, load_image=PICTURES.get)
    text = to_markdown(document)
    left_out = "".join(f"\nleft out: {line}\n" for line in document.left_out)
    assert text + left_out == page.with_suffix(".read").read_text(encoding="utf-8")
    if "![" not in text:
        assert parse_markdown(text, page.name).blocks == document.blocks
