"""Files of lines, written batch by batch: interruptions, other work, foreign files, bounded reading."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from common.errors import ArtifactError, UserError
from common.files import check_seal
from common.outputs import OutputFile
from harness.runtime.distributed import ProcessGroup
from harness.runtime.journal import Journal
from harness.runtime.shared_lines import write_shared

OUTPUT = OutputFile("`a test`", "a file of lines", lambda path: path.read_text().startswith("line"))
ITEMS, AT_ONCE = 11, 3
WHOLE = "".join(f"line {number}\n" for number in range(ITEMS))


class StoppedError(Exception):
    """What interrupts a run."""


class Work:
    """Lines of the numbers below `ITEMS`; batch `stop_at` fails; it remembers what it computed."""

    def __init__(self, out: Path, depends_on: dict | None = None, stop_at=None, error=StoppedError) -> None:
        self.out, self.depends_on, self.stop_at, self.error = out, depends_on, stop_at, error
        self.processes = ProcessGroup(0, 1)
        self.computed, self.seen = list[list[int]](), list[str]()
        self.read = self.ahead = 0

    def items(self) -> Iterator[int]:
        for number in range(ITEMS):
            self.read = number + 1
            yield number

    def lines(self, batch: Sequence[int]) -> Iterator[str]:
        if batch[0] // AT_ONCE == self.stop_at:
            raise self.error
        self.ahead = max(self.ahead, self.read - batch[0])
        self.computed.append(list(batch))
        return (f"line {number}" for number in batch)

    def run(self) -> str:
        survey, done = lambda: (ITEMS, self.depends_on), self.seen.append
        write_shared(OUTPUT, self.out, survey, self.items, AT_ONCE, self.lines, "testing", str, done, self.processes)
        assert not self.out.with_name(f"{self.out.name}.partial").exists()
        return self.out.read_text()


def test_lines_are_written_in_order_from_few_items_at_once(tmp_path: Path) -> None:
    work = Work(tmp_path / "out")
    assert work.run() == WHOLE
    assert work.computed == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10]]
    assert work.ahead == AT_ONCE
    assert work.seen == WHOLE.splitlines(keepends=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.sha256"]
    check_seal(work.out)


THIS, THAT = {"of": "this"}, {"of": "that"}
REUSED = [(THIS, THIS, 0, 4), (THIS, THIS, 1, 3), (THIS, THIS, 3, 1)]
ANEW = [(THIS, THAT, 2, 4), (None, None, 2, 4), (THIS, None, 2, 4)]


@pytest.mark.parametrize(("first", "second", "stop_at", "batches"), REUSED + ANEW)
def test_a_run_goes_on_from_lines_of_its_own_work_alone(tmp_path, capsys, first, second, stop_at, batches) -> None:
    with pytest.raises(StoppedError):
        Work(tmp_path / "out", first, stop_at).run()
    assert not (tmp_path / "out").exists()
    again = Work(tmp_path / "out", second)
    assert again.run() == WHOLE
    assert [batch[0] for batch in again.computed] == list(range(0, ITEMS, AT_ONCE))[-batches:]
    assert ("differs in: of. Starting over." in capsys.readouterr().err) == (first != second)


@pytest.mark.parametrize("wrong", [0, 1])
def test_a_first_batch_that_fails_for_one_reason_ends_the_work_and_a_later_one_has_no_lines(tmp_path, wrong) -> None:
    work = Work(tmp_path / "out", stop_at=wrong, error=UserError("wrong option"))
    if wrong == 0:
        with pytest.raises(UserError, match=r"^wrong option$"):
            work.run()
    else:
        assert len(work.run().splitlines()) == ITEMS - AT_ONCE


def test_ranks_append_to_their_own_journals_and_the_first_joins_them(tmp_path: Path) -> None:
    """What is left by any number of ranks is reused by any other number."""
    out, work = tmp_path / "out", {"of": "this"}
    with pytest.raises(StoppedError):
        Work(out, work, 2).run()
    head = json.loads((tmp_path / "out.partial/rank-0.jsonl").read_text().splitlines()[0])[1]
    other = Journal(tmp_path / "out.partial/rank-7.jsonl", head)
    other.append([3, ["line 9", "line 10"], {}])
    again = Work(out, work)
    assert again.run() == WHOLE
    assert again.computed == [[6, 7, 8]]


def test_what_an_earlier_release_saved_is_made_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out.partial").mkdir()
    for name in ("work.json", "lines-000000.jsonl", "lines-000000.jsonl.sha256"):
        (tmp_path / "out.partial" / name).write_text("line 9\n")
    assert Work(tmp_path / "out", {"of": "this"}).run() == WHOLE
    assert capsys.readouterr().err == f"{tmp_path / 'out.partial'}: saved by an earlier release. Starting over.\n"


def test_other_files_are_not_removed(tmp_path: Path) -> None:
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial/thesis.txt").write_text("mine")
    with pytest.raises(UserError, match=r"out\.partial"):
        Work(tmp_path / "out").run()
    assert (tmp_path / "out.partial/thesis.txt").read_text() == "mine"
    (tmp_path / "other").write_text("no lines of the command")
    with pytest.raises(UserError, match="other exists and is not a file of lines"):
        Work(tmp_path / "other").run()


def test_a_batch_that_another_machine_keeps_to_itself_is_named(tmp_path: Path) -> None:
    class Elsewhere(ProcessGroup):
        def barrier(self) -> None:
            (tmp_path / "out.partial/rank-0.jsonl").rename(tmp_path / "elsewhere")

    work = Work(tmp_path / "out", {"of": "this"})
    work.processes = Elsewhere(0, 1)
    with pytest.raises(ArtifactError, match=r"batch 0 is missing .* all nodes share"):
        work.run()
    assert not (tmp_path / "out").exists()
