"""The questions about the real documents.

Well formed, distinct, in halves that cover all documents, with short evidence.
"""

import json
import re
from collections import Counter
from typing import Any

import pytest

from benchmarks.documents.catalogue import catalogue
from benchmarks.documents.check_questions import FOLDER, HALVES, questions
from benchmarks.documents.question_places import pairs
from common.records import Question

MOST_EVIDENCE_WORDS = 45  # quotations from licensed documents stay short
DOCUMENTS = {entry.file: entry for entry in catalogue()}


@pytest.fixture(params=HALVES)
def half(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def rows(half: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{half}.jsonl").read_text(encoding="utf-8").splitlines()]


def everything() -> list[Question]:
    return [one for half in HALVES for one in questions(half)]


def test_each_half_has_sixty_questions_or_more_and_asks_about_every_document(half: str) -> None:
    asked = questions(half)
    assert len(asked) >= 60
    assert {gold.document for one in asked for gold in one.gold_segments} == set(DOCUMENTS)


def test_ids_and_questions_are_unique_over_both_halves() -> None:
    asked = everything()
    assert max(Counter(one.id for one in asked).values()) == 1
    assert max(Counter(one.text.casefold() for one in asked).values()) == 1


def test_each_question_has_answers_a_kind_and_ends_as_one(half: str) -> None:
    for one in questions(half):
        assert one.text.endswith(("?", ".")), one.id
        assert one.answers, one.id
        assert all(answer.strip() for answer in one.answers), one.id
        assert one.kind in ("fact", "descriptive", "table", "across"), one.id


def test_evidence_is_short_but_more_than_a_word() -> None:
    for one in everything():
        for gold in one.gold_segments:
            words = sum(len(re.findall(r"[^\W_]+", piece)) for piece in gold.evidence)
            assert 1 < words <= MOST_EVIDENCE_WORDS, (one.id, gold.evidence)


def test_pages_are_those_of_the_pdf_and_other_formats_have_none() -> None:
    for one in everything():
        for gold in one.gold_segments:
            pages = DOCUMENTS[gold.document].pages
            assert (gold.page is None) if pages is None else (1 <= (gold.page or 0) <= pages), one.id


def test_questions_about_two_documents_are_those_of_their_pair_and_others_of_one_document(half: str) -> None:
    drawn = pairs()
    for row in rows(half):
        about = [DOCUMENTS[gold["document"]].id for gold in row["metadata"]["gold_segments"]]
        if row["metadata"]["type"] == "across":
            assert tuple(sorted(about)) == drawn[row["metadata"]["draw"] - 1], row["id"]
        else:
            assert len(about) == 1, row["id"]


def test_questions_of_a_document_go_to_the_halves_by_turns() -> None:
    def drawn(half: str) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for row in rows(half):
            across = row["metadata"]["type"] == "across"
            name = "across" if across else row["metadata"]["gold_segments"][0]["document"]
            found.setdefault(name, []).append(row["metadata"]["draw"])
        return found

    validation, test = drawn("validation"), drawn("test")
    for name in validation:
        assert len(validation[name]) == len(test[name])
        turns = [draw for both in zip(validation[name], test[name], strict=True) for draw in both]
        assert turns == sorted(turns), name
