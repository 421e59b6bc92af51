"""Several systems by kind of question.

Means, differences and the sentence on the best one, with values worked by hand.
"""

import re

import numpy as np
import pytest

from harness.evaluation.answer_scores import Bootstrap
from harness.evaluation.comparison import best_of, kind_tables

BOOTSTRAP = Bootstrap(500, 0)
NAN = np.nan
KINDS = {"many": np.arange(6) > 1, "few": np.arange(6) < 2}
VALUES = {
    "plain": np.array([0, 1, 0, 0, 1, 0.0]),
    "other": np.array([1, 1, 1, 1, 1, 1.0]),
    "other: variant": np.array([0, 0, 0, 0, NAN, NAN]),
    "silent": np.full(6, NAN),
}


def ones(*counts: int) -> dict[str, np.ndarray]:
    """Systems a, b, c, ... that are right on the first `count` of 40 questions."""
    return {name: (np.arange(40) < count).astype(float) for name, count in zip("abc", counts, strict=False)}


def test_means_and_differences_by_kind_the_most_frequent_first() -> None:
    own, differences = kind_tables("EM", VALUES, ["plain", "other", "silent"], KINDS, BOOTSTRAP)
    assert own.columns == differences.columns == ("many", "few")
    means = {row: [cell and cell.value for cell in cells] for row, cells in own.rows.items()}
    assert means == {"questions": [4, 2], "plain": [25, 50], "other": [100, 100], "other: variant": [0, 0]}
    found = {row: [cell and cell.value for cell in cells] for row, cells in differences.rows.items()}
    assert found == {"other": [75, 50], "other: variant": [0, -50]}  # paired: of the questions that both know
    assert own.rows["other"][0].interval == (100, 100)  # type: ignore[union-attr]
    low, high = own.rows["plain"][0].interval  # type: ignore[misc, union-attr]
    assert (low, high) == (0, 75)


def test_variants_and_systems_without_values_do_not_compete() -> None:
    better = {**VALUES, "plain: best": np.full(6, 2.0)}
    note = kind_tables("EM", better, ["plain", "other", "silent"], KINDS, BOOTSTRAP)[0].note
    assert re.search(r"many: other, 100\.0, wins, \+75\.0 \[\+25\.0, \+100\.0\] to plain\.", note)
    assert "silent" not in note
    assert "plain: best" not in note
    assert kind_tables("EM", VALUES, ["plain"], KINDS, BOOTSTRAP)[0].note == ""


def test_no_differences_where_the_first_system_has_no_values() -> None:
    (alone,) = kind_tables(
        "EM", {"silent": VALUES["silent"], "other": VALUES["other"]}, ["silent", "other"], KINDS, BOOTSTRAP
    )
    assert [*alone.rows] == ["questions", "other"]


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ((10, 20, 40), r"c, 100\.0, wins, \+50\.0 \[\+\d.*\] to b\."),
        ((39, 10, 40), r"no clear winner; the greatest is c, 100\.0, \+2\.5 \[\+0\.0, .*\] to a\."),
        ((40, 39, 10), r"no clear winner; the greatest is a, 100\.0, \+2\.5 \[\+0\.0, .*\] to b\."),
        ((40, 20, 10), r"a, 100\.0, wins, \+50\.0 \[.*\] to b\."),
        ((0, 0, 0), r"no clear winner; the greatest is a, 0\.0, \+0\.0 \[\+0\.0, \+0\.0\] to b\."),
    ],
)  # fmt: skip
def test_a_system_wins_where_the_interval_excludes_zero(counts: tuple[int, ...], sentence: str) -> None:
    assert re.fullmatch(sentence, best_of(ones(*counts), BOOTSTRAP))


def test_nothing_is_said_of_one_system_or_of_questions_in_common_with_none() -> None:
    assert best_of({"a": VALUES["plain"], "b": VALUES["silent"]}, BOOTSTRAP) == "not measured for two systems."
    halves = {"a": np.array([1.0, NAN]), "b": np.array([NAN, 0.0])}
    assert (
        best_of(halves, BOOTSTRAP) == "no clear winner; the greatest is a, 100.0, without a question in common with b."
    )
