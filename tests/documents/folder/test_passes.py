"""What a pass makes of documents is kept one by one, and asked for again only where it would be another.

A process that ends takes its own document only, and the report says why.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pictures

from common.killable import Killable
from documents.folder.corpus import read_folder
from documents.folder.options import DocumentPass, ReadingLimits
from documents.reading.file_types import READING_VERSIONS
from documents.records import Document, Image, Paragraph
from documents.stored_document import DOCUMENT, read_rows, write_rows
from tests.helpers.document_folders import manual, report, write_files


def upper(block: Any) -> Any:
    return Paragraph(block.text.upper()) if isinstance(block, Paragraph) else block


class Changes:
    """A pass that changes the blocks of documents, one at a time."""

    def __init__(
        self, change: Callable[[Any], Any] = upper, name: str = "llm", recipe: str = "a", version: str = "1"
    ) -> None:
        self.given: list[str] = []
        self.change = change
        self.document_pass = DocumentPass(name, {"model": recipe}, version, self.convert)

    def convert(self, documents: Iterator[Document]) -> Iterator[Document]:
        for document in documents:
            self.given.append(document.name)
            yield replace(document, blocks=tuple(map(self.change, document.blocks)))


def texts(folder: Path, *passes: Changes) -> list[str]:
    read = read_folder(folder / "manuals", folder / "kept", passes=[each.document_pass for each in passes])
    with read.locked():
        return [passage.text for passage in read.passages()]


def test_another_recipe_or_version_asks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path / "manuals", {"a.md": "one\n", "b.md": "two\n"})
    for each, asks in [
        (Changes(), True),
        (Changes(recipe="b"), True),
        (Changes(version="2"), True),
        (Changes(), False),
    ]:
        assert texts(tmp_path, each) == ["ONE", "TWO"]
        assert each.given == ["a.md", "b.md"] * asks
    assert texts(tmp_path) == ["one", "two"]
    captioner = Changes(lambda block: Paragraph(f"{block.text}!"), "captioner")
    assert texts(tmp_path, Changes(), captioner) == ["ONE!", "TWO!"]
    assert captioner.given == ["a.md", "b.md"]
    monkeypatch.setattr("documents.folder.options.TEXT_VERSION", 99)  # texts are stored in another way
    again = Changes()
    texts(tmp_path, again)
    assert again.given == ["a.md", "b.md"]


def test_the_report_has_what_a_pass_lost_of_the_text_and_no_description_of_an_image(tmp_path: Path) -> None:
    write_files(tmp_path / "manuals", {"a.md": "one two three four\n\n![wiring](a.png)\n"})
    Pictures.new("RGB", (64, 48), "red").save(tmp_path / "manuals/a.png")
    described = Changes(lambda block: replace(block, text="a red wire") if isinstance(block, Image) else block)
    texts(tmp_path, described)
    assert "lost" not in report(tmp_path, "kept")["a.md"]
    halved = Changes(lambda block: Paragraph("one two five") if isinstance(block, Paragraph) else block, recipe="b")
    texts(tmp_path, halved)
    row = report(tmp_path, "kept")["a.md"]
    assert (row["lost"], row["invented"]) == (0.5, 0.3333)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (("crash",), "the process that read it ended (SIGSEGV)"),
        (("allocate", 600), "takes more than 500 MiB of memory to read (--reading.mebibytes)"),
    ],
)
def test_a_process_that_ends_loses_its_own_document_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: tuple[Any, ...], why: str
) -> None:
    write_files(tmp_path / "manuals", {name: manual(name) for name in ("a.md", "b.md", "c.md")})
    misbehaving = Killable("tests.helpers.misbehaving:do", 1, 1, 500)
    original = Killable.submit

    def submit(self: Killable, asked: dict[str, Any]) -> Any:
        return original(misbehaving, *call) if asked["name"] == "b.md" else original(self, asked)

    monkeypatch.setattr(Killable, "submit", submit)
    list(read_folder(tmp_path / "manuals", tmp_path / "kept", limits=ReadingLimits(3, 500, 1)).passages())
    misbehaving.close()
    rows = report(tmp_path, "kept")
    assert [rows[name]["status"] for name in ("a.md", "b.md", "c.md")] == ["indexed", "failed", "indexed"]
    assert rows["b.md"]["why"] == why


def test_another_version_of_a_type_reads_its_documents_alone_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    write_files(tmp_path / "manuals", {"a.md": "one", "b.html": "<p>two", "c.txt": "three", "d.txt": "", "e.txt": ""})

    def read() -> dict[str, Path]:
        assert texts(tmp_path) == ["one", "two", "three"]
        rows = report(tmp_path, "kept")
        assert [rows[name]["why"] for name in ("d.txt", "e.txt")] == ["is empty"] * 2
        return {file.read_text(encoding="utf-8").split()[-1]: file for file in kept.glob("read/*/*/document.md")}

    before = read()
    assert read() == before
    monkeypatch.setitem(READING_VERSIONS, "html", 99)
    after = read()
    assert {name for name in before if before[name] == after[name]} == {"one", "three"}
    assert not before["two"].exists()


def test_what_was_kept_without_a_version_is_read_again(tmp_path: Path) -> None:
    write_files(tmp_path / "manuals", {"a.md": "one"})
    texts(tmp_path)
    (file,) = (tmp_path / "kept").glob("read/*/*")
    old = file.with_name("0123456789ab")
    shutil.copytree(file, old)
    rows = read_rows(old / DOCUMENT)
    del rows[0]["reading"]["versions"]["type"], rows[0]["reading"]["versions"]["reading"]
    write_rows(old / DOCUMENT, rows)
    assert texts(tmp_path) == ["one"]
    assert (file.exists(), old.exists()) == (True, False)
