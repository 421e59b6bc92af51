"""Passages that a cross-encoder finds relevant are no hard negatives."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import UserError
from datamodules.formats.mined_negatives import Mined, is_mined, mined_line, mined_rows
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.false_negatives import FalseNegatives
from harness.retrievers.hard_negatives import HardNegatives
from tests.helpers.rerag_world import corpus, questions

pytestmark = pytest.mark.numeric

QUESTIONS = [replace(q, support=tuple(p.id for p in q.passages[:2])) for q in questions(corpus(60))]
EVERY = {"per_question": 1000, "anchors": 2, "depth": 6}


def sigmoid(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds))


@pytest.mark.parametrize("option", ["max_score", "absolute_margin", "relative_margin"])
def test_what_scores_above_the_limit_is_left_out(bm25: Bm25Retriever, serving: Path, estimator, option: str) -> None:
    every = HardNegatives(bm25, **EVERY).of(QUESTIONS)
    scores = [
        {p.id: sigmoid(estimator.scores([(q.text, p)])[0]) for p in own}
        for q, own in zip(QUESTIONS, every, strict=True)
    ]
    gold = [max(sigmoid(s) for s in estimator.scores([(q.text, p) for p in q.gold_passages])) for q in QUESTIONS]
    middle = sorted(score for own in scores for score in own.values())[len(scores) * 2]
    value, limits = {
        "max_score": (middle, [middle] * len(gold)),
        "absolute_margin": (0.1, [g - 0.1 for g in gold]),
        "relative_margin": (0.3, [0.7 * g for g in gold]),
    }[option]
    found = HardNegatives(bm25, **EVERY, false_negatives=FalseNegatives(serving, device="cpu", **{option: value})).of(
        QUESTIONS
    )
    left_out = 0
    for whole, kept, own, limit in zip(every, found, scores, limits, strict=True):
        below = [p for p in whole if own[p.id] <= limit]
        assert list(kept) == below
        assert kept.relevant == len(whole) - len(below)
        assert kept.scores == pytest.approx([own[p.id] for p in below], abs=1e-5)
        assert {id_ for hits in kept.hits.values() for id_ in hits}.isdisjoint(
            {p.id for p in whole} - {p.id for p in below}
        )
        left_out += kept.relevant
    assert 0 < left_out < sum(map(len, every))


def test_a_place_that_becomes_free_goes_to_the_next(bm25: Bm25Retriever, serving: Path) -> None:
    some = {**EVERY, "per_question": 3}
    strict = FalseNegatives(serving, max_score=0.5, device="cpu")
    for whole, few in zip(
        HardNegatives(bm25, **EVERY, false_negatives=strict).of(QUESTIONS),
        HardNegatives(bm25, **some, false_negatives=strict).of(QUESTIONS),
        strict=True,
    ):
        assert list(few) == whole[:3]


def test_the_first_ranks_of_each_search_are_skipped(bm25: Bm25Retriever) -> None:
    for question, kept in zip(
        QUESTIONS,
        HardNegatives(bm25, 1000, 0, 6, false_negatives=FalseNegatives(range_min=2)).of(QUESTIONS),
        strict=True,
    ):
        most = max(len(each.support) for each in QUESTIONS)
        others = [
            hit.passage for hit in bm25.search([question.text], 6 + most)[0] if hit.passage.id not in question.support
        ]
        assert list(kept) == others[2 : 6 + len(question.support)]
        assert (kept.relevant, list(kept.scores)) == (2, [])


def test_the_file_keeps_scores_and_others_are_as_before(tmp_path: Path) -> None:
    passages = corpus(3)
    plain, scored = Mined(passages), Mined(passages, scores=[0.25, 0.5, 1e-9], relevant=4)
    assert set(json.loads(mined_line("q", plain))) == {"question_id", "passages", "hits", "copies", "text_version"}
    file = tmp_path / "mined.jsonl"
    file.write_text(mined_line("q", scored) + "\n")
    assert json.loads(file.read_text())["scores"] == [0.25, 0.5, 0.0]
    assert is_mined(file)
    assert [(id_, list(own)) for id_, own in mined_rows([str(file)])] == [("q", passages)]


def test_a_margin_without_gold_leaves_nothing_out() -> None:
    assert FalseNegatives(Path("any"), absolute_margin=0.1).highest([]) == math.inf
    assert FalseNegatives(Path("any"), absolute_margin=0.1, max_score=0.8).highest([0.2, 0.95]) == 0.8
    assert FalseNegatives(Path("any"), absolute_margin=0.1, relative_margin=0.5).highest([0.2, 0.6]) == pytest.approx(
        0.3
    )


@pytest.mark.parametrize("given", [{"max_score": 0.5}, {"scorer": Path("any")}])
def test_options_that_would_do_nothing_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(UserError, match="scorer"):
        FalseNegatives(**given)
