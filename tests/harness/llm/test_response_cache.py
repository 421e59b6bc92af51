"""The cache of replies: durable, shared by processes, and its errors in one line."""

import multiprocessing
import resource
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from common.chat import Reply
from common.errors import ArtifactError, UserError
from harness.llm.response_cache import FILE, ResponseCache, key_of
from harness.runtime import sqlite_file

REPLY = Reply("größe 東京 \x00 \u2028", "", "length", -1.25, 7, 3, 0.001, 0.5, 2)


def store(folder: Path, keys: list[str], text: str = "x") -> None:
    with ResponseCache.opened(folder) as cache:
        for key in keys:
            cache.store(key, replace(REPLY, text=text + key))


def test_a_reply_comes_back_as_it_was_marked_as_cached(tmp_path: Path) -> None:
    with ResponseCache.opened(tmp_path / "new" / "folder") as cache:
        assert cache.find(["a"]) == {}
        cache.store("a", REPLY)
        cache.store("a", replace(REPLY, text="later"))  # the first stays
        assert cache.find(["a", "b"]) == {"a": replace(REPLY, cached=True)}
    with ResponseCache.opened(tmp_path / "new" / "folder") as cache:
        assert cache.find(["a"]) == {"a": replace(REPLY, cached=True)}


def test_keys_depend_on_values_not_on_their_order() -> None:
    assert key_of({"a": 1, "b": [{"c": "x", "d": None}]}) == key_of({"b": [{"d": None, "c": "x"}], "a": 1})
    assert len({key_of({"a": value}) for value in (1, "1", None, [1], {"a": 1}, 1.5, True)}) == 7


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    parts = [[f"{process}-{n}" for n in range(100)] + [f"shared-{n}" for n in range(50)] for process in range(3)]
    spawn = multiprocessing.get_context("fork")
    processes = [spawn.Process(target=store, args=(tmp_path, part, f"{n}:")) for n, part in enumerate(parts)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    keys = {key for part in parts for key in part}
    with ResponseCache.opened(tmp_path) as cache:
        found = cache.find(keys)
    assert found.keys() == keys
    assert all(reply.text.endswith(f":{key}") for key, reply in found.items())


def test_a_lock_that_is_not_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(tmp_path, ["a"])
    monkeypatch.setattr(sqlite_file, "WAIT_SECONDS", 0.1)
    other = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(UserError, match=r"replies\.sqlite was locked by another process for .* Run again"):
        store(tmp_path, ["b"])
    other.close()
    store(tmp_path, ["b"])


@pytest.mark.parametrize("damage", ["no database", "cut", "unreadable reply"])
def test_a_corrupt_file_is_named_with_the_cure(damage: str, tmp_path: Path) -> None:
    keys = [f"{n:064}" for n in range(100)]
    store(tmp_path, keys)
    file = tmp_path / FILE
    if damage == "no database":
        file.write_bytes(b"x" * 5000)
    elif damage == "cut":
        file.write_bytes(file.read_bytes()[:9000])
    else:
        with sqlite3.connect(file) as database:
            database.execute("UPDATE replies SET reply = 'nonsense'")
    with (
        pytest.raises(ArtifactError, match=r"replies\.sqlite is corrupt \(.*\)\. Delete it and run again"),
        ResponseCache.opened(tmp_path) as cache,
    ):
        cache.find(keys)


def test_a_full_disk_keeps_what_is_stored(tmp_path: Path) -> None:
    store(tmp_path, ["a"])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with ResponseCache.opened(tmp_path) as cache:
        resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / FILE).stat().st_size + 5000, limits[1]))
        try:
            with pytest.raises(
                ArtifactError, match=r"replies\.sqlite: cannot write or read: .*Free space, then run again"
            ):
                cache.store("large", replace(REPLY, text="x" * 100_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    store(tmp_path, ["b"])
    with ResponseCache.opened(tmp_path) as cache:
        assert {"a", "b"} <= cache.find(["a", "b"]).keys()


def test_a_cache_that_can_only_be_read(tmp_path: Path) -> None:
    """As on a read-only file system, which SQLite shows as here; the tests may run as a user whom no mode stops."""
    store(tmp_path, ["a"])
    file = tmp_path / FILE
    database = sqlite3.connect(f"file:{file}?mode=ro", uri=True, isolation_level=None)
    cache = ResponseCache(file, database)
    assert cache.find(["a"])
    for write in (cache.check_writable, lambda: cache.store("b", REPLY)):
        with pytest.raises(ArtifactError, match=r"readonly database\. Choose another folder with the option `cache`"):
            write()
    database.close()


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with pytest.raises(ArtifactError, match="cache is a file"), ResponseCache.opened(tmp_path / "cache"):
        pass
    (tmp_path / "other" / FILE).mkdir(parents=True)
    with (
        pytest.raises(ArtifactError, match=r"unable to open database file\. Choose another folder"),
        ResponseCache.opened(tmp_path / "other"),
    ):
        pass
