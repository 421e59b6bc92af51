"""A process that ends: whether its document is to blame is found out by a new process."""

from pathlib import Path
from typing import Any

import pytest

from harness.documents.folder.corpus import DocumentFolder
from harness.runtime.isolated_process import IsolatedProcesses, ProcessEndedError
from tests.helpers.document_folders import manual, report, write_files


@pytest.mark.parametrize(
    ("answered", "late", "status"), [(3, False, "indexed"), (0, False, "failed"), (3, True, "failed")]
)
def test_a_document_is_blamed_only_if_its_process_read_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answered: int, late: bool, status: str
) -> None:
    write_files(tmp_path / "manuals", {"a.md": manual("Alba"), "b.md": manual("Brune")})
    original = IsolatedProcesses.ask
    ended = []

    async def ending(self: IsolatedProcesses, asked: dict[str, Any], *more: Any, **named: Any) -> dict[str, Any]:
        if asked["name"] == "b.md" and not ended:
            ended.append(asked)
            raise ProcessEndedError(-11, answered, late)
        return await original(self, asked, *more, **named)

    monkeypatch.setattr(IsolatedProcesses, "ask", ending)
    list(DocumentFolder(tmp_path / "manuals", tmp_path / "kept").passages())
    rows = report(tmp_path, "kept")
    assert (rows["a.md"]["status"], rows["b.md"]["status"]) == ("indexed", status)
    if status == "failed" and not late:
        assert rows["b.md"]["why"] == "the process that read it ended (SIGSEGV)"
