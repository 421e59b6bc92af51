"""Pages of documentation generators and users' files in `pages`: each is read as the Markdown beside it (`.read`)."""

from pathlib import Path

import pytest

from documents.markdown_writing import to_markdown
from documents.reading.any_file import read_document

PAGES = sorted(page for page in Path(__file__).with_name("pages").iterdir() if page.suffix != ".read")
LEFT_OUT = {
    "around_the_content.html": (
        'scripts and styles left out: 2 x, 2 words, e.g. "x"',
        'navigation and contents left out: 2 x, 2 words, e.g. "x"',
        'headers, footers and asides left out: 3 x, 3 words, e.g. "x"',
        'hidden text left out: 3 x, 3 words, e.g. "x"',
    ),
    "docbook.html": ('navigation and contents left out: 2 x, 5 words, e.g. "Next"',),
    "html_between_blocks.md": ('comments left out: 1 x, 5 words, e.g. "a note of two lines"',),
    "pandoc.html": (
        'navigation and contents left out: 1 x, 1 word, e.g. "Use"',
        'hidden text left out: 1 x, 1 word, e.g. "Wiring"',
    ),
    "sphinx.html": (
        'navigation and contents left out: 3 x, 3 words, e.g. "next"',
        'headers, footers and asides left out: 1 x, 1 word, e.g. "copyright"',
    ),
    "texinfo.html": ('navigation and contents left out: 2 x, 6 words, e.g. "Table of Contents Use"',),
}
PICTURES = {"p.png": b"\x89PNG\r\n\x1a\n" + bytes(20)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_read_as_the_markdown_beside_it(page: Path) -> None:
    document = read_document(page.read_bytes(), page.name, load_image=PICTURES.get)
    assert document.left_out == LEFT_OUT.get(page.name, ())
    assert to_markdown(document) == page.with_suffix(".read").read_text(encoding="utf-8")
