"""What a pass makes of documents is kept one by one, and asked for again only where it would be another."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image as Pictures

from documents.folder.corpus import read_folder
from documents.folder.options import NO_REPLY, DocumentPass
from documents.records import Document, Image, Paragraph
from tests.helpers.document_folders import report, write_files


class Shouts:
    """Writes text in capitals, documents one at a time; `stops_at` raises before a document of this name."""

    def __init__(self, name: str = "llm", recipe: str = "a", version: str = "1", stops_at: str = "") -> None:
        self.given: list[str] = []
        self.stops_at = stops_at
        self.document_pass = DocumentPass(name, {"model": recipe}, version, self.convert)

    def convert(self, documents: Iterator[Document]) -> Iterator[Document]:
        for document in documents:
            if document.name == self.stops_at:
                raise KeyboardInterrupt
            self.given.append(document.name)
            yield replace(document, blocks=tuple(map(self.change, document.blocks)))

    def change(self, block: object) -> object:
        return Paragraph(block.text.upper()) if isinstance(block, Paragraph) else block


def texts(folder: Path, *passes: Shouts) -> list[str]:
    read = read_folder(folder / "manuals", folder / "kept", passes=[each.document_pass for each in passes])
    with read.locked():
        return [passage.text for passage in read.passages()]


def test_another_recipe_or_version_asks_again_and_a_stop_loses_nothing(tmp_path: Path) -> None:
    write_files(tmp_path / "manuals", {"a.md": "one\n", "b.md": "two\n"})
    stopped = Shouts(stops_at="b.md")
    with pytest.raises(KeyboardInterrupt):
        texts(tmp_path, stopped)
    assert stopped.given == ["a.md"]
    for each, given in [
        (Shouts(), ["b.md"]),
        (Shouts(), []),
        (Shouts(recipe="b"), ["a.md", "b.md"]),
        (Shouts(version="2"), ["a.md", "b.md"]),
        (Shouts(), []),
    ]:
        assert texts(tmp_path, each) == ["ONE", "TWO"]
        assert each.given == given
    assert texts(tmp_path) == ["one", "two"]
    captioner = Shouts("captioner")
    captioner.change = lambda block: Paragraph(f"{block.text}!")
    assert texts(tmp_path, Shouts(), captioner) == ["ONE!", "TWO!"]
    assert captioner.given == ["a.md", "b.md"]


def test_a_document_that_was_not_answered_is_given_again(tmp_path: Path) -> None:
    write_files(tmp_path / "manuals", {"a.md": "one\n"})
    silent = Shouts()
    silent.convert = lambda documents: (replace(each, left_out=(f"{NO_REPLY}timeout)",)) for each in documents)
    silent.document_pass = replace(silent.document_pass, convert=silent.convert)
    assert texts(tmp_path, silent) == ["one"]
    again = Shouts()
    assert texts(tmp_path, again) == ["ONE"]
    assert again.given == ["a.md"]


def test_the_report_has_what_a_pass_lost_of_the_text_and_no_description_of_an_image(tmp_path: Path) -> None:
    write_files(tmp_path / "manuals", {"a.md": "one two three four\n\n![wiring](a.png)\n"})
    Pictures.new("RGB", (64, 48), "red").save(tmp_path / "manuals/a.png")
    captions, halves = Shouts("captioner"), Shouts()
    captions.change = lambda block: replace(block, text="a red wire") if isinstance(block, Image) else block
    halves.change = lambda block: Paragraph("one two five") if isinstance(block, Paragraph) else block
    texts(tmp_path, captions)
    assert "lost" not in report(tmp_path, "kept")["a.md"]
    texts(tmp_path, halves)
    row = report(tmp_path, "kept")["a.md"]
    assert (row["lost"], row["invented"]) == (0.5, 0.3333)
