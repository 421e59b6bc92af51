"""A process that ends takes its own document only, and the report says why; when what is kept is read again."""

from pathlib import Path
from typing import Any

import pytest

from common.killable import Killable
from documents.folder.corpus import read_folder
from documents.folder.options import ReadingLimits
from tests.helpers.document_folders import manual, report, write_files


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (("crash",), "the process that read it ended (SIGSEGV)"),
        (("allocate", 600), "takes more than 500 MiB of memory to read (--reading.mebibytes)"),
        (("work", 60), "takes more than 3 s to read (--reading.seconds)"),
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


def test_documents_are_read_again_where_texts_are_stored_in_another_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_files(tmp_path / "manuals", {"a.md": manual("a.md")})
    for version, said in ((1, "(1 read)"), (1, "(0 read, 1 unchanged)"), (2, "(1 read)")):
        monkeypatch.setattr("documents.folder.options.TEXT_VERSION", version)
        list(read_folder(tmp_path / "manuals", tmp_path / "kept").passages())
        assert said in capsys.readouterr().err
