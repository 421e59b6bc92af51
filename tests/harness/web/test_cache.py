"""The cache of searches and pages: durable, with times, and its errors in one line."""

import time
from pathlib import Path

import pytest

from common.errors import ArtifactError
from harness.web.cache import FILE, WebCache

NOW = time.time()
DAY = 86_400.0


def test_what_is_stored_comes_back_with_its_time_while_it_is_young(tmp_path: Path) -> None:
    with WebCache.opened(tmp_path / "new" / "folder", 7.0) as cache:
        assert cache.find({"page": "a"}) is None
        cache.store({"page": "a"}, "größe \x00", NOW)
        cache.store({"search": "q", "results": 5}, [["t", "l", "s"]], NOW - 3 * DAY)
        cache.store({"page": "old"}, "x", NOW - 8 * DAY)
    with WebCache.opened(tmp_path / "new" / "folder", 7.0) as cache:
        assert cache.find({"page": "a"}) == ("größe \x00", NOW)
        assert cache.find({"results": 5, "search": "q"}) == ([["t", "l", "s"]], NOW - 3 * DAY)
        assert cache.find({"search": "q", "results": 6}) is None
        assert cache.find({"page": "old"}) is None
        cache.store({"page": "old"}, "new", NOW)
        assert cache.find({"page": "old"}) == ("new", NOW)
    with WebCache.opened(tmp_path / "new" / "folder", None) as cache:
        cache.store({"page": "old"}, "x", 0.0)
        assert cache.find({"page": "old"}) == ("x", 0.0)


@pytest.mark.parametrize("content", [b"no database", b""])
def test_a_damaged_file_is_one_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(content)
    if not content:  # SQLite takes an empty file for a new one
        with WebCache.opened(tmp_path, None) as cache:
            assert cache.find({"page": "a"}) is None
        return
    with pytest.raises(
        ArtifactError, match=r"web\.sqlite is corrupt .* Delete it and run again: its searches and pages"
    ):
        WebCache.opened(tmp_path, None).__enter__()


def test_a_damaged_row_is_one_line(tmp_path: Path) -> None:
    with WebCache.opened(tmp_path, None) as cache:
        cache.store({"page": "a"}, "x", NOW)
        cache._database.execute("UPDATE documents SET value = '{'")
        with pytest.raises(ArtifactError, match="a stored document is unreadable"):
            cache.find({"page": "a"})


def test_a_folder_that_cannot_be_written_is_named_before_a_request(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match="is a file"):
        WebCache.opened(tmp_path / "file", None).__enter__()
