"""The check of evidence: found whatever the line breaks, missed where no passage holds it whole, printed."""

import json
from pathlib import Path

import pytest

from benchmarks.documents import check_questions
from benchmarks.documents.catalogue import catalogue
from benchmarks.documents.check_questions import is_verbatim, main, missing
from common.errors import DataError
from common.records import GoldSegment, Passage, Question
from harness.indexing.passage_store import write_passages

TEXT = """# Guide

Keep the tem-
perature below 40 degrees.

| Part | Code |
| --- | --- |
| Filter | F-17 |
"""
FILE = "markdown-api.md"


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / FILE).write_text(TEXT, encoding="utf-8")
    return folder


def gold(*evidence: str, document: str = FILE) -> GoldSegment:
    return GoldSegment(document, evidence)


def passage(text: str, document: str = FILE) -> Passage:
    return Passage.of("Guide", text, metadata={"document": document})


def test_evidence_is_verbatim_over_line_breaks_and_marks_but_not_with_another_word(documents: Path) -> None:
    assert is_verbatim(gold("Keep the temperature below 40 degrees."), documents)
    assert is_verbatim(gold("Filter", "F-17"), documents)
    assert not is_verbatim(gold("Keep the temperature below 50 degrees."), documents)
    assert not is_verbatim(gold("Filter", "F-18"), documents)


def test_a_document_that_is_not_of_the_list_is_named(documents: Path) -> None:
    with pytest.raises(DataError, match=r"other\.md is no document of the list"):
        is_verbatim(gold("x", document="other.md"), documents)


def test_evidence_cut_in_two_or_in_another_document_is_missing() -> None:
    question = Question("q", "How warm?", ("40",), gold_segments=(gold("below 40 degrees"), gold("Filter", "F-17")))
    whole = [passage("Keep it below 40 degrees."), passage("| Filter | F-17 |")]
    assert missing([question], whole) == []
    cut = [passage("Keep it below 40"), passage("degrees. | Filter | F-17 |")]
    assert missing([question], cut) == [(question, question.gold_segments[0])]
    elsewhere = [passage(one.text, catalogue()[0].file) for one in whole]
    assert [lost for _, lost in missing([question], elsewhere)] == list(question.gold_segments)


def test_the_command_counts_and_lists_what_an_index_does_not_hold(
    documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for half in check_questions.HALVES:
        row = {
            "id": f"{half}_1", "question": "Which code?", "golden_answers": ["F-17"],
            "metadata": {"type": "table", "gold_segments": [{"document": FILE, "evidence": ["Filter", "F-17"]}]},
        }  # fmt: skip
        (tmp_path / f"{half}.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    monkeypatch.setattr(check_questions, "FOLDER", tmp_path)
    write_passages(tmp_path / "index", [passage("| Filter |"), passage("| F-17 |")])
    main(["--documents", str(documents), "--indexes", str(tmp_path / "index")])
    printed = capsys.readouterr().out
    assert "| plain text | 1 | 1 |" in printed
    assert f"| {tmp_path / 'index'} | 0 | 0 |" in printed
    assert f"{tmp_path / 'index'}: test_1, {FILE}: Filter / F-17" in printed
    main(["--documents", str(documents), "--halves", "validation"])
    assert "test" not in capsys.readouterr().out.split("held whole by")[1]
