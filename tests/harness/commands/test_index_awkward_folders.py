"""`infer.py index --documents` over folders that are awkward or hostile.

A line in the report for each file, never a crash.
"""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from common.errors import UserError
from common.killable import Killable
from documents.folder.corpus import read_folder
from documents.folder.options import ReadingLimits
from tests.helpers.commands import command, refused
from tests.helpers.document_folders import ASK, index, manual, passages, report, write_files
from tests.helpers.pdf_pages import pdf, text_page

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


def chapters(count: int) -> bytes:
    """A PDF file with a chapter on each page."""
    pages = [
        text_page([
            (72, 60, f"{number} Chapter {number}", "Helvetica-Bold", 18),
            *((72, 90 + 12 * line, f"Line {line} of page {number} says something of its own.", "Helvetica", 11)
              for line in range(40)),
        ])
        for number in range(1, count + 1)
    ]  # fmt: skip
    return pdf(*pages)


def test_an_empty_folder_and_one_without_documents(tmp_path: Path) -> None:
    (tmp_path / "manuals").mkdir()
    refused(index(tmp_path, fails=True), 65, "manuals holds no document that can be indexed: 0 files")
    write_files(tmp_path / "manuals", {"a.py": "print()\n", "picture.png": PNG, "b.md": ""})
    refused(index(tmp_path, fails=True), 65, "3 files, 1 documents that could not be read; the first: b.md: is empty")
    rows = report(tmp_path)
    assert (rows["b.md"]["status"], rows["a.py"]["status"]) == ("failed", "left out")
    write_files(tmp_path / "manuals", {"c.md": manual("Corda")})
    ended = index(tmp_path, "--reading.strict", fails=True)
    refused(ended, 65, "1 documents of manuals could not be read; the first: b.md: ", "Omit --reading.strict")
    assert not (tmp_path / "indexes/lexical").exists()
    index(tmp_path)


def test_every_file_has_a_line_that_says_what_became_of_it(tmp_path: Path) -> None:
    """What each reader refuses is in tests/documents."""
    files: dict[str, str | bytes] = {
        "good.md": manual("Alba"),
        "named.pdf": "<!doctype html><title>Brune</title><body><h1>Brune</h1><p>A page.</p>",
        "outside.html": "<html><h1>Corda</h1><p>See.</p><img src='../../secret.png'><img src='http://192.0.2.1/x.png'>",
        "broken.pdf": b"%PDF-1.7\n" + b"garbage " * 100,
        "scanned.pdf": pdf(lambda canvas: canvas.rect(72, 72, 200, 200, fill=1)),
        "blank.md": " \n\n ",
        "noise.pdf": os.urandom(4000),
        "archive": b"PK\x03\x04" + bytes(99),
        "program.py": "print('no document')\n",
        "picture.png": PNG,
        ".hidden.md": manual("Hidden"),
        ".git/config.md": manual("Hidden"),
        "~$letter.docx": b"lock",
    }
    write_files(tmp_path / "manuals", files)
    write_files(tmp_path, {"secret.png": PNG, "secret.md": manual("Secret")})
    (tmp_path / "manuals/link.md").symlink_to(tmp_path / "secret.md")
    (tmp_path / "manuals/loop").symlink_to(tmp_path / "manuals", target_is_directory=True)
    (tmp_path / "manuals/lost.md").symlink_to("nothing.md")
    os.mkfifo(tmp_path / "manuals/pipe.md")
    index(tmp_path)
    rows = report(tmp_path)
    assert rows.keys() == {*files, "link.md", "loop", "lost.md", "pipe.md"} - {".git/config.md"} | {".git"}
    assert all(row["status"] == "indexed" or row.get("why") for row in rows.values())
    assert rows["named.pdf"]["left_out"] == ["named .pdf, read as html"]
    for status, names in (
        ("indexed", "good.md named.pdf outside.html"),
        ("failed", "broken.pdf scanned.pdf blank.md noise.pdf"),
        ("left out", "program.py picture.png"),
    ):
        assert {name: rows[name]["status"] for name in names.split()} == dict.fromkeys(names.split(), status)
    for name, why in {
        "blank.md": "empty", "program.py": "no PDF", ".hidden.md": "hidden", ".git": "hidden",
        "link.md": "leads out of the folder", "loop": "a link to a folder", "lost.md": "leads nowhere",
        "pipe.md": "no regular file",
    }.items():  # fmt: skip
        assert why in rows[name]["why"], name
    assert "Secret" not in str(passages(tmp_path))
    assert not (tmp_path / "indexes/lexical/images").is_dir() or not os.listdir(tmp_path / "indexes/lexical/images")
    page = (tmp_path / "indexes/manuals.documents/report.md").read_text()
    assert all(f"- {name}: " in page for name in ("broken.pdf", "scanned.pdf"))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_odd_names(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path / "manuals")
    os.makedirs(folder + b"/de ep/\xc3\xa9t\xc3\xa9")
    names = [b"caf\xe9.md", b"new\nline.md", b"tab\t.md", b"esc\x1b[31m.md", b"-rf.md", b"back\\slash.md",
             b"\xe6\x97\xa5.md", b"de ep/\xc3\xa9t\xc3\xa9/x.md", b"'quote\".md", b"|pipe|<b>.md", b"n" * 251
             + b".md"]  # fmt: skip
    for number, name in enumerate(names):
        with open(folder + b"/" + name, "wb") as file:
            file.write(f"Document {number} tells of zebra{number}.\n".encode())
    ended = index(tmp_path)
    assert f"{len(names)} documents ({len(names)} read)" in ended.err
    assert "caf\\xe9.md" in report(tmp_path)
    assert "\x1b" not in ended.err + (tmp_path / "indexes/manuals.documents/report.md").read_text()
    asked = command(tmp_path, "infer.py", *ASK, "indexes/lexical", "--question", "zebra0", "--system.k", "1")
    assert "[caf\\xe9.md]" in asked.out
    asked = command(tmp_path, "infer.py", *ASK, "indexes/lexical", "--question", "zebra3", "--system.k", "1")
    assert "\x1b" not in asked.out
    assert index(tmp_path).err.count("(0 read, ") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_files_and_folders_without_permission(tmp_path: Path) -> None:
    write_files(tmp_path / "manuals", {"good.md": manual("Alba"), "shut.md": "x", "closed/a.md": "x"})
    (tmp_path / "manuals/shut.md").chmod(0)
    (tmp_path / "manuals/closed").chmod(0)
    try:
        index(tmp_path)
    finally:
        (tmp_path / "manuals/closed").chmod(0o700)
    rows = report(tmp_path)
    assert "Permission denied" in rows["shut.md"]["why"]
    assert "Permission denied" in rows["closed/"]["why"]


def test_a_document_that_took_too_long_is_tried_again_with_more_time_alone(tmp_path: Path) -> None:
    write_files(
        tmp_path / "manuals",
        {"a.md": manual("Alba"), "slow.md": manual("Slow", chapters=15_000), "z.md": manual("Zulu")},
    )
    index(tmp_path, "--reading.seconds", "1", "--workers", "1")
    rows = report(tmp_path)
    assert rows["slow.md"]["why"] == "takes more than 1 s to read (--reading.seconds)"
    assert rows["a.md"]["status"] == rows["z.md"]["status"] == "indexed"
    (failure,) = (tmp_path / "indexes/manuals.documents/read").glob("*/*/failure.json")
    known_since = failure.stat().st_mtime_ns
    index(tmp_path, "--reading.seconds", "1")
    assert failure.stat().st_mtime_ns == known_since
    index(tmp_path, "--reading.seconds", "200")
    assert report(tmp_path)["slow.md"]["status"] == "indexed"


def test_a_file_larger_than_the_memory_is_not_even_read(tmp_path: Path) -> None:
    write_files(tmp_path / "manuals", {"a.md": manual("Alba")})
    with (tmp_path / "manuals/huge.pdf").open("wb") as file:
        file.write(b"%PDF-1.7\n")
        file.truncate(50 * 2**30)  # sparse
    index(tmp_path)
    assert report(tmp_path)["huge.pdf"]["why"].startswith("has 50.0 GiB, more than the memory to read it (2048 MiB")


@pytest.mark.parametrize("times", [1, 99])
def test_a_file_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """It changes between the moment at which it is looked up and the one at which it is read.

    Once, or again and again.
    """
    write_files(tmp_path / "manuals", {"a.md": manual("Alba"), "log.md": "Line 0.\n"})
    changes = 0
    original = Killable.submit

    def changing(self: Killable, asked: dict) -> Any:
        nonlocal changes
        if asked["name"] == "log.md" and changes < times:
            changes += 1
            with (tmp_path / "manuals/log.md").open("a") as file:
                file.write(f"\nLine {changes}.\n")
        return original(self, asked)

    monkeypatch.setattr(Killable, "submit", changing)
    found = [p.text for p in read_folder(tmp_path / "manuals", tmp_path / "kept").passages()]
    rows = report(tmp_path, "kept")
    if times == 1:
        assert "Line 0.\nLine 1." in found
        assert rows["log.md"]["status"] == "indexed"
    else:
        assert not [text for text in found if "Line" in text]
        assert rows["log.md"]["why"] == "it changes while it is read"


def test_pages_and_images_are_cited_and_linked_images_are_watched(tmp_path: Path) -> None:
    page = "# Wiring\n\nConnect both.\n\n![Figure 1: Terminals](pictures/a%20b.png)\n"
    write_files(tmp_path / "manuals", {"one.md": page, "pictures/a b.png": PNG, "pump.pdf": chapters(3)})
    index(tmp_path)
    rows, row = passages(tmp_path), report(tmp_path)["pump.pdf"]
    (image,) = [each for each in rows if each["metadata"]["kind"] == "image"]
    file = tmp_path / "indexes/lexical/images" / image["metadata"]["image"]
    assert file.read_bytes() == PNG
    asked = command(tmp_path, "infer.py", *ASK, "indexes/lexical", "--question", "figure terminals", "--system.k", "2")
    assert f"   Image: indexes/lexical/images/{file.name}\n" in asked.out
    assert (row["format"], row["pages"]) == ("pdf", 3)
    assert 0 <= row["lost"] < 0.04  # its text is compared
    assert max(row["invented"], row["torn"]) < 0.02
    assert {each["metadata"].get("page") for each in rows} == {None, 1, 2, 3}
    asked = command(tmp_path, "infer.py", *ASK, "indexes/lexical", "--question", "Chapter 3", "--system.k", "9")
    assert "[pump.pdf, page 3: 3 Chapter 3" in asked.out
    assert "(0 read, 2 unchanged)" in index(tmp_path).err
    write_files(tmp_path / "manuals", {"pictures/a b.png": PNG + b"changed"})
    assert "(1 read, 1 unchanged)" in index(tmp_path).err
    assert [path.name for path in (tmp_path / "indexes/lexical/images").iterdir()] != [file.name]


def test_a_corpus_and_documents_are_one_index(tmp_path: Path) -> None:
    """The corpus comes first; segments keep what is known of them."""
    line = '{"title": "Tarn", "text": "A tarn is a mountain lake."}\n'
    write_files(tmp_path, {"manuals/a.md": manual("Alba"), "x.jsonl": line})
    index(tmp_path)
    alone = passages(tmp_path)
    refused(index(tmp_path, "--corpus", "x.jsonl", fails=True), 2, "holds another index")
    index(tmp_path, "--corpus", "x.jsonl", "--overwrite", "true")
    both = passages(tmp_path)
    assert (both[0]["title"], both[1:]) == ("Tarn", alone)
    assert "up to date" in index(tmp_path, "--corpus", "x.jsonl").err


def test_two_commands_do_not_write_one_folder(tmp_path: Path) -> None:
    write_files(tmp_path / "manuals", {"a.md": manual("Alba")})
    folder = read_folder(tmp_path / "manuals", tmp_path / "indexes/manuals.documents", limits=ReadingLimits(workers=1))
    with folder.locked():
        refused(index(tmp_path, fails=True), 2, "manuals.documents is in use by process", "--reading.document_cache")
    index(tmp_path)
    with folder.locked(), pytest.raises(UserError, match="in use"), folder.locked():
        pass


@pytest.mark.slow
def test_a_pdf_of_2000_pages_in_bounded_memory(tmp_path: Path) -> None:
    write_files(tmp_path / "manuals", {"long.pdf": chapters(2000)})
    index(tmp_path, "--reading.mebibytes", "1024")
    row, pages = report(tmp_path)["long.pdf"], [each["metadata"]["page"] for each in passages(tmp_path)]
    assert (row["pages"], pages[-1], pages) == (2000, 2000, sorted(pages))
    assert sum(row["segments"].values()) >= 2000
