"""What people read of an answer.

Passages with the reasons for their choice, wrapped between words, the answer, costs in words.
"""

import math
from dataclasses import replace

import pytest

from common.records import Answer, Passage, Question, Ranked
from harness.runtime.answer_text import answer_text, costs_text

PARIS = Passage.of("Paris", "the capital of France")
ROME = Passage.of("Rome", "the capital of Italy")
QUESTION = Question("q", "capital?")


def shown(answer: Answer, width: int = 200, **options: int) -> list[str]:
    return answer_text(QUESTION, answer, width, **options).splitlines()


def found(*hits: tuple[Passage, float], **notes: object) -> Answer:
    return Answer("q", "", tuple(Ranked(*hit) for hit in hits), costs={"retriever_calls": 1.0}, notes=notes)


def test_relevance_share_and_the_answer_from_one_passage() -> None:
    notes = {"id": PARIS.id, "probability": 0.9, "share": 0.75, "alone": "Paris"}
    answer = Answer(
        "q", "Paris", (Ranked(PARIS, 2.0), Ranked(ROME, -1.0)), math.log(0.5), {"model_calls": 2.0},
        {"contexts": [notes, {"id": ROME.id, "probability": 0.1, "share": 0.25, "alone": ""}],
         "candidates": {"Paris": 0.5, "Rome": 0.25}, "answerable": False, "threshold": 0.95},
    )  # fmt: skip
    assert shown(answer) == [
        "Question: capital?",
        "",
        "1. Paris",
        "   (P(relevant): 0.9; share: 0.75; alone: Paris)",
        "   the capital of France",
        "",
        "2. Rome",
        "   (P(relevant): 0.1; share: 0.25)",
        "   the capital of Italy",
        "",
        "Candidates: Paris: 0.5; Rome: 0.25",
        "Answerable: no",
        "Threshold: 0.95",
        "",
        "Answer: Paris  (P 0.500)",
        "Cost: 2 model calls",
    ]


def test_stage_rank_and_partner_come_before_what_a_reader_says_and_instead_of_scores_out_of_order() -> None:
    documents = [
        {"id": PARIS.id, "stage": "first", "partner": ROME.id, "probability": 0.8, "rank": 1},
        {"id": ROME.id, "stage": "second", "partner": PARIS.id, "probability": 0.8, "rank": None},
    ]
    answer = found((PARIS, 0.4), (ROME, 0.7), selection="ranked", documents=documents)
    answer = replace(answer, notes={**answer.notes, "contexts": [{"id": ROME.id, "probability": 0.25}]})
    lines = shown(answer)
    assert "   (stage: first; partner: passage 2; P(relevant): 0.8; retriever's rank: 1)" in lines
    assert "   (stage: second; partner: passage 1; P(relevant): 0.8; P(relevant): 0.25)" in lines
    assert "score" not in "".join(lines)


@pytest.mark.parametrize(
    ("scores", "stages", "are_shown"),
    [
        ((0.7, 0.4), (None, None), True),
        ((0.7, 0.7), (None, None), True),
        ((0.7, 0.4), ("first", "second"), False),  # the scores are of two searches
        ((0.0, 0.0), (None, None), False),  # shipped passages without scores
    ],
)
def test_scores_are_shown_where_they_compare(scores, stages, are_shown: bool) -> None:
    documents = [
        {"id": passage.id, "stage": stage, "partner": None, "probability": None}
        for passage, stage in zip((PARIS, ROME), stages, strict=True)
    ]
    lines = shown(found((PARIS, scores[0]), (ROME, scores[1]), documents=documents))
    assert any("score 0." in line for line in lines) == are_shown


def test_what_another_system_notes_is_shown_by_its_name() -> None:
    notes = {"id": PARIS.id, "found_by": "rewritten query", "weight": 0.5, "routes": ["a"], "nothing": None}
    lines = shown(found((PARIS, 1.0), routes=[notes], other=[1, "x", {"id": 5}], count=3))
    assert "   (found by: rewritten query; weight: 0.5; routes: a; score 1.000)" in lines
    assert "Other: 1, x, id: 5" in lines
    assert "Count: 3" in lines


def test_passages_are_printed_in_full_or_cut_between_words() -> None:
    text = " ".join(f"word{number}" for number in range(200)) + " " + "x" * 60
    long = Passage.of("A title", text, corpus_id="doc-17", metadata={"note": "y " * 1000})
    lines = shown(found((long, 1.0)), width=40)
    assert " ".join(" ".join(lines).split()).count(text) == 1
    assert max(len(line) for line in lines if line.startswith("   word")) <= 40
    assert f"   {'x' * 60}" in lines  # a longer word is not cut
    assert "1. [doc-17] A title" in lines
    assert "".join(lines).count("y") < 160  # of the metadata
    assert "   the capital of ..." in shown(found((PARIS, 1.0)), characters=20)


def test_what_a_terminal_would_obey_is_named() -> None:
    hostile = Passage("id", "red \x1b[31m and \x9b0m bell \x07", "tit\x1b]0;le")
    text = "\n".join(shown(found((hostile, 1.0))))
    assert "red \\x1b[31m and \\x9b0m bell \\x07" in text
    assert all(character.isprintable() or character == "\n" for character in text)


def test_no_passages_and_no_answer() -> None:
    assert shown(found()) == ["Question: capital?", "", "No document was found.", "",
                              "Answer: none, no document to read.", "Cost: 1 retriever call"]  # fmt: skip
    assert "Answer: none, no reader is configured." in shown(found((PARIS, 1.0)))
    costs = {"model_calls": 1.0, "failed_calls": 1.0}
    failed = Answer("q", "", (Ranked(PARIS, 1.0),), costs=costs, notes={"error": "503: busy (6 retries)"})
    assert "Answer: none, 503: busy (6 retries)." in shown(failed)
    contexts = [{"id": PARIS.id, "probability": 0.5, "share": 0.0, "alone": "", "error": "503: busy"}]
    alone = replace(failed, notes={"contexts": contexts, "candidates": {}})
    assert "Answer: none, all calls of the language model failed." in shown(alone)
    assert "; error: 503: busy)" in "\n".join(shown(alone))
    unasked = Answer("q", "42", (), costs={"retriever_calls": 0.0})  # answered without a search
    assert shown(unasked) == ["Question: capital?", "", "Answer: 42", "Cost: 0 retriever calls"]


def test_gold_answers_of_a_file_are_shown() -> None:
    text = answer_text(Question("q", "capital?", ("Paris", "Lutetia")), Answer("q", "Rome", ()))
    assert "Answer: Rome\nGold: Paris | Lutetia" in text


@pytest.mark.parametrize(
    ("costs", "text"),
    [
        ({"model_calls": 12.0, "seconds/retrieval": 0.2, "seconds/scoring": 1.1},
         "12 model calls, 1.3 s: retrieval 0.2, scoring 1.1"),
        ({"retriever_calls": 1.0, "tokens": 12345.0}, "1 retriever call, 12,345 tokens"),
        ({"passages_scored": 1.0, "contexts_read": 2.5}, "1 passage scored, 2.5 contexts read"),
        ({"seconds/first_stage": 0.004, "seconds/reading": 0.0123}, "0.016 s: first stage 0.004, reading 0.012"),
        ({"seconds/first_stage": 0.0001, "seconds/reading": 0.25}, "0.25 s: first stage 0, reading 0.25"),
        ({"seconds/retrieval": 2.345}, "retrieval 2.3 s"),
        ({"failed_calls": 1.0, "truncated_calls": 2.0, "usd": 0.00014},
         "1 failed call, 2 truncated calls, 0.000140 US dollars"),
    ],
)  # fmt: skip
def test_costs_in_words(costs: dict[str, float], text: str) -> None:
    assert costs_text(costs) == text


def test_queries_and_sources_have_a_line_each_and_ids_of_passages_are_places() -> None:
    """The page shows the same words."""
    queries = [
        {
            "query": "a?",
            "made_by": ["gqr", "par"],
            "found": [PARIS.id, ROME.id],
            "alone": [{"id": ROME.id, "title": "R"}],
        },
        {"query": "b?", "found": [], "error": "HTTP 500"},
    ]
    source = {"source": "web", "answer": "Paris", "passages": [{"id": ROME.id, "title": "Rome", "link": "http://x"}]}
    lines = shown(found((PARIS, 1.0), queries=queries, sources=[source], nothing=None, cut={"Reader": "reads less"}))
    assert lines[-8:-1] == [
        "Queries:",
        "  query: a?; made by: gqr, par; found: passage 1, 1 more; alone: R",
        "  query: b?; error: HTTP 500",
        "Sources: source: web; answer: Paris; passages: title: Rome; link: http://x",
        "Cut: Reader: reads less",
        "",
        "Answer: none, no reader is configured.",
    ]
