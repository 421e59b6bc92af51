"""A folder of documents that a language model converts: kept, measured, asked for again only where a call failed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from documents.folder.corpus import read_folder
from harness.indexing.documents import formatter
from tests.helpers.document_folders import report, write_files
from tests.helpers.scripted_lm import FormattingLm

TEXT = "Power supply\n\nIt takes 24 V and draws little current.\n"


def titles_of(folder: Path, llm: FormattingLm | None = None) -> list[str]:
    source = read_folder(folder / "manuals", folder / "kept", passes=[formatter.llm_pass(llm)] if llm else [])
    with source.locked():
        return [passage.title for passage in source.passages()]


def read(folder: Path, convert: Callable[[str, str, str], str]) -> tuple[list[str], FormattingLm]:
    llm = FormattingLm(convert)
    return titles_of(folder, llm), llm


def with_heading(window: str, before: str, after: str) -> str:
    return window.replace("Power supply", "# 1 Power supply")


def test_what_the_model_finds_is_indexed_and_kept_until_the_document_changes(tmp_path: Path) -> None:
    write_files(tmp_path / "manuals", {"pump.txt": TEXT})
    assert titles_of(tmp_path) == ["pump"]
    for text, calls in ((TEXT, 1), (TEXT, 0), (TEXT.replace("24", "48"), 1)):
        write_files(tmp_path / "manuals", {"pump.txt": text})
        titles, llm = read(tmp_path, with_heading)
        assert (titles, len(llm.asked)) == (["pump > 1 Power supply"], calls)
        assert report(tmp_path, "kept")["pump.txt"]["lost"] == 0
    assert titles_of(tmp_path) == ["pump"]


def test_a_call_that_failed_is_asked_again_and_the_document_is_indexed_meanwhile(tmp_path: Path) -> None:
    write_files(tmp_path / "manuals", {"pump.txt": TEXT, "fan.txt": "Fan\n\nIt turns.\n"})
    titles, _ = read(tmp_path, lambda window, *_: "FAILS" if "24 V" in window else window)
    assert titles == ["fan", "pump"]
    assert "no reply" in report(tmp_path, "kept")["pump.txt"]["left_out"][0]
    titles, llm = read(tmp_path, with_heading)
    assert titles == ["fan", "pump > 1 Power supply"]
    assert sum(map(len, llm.asked)) == 1


def test_a_stopped_run_goes_on_after_the_last_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formatter, "_AT_ONCE", 1)
    write_files(tmp_path / "manuals", {"fan.txt": "Fan\n\nIt turns.\n", "pump.txt": TEXT})

    def stops(window: str, before: str, after: str) -> str:
        if "24 V" in window:
            raise KeyboardInterrupt
        return window

    with pytest.raises(KeyboardInterrupt):
        read(tmp_path, stops)
    titles, llm = read(tmp_path, with_heading)
    assert titles == ["fan", "pump > 1 Power supply"]
    assert sum(map(len, llm.asked)) == 1
