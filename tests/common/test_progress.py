"""Progress: shown after five seconds, with the time left; a bar on a terminal, lines in a log.  Only on rank 0."""

import sys

import pytest
import tqdm

from common.progress import Progress, say, track


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds on a clock that the test moves."""
    now = [0.0]
    monkeypatch.setattr(tqdm.std, "time", lambda: now[0])
    for name in ("RANK", "SLURM_PROCID", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    return now


def run(clock: list[float], seconds_each: float, items: int = 10) -> None:
    for _ in track(range(items), items, "counting"):
        clock[0] += seconds_each


def test_a_log_gets_a_line_every_fifteen_seconds_with_the_time_left(clock: list[float], capsys) -> None:
    run(clock, 0.4)
    assert capsys.readouterr() == ("", "")  # short work is not shown
    run(clock, 6.0)
    out, err = capsys.readouterr()
    assert out == ""
    left = [line.split("|")[-1].partition(",")[0].strip() for line in err.splitlines()]
    assert left == ["3/10 [00:18<00:42", "6/10 [00:36<00:24", "9/10 [00:54<00:06"]
    assert all(line.startswith("counting: ") for line in err.splitlines())


def test_results_of_an_earlier_run_do_not_shorten_the_time_left(clock: list[float], capsys) -> None:
    with Progress("counting", 100, 50) as work:
        clock[0] += 20
        work.update(10)
        say("found something", sys.stdout)
    out, err = capsys.readouterr()
    assert "60/100 [00:20<01:20" in err
    assert (out, len(err.splitlines())) == ("found something\n", 1)


@pytest.mark.parametrize("variable", ["RANK", "LOCAL_RANK", "SLURM_PROCID"])
def test_other_ranks_print_nothing(variable: str, clock: list[float], capsys, monkeypatch) -> None:
    monkeypatch.setenv(variable, "1")
    run(clock, 6.0)
    with Progress("counting", 2) as work:
        work.initial += 1  # of what an earlier run did
        work.update()
    say("nothing")
    assert capsys.readouterr() == ("", "")
