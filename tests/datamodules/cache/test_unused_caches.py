"""Stores that no start has opened for a month go when another one is written.

Those that are read, or are no stores, stay.
"""

import os
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from common.locks import exclusive
from common.records import Passage
from datamodules.cache.record_cache import RECORDS, CachedRecords, stored
from datamodules.cache.records import RecordWriter

ROOT = Path(__file__).parents[3]
DAY = 86400
READ = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from datamodules.cache.checked_rows import CheckedRows
from datamodules.cache.records import Records
records = Records(CheckedRows(Path(sys.argv[2])))
print("opened", flush=True)
sys.stdin.readline()
print(records.body(0)[0][0].text)
"""


@pytest.fixture
def folder(tmp_path: Path, on_disk: None) -> Path:
    """Where every file counts as large."""
    return tmp_path


def store(folder: Path, content: str) -> Path:
    """The folder of a store of one file."""

    def write(writer: RecordWriter) -> None:
        writer.add("key", [Passage.of("", content)], {})

    (folder / "file").write_text(content)
    found: CachedRecords = stored(str(folder / "cache"), [folder / "file"], {}, write, "records")
    assert found.folder is not None
    return found.folder


def age(path: Path, days: float) -> None:
    os.utime(path, (time.time() - days * DAY,) * 2)


def test_an_unused_store_is_removed_when_another_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, recent = store(folder, "old"), store(folder, "recent")
    (old / "derived").mkdir()
    (old / "derived" / "tokens").write_bytes(bytes(5 << 20))
    age(old, 31)
    age(recent, 29)
    assert store(folder, "recent") == recent  # nothing is written, nothing removed
    assert old.exists()
    new = store(folder, "new")
    assert sorted(path for path in (folder / "cache").iterdir() if path.name != "digests") == sorted([recent, new])
    line = f"{old}: removed, since no start has opened it for 30 days (5.0 MiB)."
    assert line in capsys.readouterr().err.splitlines()


def test_a_store_of_another_version_is_not_read_and_goes_as_well(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    earlier = folder / "cache" / ("d" * 32)
    earlier.mkdir(parents=True)
    (earlier / "records.arrow").write_bytes(b"of release 0.2")
    store(folder, "new")
    assert "stores of another version" in capsys.readouterr().err
    assert earlier.exists()
    age(earlier, 31)
    store(folder, "newer")
    assert not earlier.exists()


@pytest.mark.parametrize("why", ["has been opened since", "is being written"])
def test_an_old_store_stays(why: str, folder: Path) -> None:
    old = store(folder, "old")
    age(old, 31)
    if why == "has been opened since":
        assert store(folder, "old") == old
    with exclusive(old) if why == "is being written" else nullcontext():
        store(folder, "new")
    assert old.exists()


def test_a_store_that_another_process_reads_stays(folder: Path) -> None:
    old = store(folder, "old")
    process = subprocess.Popen(
        [sys.executable, "-c", READ, str(ROOT), str(old / RECORDS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "opened\n"
    age(old, 400)  # a long run
    store(folder, "new")
    assert old.exists()
    assert process.communicate("\n", timeout=30)[0] == "old\n"
    store(folder, "newer")
    assert not old.exists()


@pytest.mark.parametrize("name", ["notes", "f" * 31, "0123456789abcdef0123456789abcdeg"])
def test_what_is_no_store_stays(name: str, folder: Path) -> None:
    store(folder, "old")
    mine, named = folder / "cache" / name, folder / "cache" / ("e" * 32)
    for each, file in ((mine, RECORDS), (named, "about.json")):
        each.mkdir()
        (each / file).write_text("{}")
        age(each, 400)
    store(folder, "new")
    assert (mine / RECORDS).exists()
    assert (named / "about.json").exists()
