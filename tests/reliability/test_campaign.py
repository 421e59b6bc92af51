"""A short kill campaign; the long one is a command (docs/operate.md#how-it-was-tested)."""

import random
from pathlib import Path

import pytest

from tests.reliability.campaign import prepare, start, try_once


@pytest.mark.slow
@pytest.mark.parametrize("name", ["drrag, 2 processes", "rerag, 1 process", "rewriter, 1 process"])
def test_a_stopped_job_ends_as_the_unbroken_one(tmp_path: Path, name: str) -> None:
    job = next(job for job in prepare(tmp_path) if job.name == name)
    assert start(job, "whole", tmp_path / "whole.log").wait() == 0
    rng = random.Random(0)
    for number in range(3):  # each signal once
        assert not try_once(job, number, rng, tmp_path).difference
