"""Values by key: durable, with times, shared by processes, and errors in one line."""

import multiprocessing
import random
import resource
import sqlite3
import time
from pathlib import Path

import pytest

from common.errors import ArtifactError, UserError
from harness.runtime import store
from harness.runtime.store import Store

NOW = time.time()
DAY = 86_400.0
LOST = "its replies will be requested again"


def fill(file: Path, keys: list[str], text: str = "x") -> None:
    with Store(file, LOST) as values:
        for key in keys:
            values.store(key, text + key, DAY)  # of one time: the file is the same in every run


def test_what_is_stored_comes_back_with_its_time_while_it_is_young(tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "values.sqlite"
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


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    file = tmp_path / "values.sqlite"
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
            found = values.find(key)
            assert found is not None
            assert found[0].endswith(f":{key}")


def test_a_lock_that_is_not_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "values.sqlite"
    fill(file, ["a"])
    monkeypatch.setattr(store, "WAIT_SECONDS", 0.1)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(UserError, match=r"values\.sqlite was locked by another process for .* Run again"):
        fill(file, ["b"])
    other.close()
    fill(file, ["b"])


@pytest.mark.parametrize("damage", ["no database", "cut"])
def test_a_corrupt_file_is_named_with_the_cure(damage: str, tmp_path: Path) -> None:
    keys, file = [f"{n:064}" for n in range(100)], tmp_path / "values.sqlite"
    fill(file, keys)
    if damage == "no database":
        file.write_bytes(b"x" * 5000)
    else:
        file.write_bytes(file.read_bytes()[:9000])

    def read() -> None:
        with Store(file, LOST) as values:
            for key in keys:
                values.find(key)

    with pytest.raises(ArtifactError, match=rf"values\.sqlite cannot be used.*: {LOST}"):
        read()


def test_no_changed_byte_changes_a_value(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A value is found as it was stored, or not at all, which is said unless its key was changed; or the file is named.

    A dropped value can be stored again.
    """
    keys, file, said, lost = [f"{n:04}" for n in range(60)], tmp_path / "values.sqlite", 0, 0
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


def test_a_full_disk_keeps_what_is_stored(tmp_path: Path) -> None:
    file = tmp_path / "values.sqlite"
    fill(file, ["a"])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Store(file, LOST) as values:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 5000, limits[1]))
        try:
            with pytest.raises(ArtifactError, match=r"values\.sqlite cannot be used.*Free space"):
                values.store("large", "x" * 100_000)
            values.check_writable()  # a few bytes
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    fill(file, ["b"])
    with Store(file, LOST) as values:
        assert values.find("a")
        assert values.find("b")


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with pytest.raises(ArtifactError, match="cache is a file"), Store(tmp_path / "cache" / "values.sqlite", LOST):
        pass
    (tmp_path / "other" / "values.sqlite").mkdir(parents=True)
    with (
        pytest.raises(ArtifactError, match=r"unable to open database file\. .*choose another folder"),
        Store(tmp_path / "other" / "values.sqlite", LOST),
    ):
        pass
