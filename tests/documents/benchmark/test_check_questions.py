"""The check of evidence: found whatever the line breaks, missed where no passage holds it whole, printed."""

from pathlib import Path

from common.records import Gold, GoldSegment, Passage, Question
from tests.documents.benchmark.catalogue import catalogue
from tests.documents.benchmark.check_questions import HALVES, is_verbatim, missing, questions

TEXT = "# Guide\n\nKeep the tem-\nperature below 40 degrees.\n\n| Part | Code |\n| --- | --- |\n| Filter | F-17 |\n"
FILE = "markdown-api.md"


def passage(text: str, document: str = FILE) -> Passage:
    return Passage.of("Guide", text, metadata={"document": document})


def test_evidence_is_verbatim_over_line_breaks_and_marks_but_not_with_another_word(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(TEXT, encoding="utf-8")
    for number, code, found in ((40, 17, True), (50, 17, False), (40, 18, False)):
        gold = GoldSegment(FILE, (f"Keep the temperature below {number} degrees.", "Filter", f"F-{code}"))
        assert is_verbatim(gold, tmp_path) == found


def test_evidence_cut_in_two_or_in_another_document_is_missing() -> None:
    segments = (GoldSegment(FILE, ("below 40 degrees",)), GoldSegment(FILE, ("Filter", "F-17")))
    question = Question("q", "How warm?", ("40",), gold=Gold(segments=segments))
    whole = ["Keep it below 40 degrees.", "| Filter | F-17 |"]
    cut = ["Keep it below 40", "degrees. | Filter | F-17 |"]
    assert missing([question], map(passage, whole)) == []
    assert missing([question], map(passage, cut)) == [(question, segments[0])]
    elsewhere = missing([question], [passage(text, catalogue()[0].file) for text in whole])
    assert elsewhere == [(question, gold) for gold in segments]


def test_the_questions_of_both_halves_are_about_listed_documents() -> None:
    asked = [questions(half) for half in HALVES]
    assert [len(one) for one in asked] == [66, 66]
    about = {gold.document for half in asked for question in half for gold in question.gold.segments}
    assert about <= {entry.file for entry in catalogue()}
