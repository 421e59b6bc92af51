"""HiQA's Log-Rank Index by hand-worked values and its invariances."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.evaluation.log_rank import log_rank, log_rank_index


def test_by_hand() -> None:
    # gamma 1: S(r) = 1 - log r / log N, here 1 - log 2 / log 8 = 1 - 1/3
    assert log_rank(2, 8) == pytest.approx(2 / 3)
    # gamma 3, N = 6: 1 - log(1 + 3) / log(1 + 15) = 1 - 1/2
    assert log_rank(2, 6, gamma=3) == pytest.approx(1 / 2)
    assert log_rank_index([1, 2, None], 8) == pytest.approx((1 + 2 / 3 + 0) / 3)  # None counts as the eighth


def test_one_segment_is_first_and_last() -> None:
    assert log_rank(1, 1) == log_rank_index([None], 1) == 1.0


def test_without_a_relevant_segment_it_is_undefined() -> None:
    assert math.isnan(log_rank_index([], 5))


@given(st.integers(2, 10_000), st.floats(0.01, 100), st.data())
def test_it_falls_from_1_to_0_and_faster_with_gamma(segments: int, gamma: float, data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, segments - 1))
    here, next_one = log_rank(rank, segments, gamma), log_rank(rank + 1, segments, gamma)
    assert 0 <= next_one < here <= 1
    assert log_rank(1, segments, gamma) == 1
    assert log_rank(segments, segments, gamma) == pytest.approx(0, abs=1e-12)
    assert log_rank(rank, segments, 2 * gamma) <= here + 1e-12


def test_a_rank_is_at_most_the_number_of_segments() -> None:
    with pytest.raises(ValueError, match="rank 6 of 5"):
        log_rank(6, 5)
