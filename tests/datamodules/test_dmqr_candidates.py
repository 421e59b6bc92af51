"""Choice of the candidates of a group."""

from dataclasses import replace

from common.preferences import Candidate
from datamodules.dmqr_candidates import chosen


def test_a_group_keeps_its_best_worst_and_greedy_candidates_in_a_fixed_order() -> None:
    made = [Candidate(f"rewrite {n}", n / 10, -1.0, times, n == 4) for n, times in enumerate([1, 9, 1, 5, 1, 1, 1, 1])]
    assert [each.rewrite[-1] for each in chosen(made, 5)] == ["7", "4", "3", "1", "0"]
    assert chosen(made[::-1], 5) == chosen(made, 5)
    equal = [replace(each, reward=1.0) for each in made]
    assert next(each.rewrite[-1] for each in chosen(equal, 3)) == "4"
    assert chosen(equal[::-1], 8) == chosen(equal, 8)
