"""The journal of finished results: cut files, corrupt lines, a full disk, kill -9, and several processes."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from common.errors import ArtifactError, UserError
from harness.runtime.journal import Journal
from tests.helpers.full_disk import files_up_to

ROOT = Path(__file__).parents[3]
HEAD = {"model": "é\u2028", "format": 1}
APPEND = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from harness.runtime.journal import Journal
file, name, count, size = Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
journal = Journal(file, {"format": 1})
print("begins", flush=True)
for number in range(count):
    with journal.locked(60):
        journal.read(lambda _, line: line)
        journal.append([name, number, name * size])
    print(number, flush=True)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "results.jsonl"


def same(_: int, line: object) -> object:
    return line


def written(file: Path, results: list, head: dict = HEAD) -> Journal:
    journal = Journal(file, head)
    with journal.locked():
        journal.read(same)
        for result in results:
            journal.append(result)
    return journal


def test_every_changed_byte_is_named_or_said(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    results = ["one", "two", "three"]
    written(file, results)
    whole = file.read_bytes()
    for place in range(len(whole)):
        for changed in (whole[place] ^ 1, ord("\n"))[: 1 + (place % 5 == 0)]:
            file.write_bytes(whole[:place] + bytes([changed]) + whole[place + 1 :])
            capfd.readouterr()
            journal = Journal(file, HEAD)
            try:
                with journal.locked():
                    found = journal.read(same)
                    for result in results[len(found) :]:
                        journal.append(result)
            except ArtifactError:
                continue
            assert file.read_bytes() == whole
            said = capfd.readouterr().err
            assert "computed again" in said or "Starting over" in said or changed == whole[place], place


def process(file: Path, name: str, count: int, size: int) -> subprocess.Popen[str]:
    """A process that says that it begins and appends `count` results [name, number, text of `size` letters]."""
    arguments = [sys.executable, "-c", APPEND, str(ROOT), str(file), name, str(count), str(size)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=4), lambda s: st.lists(s, max_size=3))


@settings(max_examples=25)
@given(st.lists(JSON, max_size=5), st.integers(0, 300), st.integers(0, 3))
@example([[1], "x"], 1, 0)  # without the last line break
def test_a_cut_file_gives_a_prefix_and_goes_on(results: list, cut_bytes: int, zeros: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.jsonl"
        written(file, results)
        whole = file.read_bytes() if results else b""
        kept = whole[: max(0, len(whole) - cut_bytes)]
        file.parent.mkdir(exist_ok=True)  # an empty folder was removed
        file.write_bytes(kept + zeros * b"\0")  # a power failure may leave zeros where blocks were not written
        expected = results[: max(0, kept.count(b"\n") - 1)]
        assert Journal(file, HEAD).read(same) == expected
        again = Journal(file, HEAD)
        with again.locked():
            assert again.read(same) == expected
            again.append("new")
            assert again.read(same) == []
            again.append("newer")
        assert Journal(file, HEAD).read(same) == [*expected, "new", "newer"]


WRONG_LINES = ["{ 1 2 3", "0 \xff 2 3", "0 1 [1][2] 3", "0 \0\0 2 3", "0 2 1 3", "0 1 1 2", "0 2 3", "0 1 3 {"]


@pytest.mark.parametrize("lines", WRONG_LINES)
def test_a_line_that_is_corrupt_moved_repeated_or_removed_is_named_and_the_file_is_left(file, lines: str) -> None:
    """Digits stand for the lines as they were written."""
    written(file, [1, 2, 3])
    whole, now = file.read_bytes().splitlines(), lines.split(" ")
    file.write_bytes(b"".join((whole[int(each)] if each.isdigit() else each.encode("latin-1")) + b"\n" for each in now))
    before, number = file.read_bytes(), next(n for n, each in enumerate(now) if each != str(n)) + 1
    with pytest.raises(ArtifactError, match=rf"jsonl, line {number} is corrupt: delete the file and run again\.$"):
        written(file, [4])
    assert file.read_bytes() == before


def test_results_of_another_configuration_stay_until_the_first_new_one(file: Path, capsys) -> None:
    written(file, [1, 2])
    before = file.read_bytes()
    other = written(file, [], {**HEAD, "model": "b"})
    assert file.read_bytes() == before
    assert capsys.readouterr().err == f"{file}: saved by a run that differs in: model. Starting over.\n"
    with other.locked():
        assert other.read(same) == []
        other.append(3)
    assert capsys.readouterr().err == ""  # it was said
    assert Journal(file, other.head).read(same) == [3]


@pytest.mark.parametrize("results", [[], [1, 2]])
def test_a_full_disk_is_one_line_and_loses_nothing_saved(file: Path, results: list) -> None:
    written(file, results)
    size_bytes = file.stat().st_size if results else 0
    with files_up_to(size_bytes + 10), pytest.raises(ArtifactError, match=r"jsonl: cannot read or write: .*Free space"):
        written(file, ["x" * 100_000])
    assert Journal(file, HEAD).read(same) == results
    written(file, [3])
    assert Journal(file, HEAD).read(same) == [*results, 3]


def test_a_result_is_on_disk_before_append_returns(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync, at_fsync = os.fsync, []

    monkeypatch.setattr(os, "fsync", lambda descriptor: at_fsync.append(file.read_bytes()) or fsync(descriptor))
    written(file, [1, 2])
    whole = file.read_bytes()
    first_result = b"".join(whole.splitlines(keepends=True)[:2])
    assert at_fsync == [first_result, first_result, whole]  # the file, its folder's entry, the file


def test_a_killed_process_loses_no_appended_result(file: Path) -> None:
    killed = process(file, "a", 1_000_000, 10_000)
    while killed.stdout.readline() != "20\n":  # type: ignore[union-attr]
        pass
    os.kill(killed.pid, signal.SIGKILL)
    rest, _ = killed.communicate()
    appended = 20 + len(rest.splitlines())
    found = Journal(file, {"format": 1}).read(same)
    assert [number for _, number, _ in found] == list(range(len(found)))
    assert len(found) in (appended + 1, appended + 2)  # it was perhaps killed before it could print


def test_two_processes_append_to_one_file_and_wait_for_another(file: Path) -> None:
    """Lines that are written in several pieces."""
    journal = Journal(file, {"format": 1}, "--scores")
    with journal.locked():
        processes = [process(file, name, 40, 1_000_000) for name in "ab"]
        assert [each.stdout.readline() for each in processes] == ["begins\n"] * 2  # type: ignore[union-attr]
        time.sleep(0.5)
        assert [each.poll() for each in processes] == [None, None]
        journal.read(same)
        journal.append(["first", 0, "first"])
    for each in processes:
        assert each.communicate(timeout=60)[0].split()[-1] == "39"
    found = journal.read(same)
    for name in "ab":
        assert [number for who, number, _ in found if who == name] == list(range(40))
    assert all(text == who * 1_000_000 for who, _, text in found)
    assert list(file.parent.iterdir()) == [file]
    told = r"results.jsonl is in use by process \d+ on .* Wait for it, or choose another --scores\.$"
    second = Journal(file, {"format": 1}, "--scores")
    with journal.locked(), pytest.raises(UserError, match=told), second.locked(0.1):
        pass


def test_a_file_that_is_removed_or_shortened_while_in_use(file: Path) -> None:
    journal = written(file, [1, 2])
    whole = file.read_bytes()
    file.unlink()
    with journal.locked(), pytest.raises(ArtifactError, match=r"was removed or shortened by .*\. Run again"):
        journal.append(3)
    assert not file.exists()
    with journal.locked():
        assert journal.read(same) == []  # of a file that begins again
        journal.append(3)
    assert Journal(file, HEAD).read(same) == [3]
    file.write_bytes(whole[:-1])
    journal = Journal(file, HEAD)
    assert journal.read(same) == [1]
    file.write_bytes(whole[:-20])  # the end of the first result too
    with journal.locked(), pytest.raises(ArtifactError, match="shortened"):
        journal.append(3)
