"""The draw of places: every word once, short pieces within a page, always the same order, plain text of all formats."""

import shutil
import zipfile
from pathlib import Path

import pytest

from benchmarks.documents import question_places
from benchmarks.documents.catalogue import Entry, catalogue
from benchmarks.documents.question_places import WORDS, main, pairs, places, plain_pages
from common.errors import DataError, MissingInputError, UserError

ENTRIES = {entry.id: entry for entry in catalogue()}
MARKDOWN = ENTRIES["markdown-api"]


def written(folder: Path, entry: Entry, text: str) -> Path:
    (folder / entry.half).mkdir(exist_ok=True)
    (folder / entry.half / entry.file).write_text(text, encoding="utf-8")
    return folder


def test_places_hold_every_word_once_in_pieces_of_limited_length(tmp_path: Path) -> None:
    lines = [f"line {number} has words" for number in range(300)]
    folder = written(tmp_path, MARKDOWN, "\n".join(lines))
    drawn = places(MARKDOWN, folder)
    assert all(len(place.text.split()) <= WORDS for place in drawn)
    assert sorted(line for place in drawn for line in place.text.splitlines()) == sorted(lines)
    assert [place.text for place in drawn] == [place.text for place in places(MARKDOWN, folder)]
    first = [lines.index(place.text.splitlines()[0]) for place in drawn]
    assert first != sorted(first)


def test_a_line_above_the_limit_is_a_place_of_its_own(tmp_path: Path) -> None:
    long = " ".join(["word"] * (WORDS + 1))
    drawn = places(MARKDOWN, written(tmp_path, MARKDOWN, f"before\n{long}\nafter"))
    assert sorted(place.text for place in drawn) == sorted(["before", long, "after"])


def test_html_text_is_that_outside_scripts_and_styles(tmp_path: Path) -> None:
    entry = ENTRIES["docutils-latex"]
    page = "<style>p {}</style><p>Seen &amp; read</p><script>var x = '<p>no</p>';</script>"
    assert plain_pages(entry, written(tmp_path, entry, page)) == ["Seen & read"]


def test_word_text_has_a_line_for_each_paragraph(tmp_path: Path) -> None:
    entry = ENTRIES["officer-example"]
    name = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    paragraphs = "<w:p><w:r><w:t>One</w:t></w:r><w:r><w:t> line</w:t></w:r></w:p><w:p><w:r><w:t>Two</w:t></w:r></w:p>"
    with zipfile.ZipFile(tmp_path / entry.file, "w") as file:
        file.writestr("word/document.xml", f'<w:document xmlns:w="{name}"><w:body>{paragraphs}</w:body></w:document>')
    assert plain_pages(entry, tmp_path) == ["One line\nTwo"]


@pytest.mark.skipif(not shutil.which("pdftotext"), reason="needs poppler-utils")
def test_pages_of_a_pdf_are_told_apart_and_a_broken_file_is_named(tmp_path: Path) -> None:
    entry = ENTRIES["fhs"]
    file = written(tmp_path, entry, "") / entry.half / entry.file
    canvas = pytest.importorskip("reportlab.pdfgen.canvas").Canvas(str(file))
    for text in ("first", "second"):
        canvas.drawString(100, 700, text)
        canvas.showPage()
    canvas.save()
    assert sorted((place.page, place.text) for place in places(entry, tmp_path)) == [(1, "first"), (2, "second")]
    file.write_text("no PDF", encoding="utf-8")
    with pytest.raises(DataError, match=r"pdftotext cannot read .*fhs\.pdf: "):
        plain_pages(entry, tmp_path)


def test_without_pdftotext_one_line_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question_places.shutil, "which", lambda _: None)
    with pytest.raises(UserError, match="apt-get install poppler-utils"):
        plain_pages(ENTRIES["fhs"], written(tmp_path, ENTRIES["fhs"], "%PDF-1.4"))


def test_a_document_that_was_not_fetched_is_named_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match=r"markdown-api.md does not exist; fetch it: python -m"):
        plain_pages(MARKDOWN, tmp_path)


def test_pairs_are_all_pairs_within_groups_each_once() -> None:
    drawn = pairs()
    assert len(drawn) == len({frozenset(pair) for pair in drawn}) == 8 * 7 // 2 + 3 * 2 // 2 + 7 * 6 // 2
    assert {name for pair in drawn for name in pair} <= set(ENTRIES)
    assert drawn == pairs()


def test_another_seed_draws_another_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path, MARKDOWN, "\n".join(f"line {number} of many words" for number in range(2000)))
    first = places(MARKDOWN, folder)
    monkeypatch.setattr(question_places, "SEED", 19)
    assert places(MARKDOWN, folder) != first


def test_the_command_prints_places_with_their_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--documents", str(written(tmp_path, MARKDOWN, "A line.")), "--only", MARKDOWN.id])
    assert capsys.readouterr().out == "=== markdown-api.md, draw 1\nA line.\n"
    with pytest.raises(UserError, match="--only names no document: unknown"):
        main(["--documents", str(tmp_path), "--only", "unknown"])
