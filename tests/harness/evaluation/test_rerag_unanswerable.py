"""Refusing unanswerable questions: detection, AUROC, and their tables, worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.evaluation.rerag import tables as rerag_tables
from harness.evaluation.rerag.unanswerable import Confidence, refusal_tables
from harness.evaluation.tables import tables_markdown
from models.metrics import auroc
from models.rerag.calibration import Calibration
from models.rerag.unanswerable import (
    best_refusal_threshold,
    cheapest_refusal_threshold,
    detection,
    sweep,
)
from tests.helpers.candidate_sets import FEW, NAN, POOLS, values

pytestmark = pytest.mark.numeric


def test_detection_by_hand() -> None:
    # below 0.6: the 1st, 2nd and 4th, of which the 2nd and 4th have no answer; the 5th, without one too, is missed
    found = detection([0.5, 0.1, 0.6, 0.59, 0.9], [True, False, True, False, False], 0.6)
    assert (found.precision, found.recall) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert found.f1 == pytest.approx(2 / 3)
    assert detection([0.9, 0.9], [True, False], 0.5).f1 == 0


def test_best_threshold_is_the_lowest_of_the_best() -> None:
    # F1 1 at 0.6 and at 0.7; at 0.5 the 0.55 is missed, from 0.8 on the 0.75 is refused wrongly
    assert best_refusal_threshold([0.3, 0.55, 0.75, 0.95], [False, False, True, True]) == (0.6, 1.0)
    assert [d.threshold for d in sweep([0.5], [True])] == [0.5, 0.6, 0.7, 0.8, 0.9]
    with pytest.raises(ValueError, match="NaN"):
        best_refusal_threshold([NAN], [True])
    with pytest.raises(ValueError, match="needed"):
        best_refusal_threshold([0.5], [True, False])


scored = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=12)


@given(scored)
def test_auroc_is_the_share_of_ordered_pairs(rows: list[tuple[int, bool]]) -> None:
    pairs = [(p > n) + (p == n) / 2 for p, yes in rows if yes for n, no in rows if not no]
    found = auroc([s for s, _ in rows], [y for _, y in rows])
    assert found == pytest.approx(np.mean(pairs)) if pairs else math.isnan(found)


def test_refusal_by_hand() -> None:
    exact = np.array([1.0, 1, 0, 0])
    confidences = rerag_tables.calibrated(POOLS, Calibration(1.0, 0.0))
    system = Confidence.of("RE", "estimator", POOLS, confidences, 2, exact, 0.9)
    # of the two kept, question 3 has no answer either; its best P is sigmoid(2) = 0.88, question 0's sigmoid(4) = 0.98
    assert system.answerable_N.tolist() == [True, True, False, False]
    assert system.max_N == pytest.approx([1 / (1 + math.exp(-s)) for s in (4, 5, -3, 2)])
    detected, refused = refusal_tables([system], FEW, "nq")
    assert values(detected, "RE, exported threshold 0.9") == [100, 100, 100]
    assert values(detected, "RE, 0.5") == [50, 100, pytest.approx(66.6667)]
    assert values(detected, "RE, 0.9 (best F1 here)") == [100, 100, 100]
    assert values(refused, "RE, threshold 0.9 (exported)") == [2, 100, 100, 2, 100]
    strict = Confidence.of("RE", "estimator", POOLS, confidences, 2, exact, 0.99)
    # 0.98 is refused now: question 0's right answer is lost
    assert values(refusal_tables([strict], FEW, None)[1], "RE, threshold 0.99 (exported)")[:3] == [2, 100, 50]
    free = Confidence.of("RE", "estimator", POOLS, confidences, 2, None)
    assert [table.name for table in refusal_tables([free], FEW, None)] == ["detection"]


@pytest.mark.parametrize(
    ("answerable", "reason"), [(True, "every set holds an answer"), (False, "no set holds an answer")]
)
def test_questions_of_one_kind_have_nothing_to_detect(answerable: bool, reason: str) -> None:
    label_N, exact_N = np.full(4, answerable), np.array([1.0, 1, 0, 0])
    systems = [
        Confidence("RE", np.array([0.9, 0.4, 0.9, 0.4]), label_N, exact_N, 0.5),
        Confidence("retriever", np.array([0.8, 0.7, 0.6, 0.5]), label_N, exact_N, None),
    ]
    detected, refused = refusal_tables(systems, FEW, None)
    text = tables_markdown("Title", [], [detected], "")
    assert f"not measured: {reason}." in text
    assert "0.00" not in text
    assert "|" not in text
    # a retriever's threshold cannot be chosen here
    chosen = f"not measured: no threshold is exported, and {reason}"
    assert f"| retriever | {chosen} |" in tables_markdown("", [], [refused], "")
    row = refused.rows["RE, threshold 0.5 (exported)"]
    unmeasured = {name: cell.reason for name, cell in zip(refused.columns, row, strict=True)}
    expected = ["refused %"] if answerable else ["EM % before", "EM % after"]
    assert {name: text for name, text in unmeasured.items() if text} == dict.fromkeys(expected, reason)


def test_precision_without_a_refusal_is_not_measured() -> None:
    system = Confidence("RE", np.array([0.95, 0.4]), np.array([True, False]), None, 0.3, "given")
    table = refusal_tables([system], FEW, None)[0]
    assert [cell.reason for cell in table.rows["RE, given threshold 0.3"]] == ["", "none refused", ""]
    assert values(table, "RE, 0.5 (best F1 here)") == [100, 100, 100]


def test_the_cheapest_threshold_by_hand() -> None:
    # best contexts:  0.2 -, 0.3 +, 0.5 -, 0.6 +, 0.8 +     (+: with an answer)
    best, label = [0.2, 0.3, 0.5, 0.6, 0.8], [False, True, False, True, True]
    assert cheapest_refusal_threshold(best, label, 1) == (0.25, 1 / 5)  # the 0.5 is answered; ties: the lowest
    assert cheapest_refusal_threshold(best, label, 0.5) == (0.55, 0.5 / 5)  # refusing the 0.3 is cheaper
    assert cheapest_refusal_threshold(best, label, 100) == (0.25, 1 / 5)
    assert cheapest_refusal_threshold([0.2, 0.8], [True, True], 1) == (0, 0)  # nothing to refuse
    assert cheapest_refusal_threshold([0.2, 0.8], [False, False], 1) == (1, 0)
    # neighbours closer than four digits, and a question without contexts, which every threshold refuses
    close = [0.50001, 0.50002, -np.inf]
    threshold, cost = cheapest_refusal_threshold(close, [False, True, False], 1)
    assert close[0] < threshold <= close[1]
    assert cost == 0
    with pytest.raises(ValueError, match="NaN"):
        cheapest_refusal_threshold([NAN], [True], 1)


probable = st.lists(st.tuples(st.sampled_from([0.1, 0.3, 0.31, 0.7, 0.9]), st.booleans()), min_size=1, max_size=12)


@given(probable, st.sampled_from([0.25, 1.0, 4.0]))
def test_no_threshold_is_cheaper(rows: list[tuple[float, bool]], refusal_cost: float) -> None:
    best_N, label_N = (np.array(column) for column in zip(*rows, strict=True))
    threshold, cost = cheapest_refusal_threshold(best_N, label_N, refusal_cost)
    for other in (threshold, 0, *np.linspace(0.05, 1, 20)):
        refused_N = best_N < other
        wrong = refusal_cost * (refused_N & label_N).sum() + (~refused_N & ~label_N).sum()
        assert cost <= wrong / len(rows) + 1e-12
        assert other != threshold or cost == pytest.approx(wrong / len(rows))


@given(probable, st.sampled_from([0.3, 1.1]))
def test_a_cost_for_another_share_of_unanswerable_questions(rows: list[tuple[float, bool]], cost: float) -> None:
    """Repeating the questions of one kind changes their share; the formula's cost then chooses the same threshold."""
    best_N, label_N = (np.array(column) for column in zip(*rows, strict=True))
    assume(label_N.any() and not label_N.all())
    often = np.concatenate([np.repeat(best_N[label_N], 3), best_N[~label_N]])
    kinds = np.concatenate([np.repeat(label_N[label_N], 3), label_N[~label_N]])
    v, s = 1 - label_N.mean(), 1 - kinds.mean()
    here = cheapest_refusal_threshold(best_N, label_N, cost * (1 - s) * v / (s * (1 - v)))[0]
    assert cheapest_refusal_threshold(often, kinds, cost)[0] == here
