"""RE-RAG's validation figures and the temperature chosen on them, by hand."""

from dataclasses import replace

import pytest

from trainers.rerag_validation import TEMPERATURES, Judged, Read, first_hit, summarise


def test_validation_figures_by_hand() -> None:
    assert first_hit([3.0, 1.0, 2.0], [False, False, True]) == 1
    assert first_hit([1.0, 1.0], [True, False]) == 1  # a tie counts as badly as it can
    assert first_hit([1.0], [False]) is None
    judged = [
        Judged(0, (2.0, -1.0), (True, False), (Read("a", 1.0, 1.0),), 0.5),
        Judged(1, (1.0, 3.0), (True, False), (Read("b", 0.0, 0.5),), 1.5),
        Judged(2, (-4.0,), (False,), (Read("c", 0.0, 0.0),), 4.0),
    ]
    facts = summarise(judged, ranked=True, draw=False).facts
    assert facts["em"] == pytest.approx(100 / 3)
    assert facts["f1"] == pytest.approx(50)
    assert facts["gen_nats"] == 2
    assert facts["recall_1"] == pytest.approx(100 / 3)
    assert facts["recall_5"] == pytest.approx(200 / 3)
    assert facts["mrr"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert facts["answerable_auroc"] == 1
    assert facts["context_auroc"] == pytest.approx(
        (3 + 2 + 0 * 3) / 6 - 1 / 6
    )  # 2 beats -1, -4; 1 beats -1, -4; 3 beats both


def test_the_temperature_is_the_one_that_answers_most_and_nearest_to_one_among_equals() -> None:
    right, wrong = Read("a", 1.0, 1.0), Read("b", 0.0, 0.25)
    reads = [
        (wrong, right, right, right, wrong),
        (right, right, right, right, right),
        (wrong, wrong, right, right, right),
    ]
    judged = [Judged(row, (1.0, 0.0), (True, False), read, 1.0) for row, read in enumerate(reads)]
    summary = summarise(judged, ranked=True, draw=False)
    assert summary.chosen == 2  # 1, 2, 3, 3, 2 right
    assert summary.served["relevance_temperature"] == summary.facts["relevance_temperature"] == TEMPERATURES[2]
    assert summary.facts["em"] == summary.facts["f1"] == 100
    alone = summarise([replace(one, read=one.read[:1]) for one in judged], ranked=True, draw=False)
    assert "relevance_temperature" not in alone.served  # one temperature is no choice
    assert alone.facts["em"] == pytest.approx(100 / 3)
