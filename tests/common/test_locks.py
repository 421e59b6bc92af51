"""Locks between processes, and their clean-up."""

import re
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from filelock import FileLock

from common.errors import ArtifactError, UserError
from common.locks import exclusive, lock_file

ROOT = Path(__file__).parents[2]
HOLD = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from common.locks import exclusive
with exclusive(Path(sys.argv[2])):
    print("held", flush=True)
    sys.stdin.readline()
"""


def holder(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLD, str(ROOT), str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"  # type: ignore[union-attr]
    return process


def test_one_process_at_a_time_and_a_killed_one_releases_its_lock(tmp_path: Path) -> None:
    path = tmp_path / "folder"  # it need not exist
    process, host = holder(path), re.escape(socket.gethostname())
    told = rf"folder is in use by process {process.pid} on {host} since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d\. Wait\.$"
    with pytest.raises(UserError, match=told), exclusive(path, "Wait."):
        pass
    assert lock_file(path).exists()  # it is still held
    process.communicate("\n", timeout=30)
    assert not list(tmp_path.iterdir())
    killed = holder(path)
    killed.kill()
    killed.communicate(timeout=30)
    assert lock_file(path).exists()
    with exclusive(path), exclusive(tmp_path / "another"):
        pass
    assert not list(tmp_path.iterdir())


def test_removing_the_lock_file_never_lets_two_in(tmp_path: Path) -> None:
    inside, most = [], []

    def enter_often(thread: int) -> None:
        for _ in range(300):
            with suppress(UserError), exclusive(tmp_path / "work"):
                inside.append(thread)
                most.append(len(inside))
                time.sleep(0)
                inside.remove(thread)

    with ThreadPoolExecutor(4) as pool:
        [*pool.map(enter_often, range(4))]
    assert len(most) > 30
    assert max(most) == 1


def test_a_lock_that_has_just_been_taken_is_waited_for(tmp_path: Path) -> None:
    """Its file is still empty: a process is between taking the lock and writing its name, or releases it at once."""
    path = tmp_path / "work"
    lock = FileLock(lock_file(path), thread_local=False)
    lock.acquire()
    release = threading.Timer(0.2, lambda: [lock_file(path).unlink(), lock.release()])
    release.start()
    with exclusive(path):
        assert lock_file(path).read_text().startswith("process ")
    release.join()


def test_missing_folders_are_created_and_removed_when_empty(tmp_path: Path) -> None:
    with exclusive(tmp_path / "a" / "b" / "work"):
        assert lock_file(tmp_path / "a" / "b" / "work").is_file()
    assert not list(tmp_path.iterdir())
    with exclusive(tmp_path / "a" / "b" / "work"):
        (tmp_path / "a" / "kept").write_text("")
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "kept"]


def test_a_user_s_file_in_the_place_of_the_lock_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text("the versions that work")
    (tmp_path / "work.lock").mkdir()
    for name, error, told in (
        ("uv", UserError, r"uv\.lock is not a lock file"),
        ("work", UserError, r"work\.lock is not a lock file"),
        ("uv.lock/work", ArtifactError, r"work: cannot write: .*/uv\.lock is a file\."),
    ):
        with pytest.raises(error, match=told), exclusive(tmp_path / name):
            pass
    assert (tmp_path / "uv.lock").read_text() == "the versions that work"
    assert (tmp_path / "work.lock").is_dir()
    for left in ("", "process 1 on somewhere since 2020-01-01 00:00:00\n"):  # by a killed process
        (tmp_path / "new.lock").write_text(left)
        with exclusive(tmp_path / "new"):
            pass
