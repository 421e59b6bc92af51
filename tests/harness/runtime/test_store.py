"""Values by key: durable, with times, shared by processes, and errors in one line."""

import multiprocessing
import random
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from common.errors import ArtifactError, UserError
from harness.runtime import store
from harness.runtime.store import Store
from tests.helpers.full_disk import files_up_to

NOW = time.time()
DAY = 86_400.0
LOST = "its replies will be requested again"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "new" / "folder" / "values.sqlite"


def fill(file: Path, keys: list[str], text: str = "x") -> None:
    with Store(file, LOST) as values:
        for key in keys:
            values.store(key, text + key, DAY)  # of one time: the file is the same in every run


def test_what_is_stored_comes_back_with_its_time_while_it_is_young(file: Path) -> None:
    value = {"text": "größe 東京 \x00 \u2028", "logprob": -1.25, "usd": None}
    with Store(file, LOST, 7.0) as values:
        assert values.find("a") is None
        values.store("a", value, NOW)
        values.store("a", "later")  # the first stays
        values.store("list", [["t", "l"]], NOW - 3 * DAY)
        values.store("old", "x", NOW - 8 * DAY)
    values.store("after the end", "x")
    with Store(file, LOST, 7.0) as values:
        assert values.find("a") == (value, NOW)
        assert values.find("list") == ([["t", "l"]], NOW - 3 * DAY)
        assert values.find("old") is values.find("after the end") is None
        values.store("old", "new", NOW)
        assert values.find("old") == ("new", NOW)
        values.store("oldest", "x", 0.0)
    with Store(file, LOST) as values:
        assert values.find("oldest") == ("x", 0.0)


def test_several_processes_write_at_once(file: Path) -> None:
    parts = [[f"{process}-{n}" for n in range(30)] + [f"shared-{n}" for n in range(20)] for process in range(3)]
    spawn = multiprocessing.get_context("fork")
    processes = [spawn.Process(target=fill, args=(file, part, f"{n}:")) for n, part in enumerate(parts)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    with Store(file, LOST) as values:
        for key in {key for part in parts for key in part}:
            assert (values.find(key) or [""])[0].endswith(f":{key}")


def test_no_changed_byte_changes_a_value(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A value is found as it was stored, or not at all, which is said unless its key was changed; or the file is named.

    A dropped value can be stored again.
    """
    keys, said, lost = [f"{n:04}" for n in range(60)], 0, 0
    fill(file, keys)
    whole, chance = file.read_bytes(), random.Random(0)
    for place in chance.sample(range(len(whole)), 100):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << chance.randrange(8)]) + whole[place + 1 :])
        try:
            with Store(file, LOST) as values:
                gone = [key for key in keys if (found := values.find(key)) is None or found[0] != f"x{key}"]
                for key in gone:
                    values.store(key, f"x{key}", DAY)
                again = {key: found[0] for key in keys if (found := values.find(key))}
                assert again.items() <= {key: f"x{key}" for key in keys}.items(), place
                assert again.keys() >= {*gone}, place
        except (ArtifactError, UserError):
            capfd.readouterr()
            continue
        lost, said = lost + len(gone), said + capfd.readouterr().err.count("a damaged value was dropped: ")
    assert 0 < said <= lost


def test_a_full_disk_keeps_what_is_stored(file: Path) -> None:
    fill(file, ["a"])
    with Store(file, LOST) as values, files_up_to(file.stat().st_size + 5000):
        with pytest.raises(ArtifactError, match=r"values\.sqlite cannot be used.*Free space"):
            values.store("large", "x" * 100_000)
        values.check_writable()  # a few bytes
    fill(file, ["b"])
    with Store(file, LOST) as values:
        assert [bool(values.find(key)) for key in "ab"] == [True, True]


def test_what_is_refused(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that is not released, files that are no database or cut, folders and files in each other's place."""
    keys = [f"{n:064}" for n in range(100)]
    fill(file, keys)
    monkeypatch.setattr(store, "WAIT_SECONDS", 0.1)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(UserError, match=r"values\.sqlite was locked by another process for .* Run again"):
            fill(file, ["b"])
    fill(file, ["b"])
    (tmp_path / "no").write_bytes(b"x" * 5000)
    (tmp_path / "cut").write_bytes(file.read_bytes()[:9000])
    (tmp_path / "folder").mkdir()
    for name, told in (("no", LOST), ("cut", LOST), ("no/a", "no is a file"), ("folder", "choose another folder")):
        with pytest.raises(ArtifactError, match=told), Store(tmp_path / name, LOST) as values:
            [*map(values.find, keys)]
