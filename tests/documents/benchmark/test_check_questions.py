"""The check of evidence: found whatever the line breaks, missed where no passage holds it whole, printed."""

from pathlib import Path

import pytest

from common.records import Gold, GoldSegment, Passage, Question
from tests.documents.benchmark.catalogue import catalogue
from tests.documents.benchmark.check_questions import HALVES, is_verbatim, missing, questions

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


def test_evidence_cut_in_two_or_in_another_document_is_missing() -> None:
    question = Question(
        "q", "How warm?", ("40",), gold=Gold(segments=(gold("below 40 degrees"), gold("Filter", "F-17")))
    )
    whole = [passage("Keep it below 40 degrees."), passage("| Filter | F-17 |")]
    assert missing([question], whole) == []
    cut = [passage("Keep it below 40"), passage("degrees. | Filter | F-17 |")]
    assert missing([question], cut) == [(question, question.gold.segments[0])]
    elsewhere = [passage(one.text, catalogue()[0].file) for one in whole]
    assert [lost for _, lost in missing([question], elsewhere)] == list(question.gold.segments)


def test_the_questions_of_both_halves_are_about_listed_documents() -> None:
    listed = {entry.file for entry in catalogue()}
    for half in HALVES:
        asked = questions(half)
        assert len(asked) == 66
        assert {gold.document for question in asked for gold in question.gold.segments} <= listed
