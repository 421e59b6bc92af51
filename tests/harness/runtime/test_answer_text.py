"""What people read of an answer: its values and the reasons for them, where a segment stands, and nothing that a
terminal would obey.
"""

import math
from dataclasses import replace
from typing import Any

import pytest

from common.records import Answer, Passage, Question, Ranked
from documents.records import Segment, as_passage
from harness.runtime.answer_text import answer_text, costs_text
from harness.runtime.citation import citation

PARIS = Passage.of("Paris", "the capital of France")
ROME = Passage.of("Rome", "the capital of Italy")
QUESTION = Question("q", "capital?", ("Lutetia",))
TABLE = "Table 1: Ratings\n\n| model | supply voltage |\n| --- | --- |\n| A1 | 24 V |"
SEGMENT = Segment("a1.pdf", "Alba A1", ("Ratings",), "table", TABLE, "Table 1: Ratings\nmodel supply voltage", 7, 7)


def shown(answer: Answer, width: int = 200, **options: int) -> str:
    return answer_text(QUESTION, answer, width, **options)


def found(*hits: tuple[Passage, float], **notes: object) -> Answer:
    return Answer("q", "", tuple(Ranked(*hit) for hit in hits), costs={"retriever_calls": 1.0}, notes=notes)


def test_relevance_share_and_the_answer_from_one_passage() -> None:
    notes = {"id": PARIS.id, "probability": 0.9, "share": 0.75, "alone": "Paris"}
    other = {"id": ROME.id, "probability": 0.1, "share": 0.25, "alone": ""}
    noted = {"contexts": [notes, other], "candidates": {"Paris": 0.5, "Rome": 0.25}, "answerable": False}
    hits = Ranked(PARIS, 2.0), Ranked(ROME, -1.0)
    lines = shown(Answer("q", "Paris", hits, math.log(0.5), {"model_calls": 2.0}, noted)).splitlines()
    passages = lines.index("1. Paris"), lines.index("2. Rome")
    assert passages[0] < lines.index("   the capital of France") < passages[1] < lines.index("   the capital of Italy")
    for line in (
        "   (P(relevant): 0.9; share: 0.75; alone: Paris)",
        "   (P(relevant): 0.1; share: 0.25)",
        "Candidates: Paris: 0.5; Rome: 0.25",
        "Answerable: no",
        "Answer: Paris  (P 0.500)",
        "Gold: Lutetia",
        "Cost: 2 model calls",
    ):
        assert line in lines


def test_stage_rank_and_partner_come_before_what_a_reader_says_and_instead_of_scores_out_of_order() -> None:
    documents = [
        {"id": PARIS.id, "stage": "first", "partner": ROME.id, "probability": 0.8, "rank": 1},
        {"id": ROME.id, "stage": "second", "partner": PARIS.id, "probability": 0.8, "rank": None},
    ]
    contexts = [{"id": ROME.id, "probability": 0.25}]
    text = shown(found((PARIS, 0.4), (ROME, 0.7), selection="ranked", documents=documents, contexts=contexts))
    assert "(stage: first; partner: passage 2; P(relevant): 0.8; retriever's rank: 1)" in text
    assert "(stage: second; partner: passage 1; P(relevant): 0.8; P(relevant): 0.25)" in text
    assert "score" not in text
    for scores, stage, are_shown in (
        ((0.7, 0.7), None, True),
        ((0.7, 0.4), "first", False),  # the scores are of two searches
        ((0.0, 0.0), None, False),  # shipped passages without scores
    ):
        documents = [{"id": passage.id, "stage": stage, "probability": None} for passage in (PARIS, ROME)]
        text = shown(found((PARIS, scores[0]), (ROME, scores[1]), documents=documents))
        assert ("score 0." in text) == are_shown


def test_what_another_system_notes_is_shown_by_its_name() -> None:
    """Queries and sources have a line each, ids of passages are their places; the page shows the same words."""
    notes = {"id": PARIS.id, "found_by": "rewritten query", "weight": 0.5, "routes": ["a"], "nothing": None}
    queries = [
        {"query": "a?", "made_by": ["gqr"], "found": [PARIS.id, ROME.id], "alone": [{"id": ROME.id, "title": "R"}]},
        {"query": "b?", "found": [], "error": "HTTP 500"},
    ]
    source = {"source": "web", "passages": [{"id": ROME.id, "title": "Rome", "link": "http://x"}]}
    text = shown(found((PARIS, 1.0), routes=[notes], other=[1, "x", {"id": 5}], queries=queries, sources=[source]))
    for part in (
        "(found by: rewritten query; weight: 0.5; routes: a; score 1.000)",
        "Other: 1, x, id: 5",
        "query: a?; made by: gqr; found: passage 1, 1 more; alone: R",
        "query: b?; error: HTTP 500",
        "Sources: source: web; passages: title: Rome; link: http://x",
    ):
        assert part in text


def test_passages_are_printed_in_full_or_cut_between_words() -> None:
    text = " ".join(f"word{number}" for number in range(200)) + " " + "x" * 60
    long = Passage.of("A title", text, corpus_id="doc-17", metadata={"note": "y " * 1000})
    lines = shown(found((long, 1.0)), width=40).splitlines()
    assert " ".join(" ".join(lines).split()).count(text) == 1
    assert max(len(line) for line in lines if line.startswith("   word")) <= 40
    assert {f"   {'x' * 60}", "1. [doc-17] A title"} <= {*lines}  # a longer word is not cut
    assert "".join(lines).count("y") < 160  # of the metadata
    assert "   the capital of ...\n" in shown(found((PARIS, 1.0)), characters=20)


def test_a_segment_is_cited_its_table_keeps_its_rows_and_its_image_can_be_opened() -> None:
    lines = shown(found((as_passage(SEGMENT, SEGMENT.path), 1.0)), width=20).splitlines()
    place = lines.index("   | model | supply voltage |")
    assert lines[place : place + 3] == ["   | model | supply voltage |", "   | --- | --- |", "   | A1 | 24 V |"]
    assert " ".join(lines[2:5]).startswith("1. Alba A1 [a1.pdf,")
    listed = as_passage(replace(SEGMENT, kind="image", text="Do this:\n\n- first\n    code", image="0.png"), ("x",))
    text = shown(found((listed, 1.0)))
    assert "   Do this:\n   - first\n       code\n   Image: 0.png\n" in text


def test_what_a_terminal_would_obey_is_named() -> None:
    hostile = Passage("id", "red \x1b[31m and \x9b0m bell \x07\n| a\x1b[2J | b |", "tit\x1b]0;le")
    segment = replace(SEGMENT, document="\x1b[2J.pdf", kind="text")
    text = shown(found((hostile, 1.0), (as_passage(segment, ("\x07",)), 1.0)))
    assert "red \\x1b[31m and \\x9b0m bell \\x07" in text
    assert all(character.isprintable() or character == "\n" for character in text)


def test_no_passages_and_no_answer() -> None:
    nothing = shown(found())
    assert "No document was found." in nothing
    assert "Answer: none, no document to read." in nothing
    assert "Answer: none, no reader is configured." in shown(found((PARIS, 1.0)))
    failed = Answer("q", "", (Ranked(PARIS, 1.0),), costs={"failed_calls": 1.0}, notes={"error": "503: busy."})
    assert "Answer: none, 503: busy.\n" in shown(failed)
    contexts = [{"id": PARIS.id, "probability": 0.5, "share": 0.0, "alone": "", "error": "503: busy"}]
    alone = shown(replace(failed, notes={"contexts": contexts, "candidates": {}}))
    assert "Answer: none, all calls of the language model failed." in alone
    assert "; error: 503: busy)" in alone
    unasked = shown(Answer("q", "42", (), costs={"retriever_calls": 0.0}))  # answered without a search
    assert "No document" not in unasked
    assert "Answer: 42\n" in unasked


def test_costs_in_words() -> None:
    calls = {"model_calls": 12.0, "retriever_calls": 1.0, "tokens": 12345.0, "contexts_read": 2.5, "usd": 0.00014}
    seconds = {"seconds/first_stage": 0.0001, "seconds/reading": 1.25}
    words = "12 model calls, 1 retriever call, 12,345 tokens, 2.5 contexts read, 0.000140 US dollars, "
    assert costs_text({**calls, **seconds}) == f"{words}1.3 s: first stage 0, reading 1.2"
    assert costs_text({"seconds/retrieval": 2.345}) == "retrieval 2.3 s"


CITED = [
    (("Installation", "Power"), {"page": 3, "last_page": 3}, "a1.pdf, page 3: Installation > Power"),
    (("Safety",), {"page": 3, "last_page": 5}, "a1.pdf, pages 3 to 5: Safety"),
    ((), {"page": 1}, "a1.pdf, page 1"),
    ((), {}, "a1.pdf"),
    (("Safety",), {"part": 2, "parts": 3}, "a1.pdf: Safety (part 2 of 3)"),
]


@pytest.mark.parametrize(("headings", "options", "cited"), CITED)
def test_document_page_and_headings(headings: tuple[str, ...], options: dict[str, Any], cited: str) -> None:
    segment = Segment("a1.pdf", "Alba A1", headings, "text", "x", "x", **options)
    passage = as_passage(segment, segment.path)
    assert citation(passage) == cited
    passage.metadata["copies"] = ["old/a1.pdf", "b.pdf"]  # type: ignore[index]
    assert citation(passage) == cited.replace("a1.pdf", "a1.pdf (also old/a1.pdf, b.pdf)")


def test_a_passage_of_another_corpus_is_not_cited() -> None:
    whole = {"document": "a.pdf", "headings": [], "kind": "text"}
    wrong = [{**whole, **each} for each in ({"document": 5}, {"headings": "Safety"}, {"kind": "patent"})]
    for metadata in (None, {}, {"document": "a.pdf"}, *wrong):
        assert citation(Passage.of("Alba", "A river.", metadata=metadata)) == ""
