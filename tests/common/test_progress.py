"""Progress: shown after five seconds, with the time left; a rewritten line on a terminal, lines in a log.

Only on rank 0.
"""

import gzip
import io
import random
import sys
import time
from pathlib import Path

import pytest

from common import progress
from common.progress import FileProgress, Progress, in_time, say, track, track_batches
from datamodules.formats.sources import rows


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds on a clock that the test moves; the thread that redraws does not run."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "_screen", progress._Screen())
    monkeypatch.setattr(progress._Screen, "_tick", lambda self: None)
    for name in ("RANK", "SLURM_PROCID", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    return now


class Terminal(io.StringIO):
    """A terminal that keeps what was written."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def run(clock: list[float], seconds_each: float, items: int = 10) -> None:
    for _ in track(range(items), items, "counting"):
        clock[0] += seconds_each


def test_short_work_is_not_shown(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    run(clock, 0.4)
    assert capsys.readouterr() == ("", "")


def test_a_log_gets_a_line_every_fifteen_seconds_with_the_time_left(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    run(clock, 6.0)
    assert capsys.readouterr().err.splitlines() == [
        "counting: 1 of 10, 54 s left", "counting: 4 of 10, 36 s left", "counting: 7 of 10, 18 s left",
        "counting: 10 of 10, 0 s left",
    ]  # fmt: skip


def test_results_of_an_earlier_run_do_not_shorten_the_time_left(clock: list[float]) -> None:
    with Progress("counting", 100) as work:
        work.skip(50)
        clock[0] += 10
        work.advance(10)
        assert work.text() == "counting: 60 of 100, 40 s left"


def test_work_within_work_is_shown_in_one_line(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("chunks", 4) as outer:
        clock[0] += 20
        outer.advance()
        for _ in track_batches([[1, 2], [3]], 3, "texts"):
            clock[0] += 20
    assert capsys.readouterr().err.splitlines() == [
        "chunks: 1 of 4, 1 min 00 s left", "chunks: 1 of 4, 2 min 00 s left > texts: 2 of 3, 10 s left",
        "chunks: 1 of 4, 3 min 00 s left > texts: 3 of 3, 0 s left",
    ]  # fmt: skip


def test_of_unknown_work_the_share_of_the_file_says_the_time_left(clock: list[float], tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    path.write_bytes(b"x" * 1000)
    with Progress("reading", None) as work, path.open("rb") as file:
        with FileProgress(file):
            assert work.text() == "reading: 0 s so far"
            work.advance()
            assert work.text() == "reading: 1, 0% of train.json"
            clock[0] += 10
            file.read(250)
            assert work.text() == "reading: 1, 25% of train.json, 30 s left"
            with Progress("within", 4), path.open("rb") as other, FileProgress(other):  # what has a total needs no file
                assert work.text() == "reading: 1, 25% of train.json, 30 s left"
            file.read()
            assert work.text() == "reading: 1, 100% of train.json, 0 s left"
        assert work.text() == "reading: 1"


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_rows_of_a_large_file_are_read_with_the_time_left(
    suffix: str, clock: list[float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"train.jsonl{suffix}"
    content = b"".join(b'{"a": "%s"}\n' % random.Random(i).randbytes(5000).hex().encode() for i in range(600))
    path.write_bytes(gzip.compress(content, 1) if suffix else content)
    for number, _ in enumerate(track(rows(str(path)), None, "reading questions"), 1):
        clock[0] += 20 if number % 150 == 0 else 0
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == 4
    for number, line in enumerate(shown, 1):
        assert line.startswith(f"reading questions: {150 * number}, ")
        share = float(line.split(", ")[1].removesuffix(f"% of {path.name}"))
        assert share == pytest.approx(25 * number, abs=18)  # read ahead by a chunk of 1 MiB of 6
    assert shown[-1].endswith("100% of " + path.name + ", 0 s left")


def test_files_read_side_by_side_are_shown_once(clock: list[float], tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text('{"a": 1}\n' * 3)
    with Progress("reading") as work:
        pairs = zip(rows(str(path)), rows(str(path)), strict=True)
        next(pairs)
        work.advance()
        assert work.text().count("file.jsonl") == 1
        del pairs
        assert work.text() == "reading: 1"


def test_a_terminal_line_is_rewritten_and_removed(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Progress("counting", 2) as work:
        clock[0] += 8
        work.advance()
        say("found something")
        clock[0] += 8
        work.advance()
    assert terminal.getvalue() == (
        "[##########..........] counting: 1 of 2, 8 s left\r\x1b[Kfound something\n"
        "[####################] counting: 2 of 2, 0 s left\r\x1b[K"
    )


@pytest.mark.parametrize("variable", ["RANK", "LOCAL_RANK", "SLURM_PROCID"])
def test_other_ranks_print_nothing(
    variable: str, clock: list[float], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "1")
    run(clock, 6.0)
    say("nothing")
    assert capsys.readouterr() == ("", "")


def test_work_without_items_is_shown_while_it_lasts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SHOWN_AFTER_SECONDS", 0.05)
    monkeypatch.setattr(progress, "_REDRAW_EVERY_SECONDS", 0.02)
    monkeypatch.setattr(progress, "_screen", progress._Screen())
    with Progress("loading a model"):
        time.sleep(0.3)
    assert capsys.readouterr().err == "loading a model: 0 s so far\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.6, "1 min 00 s"), (200, "3 min 20 s"), (7500, "2 h 05 min"), (273600, "3 d 4 h")],
)
def test_durations_are_readable(seconds: float, text: str) -> None:
    assert in_time(seconds) == text
