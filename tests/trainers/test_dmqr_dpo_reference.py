"""The line that tells whether the starting model is the sampler, by hand.

Two processes are in the tests of the trainers.
"""

from types import SimpleNamespace
from typing import Any

import pytest

from trainers.dmqr_dpo_reference import tell_difference

PAIRS = [
    (-1.0, -1.5, 2),
    (-3.0, -2.75, 1),
    (-9.0, -1.0, 0),
    (-9.0, None, 1),
]  # the last two were not drawn, or have none


def test_the_difference_to_the_sampler_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    first: Any = SimpleNamespace(is_global_zero=True)
    tell_difference(first, PAIRS)
    assert "differ from the sampler's by 0.375 nats on average, 0.500 at most" in capsys.readouterr().out
    tell_difference(first, PAIRS[2:])
    tell_difference(SimpleNamespace(is_global_zero=False), PAIRS)  # type: ignore[arg-type]
    assert capsys.readouterr().out == ""
