"""Durable files: whole or absent whatever fails, and manifests that find every fault."""

import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file as save_weights

from common import files
from common.errors import ArtifactError, MissingInputError
from harness.runtime.store import Store

ROOT = Path(__file__).parents[2]


# --- whole or absent, under injected faults


class Disk:
    """Counts every write, fsync, mkdir and rename of `files`, and raises an error in place of the n-th."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, error: BaseException) -> None:
        self.calls, self.failed, self.at, self.error = 0, "", at, error
        for owner, name in ((os, "fsync"), (os, "replace"), (os, "mkdir"), (Path, "write_text")):
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, call: Callable) -> Callable:
        def counted(*args: object, **kwargs: object) -> object:
            self.calls += 1
            if self.calls == self.at:
                self.failed = call.__name__
                raise self.error
            return call(*args, **kwargs)

        return counted


FULL, CTRL_C = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt("Ctrl-C")


def save_file(path: Path, value: str) -> None:
    files.write_json(path, {"value": value})


def save_folder(path: Path, value: str) -> None:
    with files.whole_folder(path) as folder:
        (folder / "part").mkdir()
        (folder / "part" / "a").write_text(value)
        (folder / "b").write_text(value)


def load_file(path: Path) -> set[str]:
    return {files.read_json(path, "cure")["value"]}


def load_folder(path: Path) -> set[str]:
    assert sorted(files.digests(path)) == ["b", "part/a"]
    return {(path / "part" / "a").read_text(), (path / "b").read_text()}


@pytest.mark.parametrize(("save", "load"), [(save_file, load_file), (save_folder, load_folder)])
@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("error", [FULL, CTRL_C])
def test_a_failure_at_every_step(save, load, error: BaseException, old: bool, tmp_path, monkeypatch) -> None:
    """A full disk is one line; Ctrl-C is no OSError: it passes through unchanged, and still leaves old or new."""
    target = tmp_path / "target"
    full = f"{target}: cannot write: No space left on device. Free space or choose another folder."
    for step in range(1, 100):
        shutil.rmtree(target, ignore_errors=True)
        target.unlink(missing_ok=True)
        if old:
            save(target, "old")
        with monkeypatch.context() as patch:
            disk, refusal = Disk(patch, step, error), ""
            try:
                save(target, "new")
            except (ArtifactError, KeyboardInterrupt) as raised:
                refusal = str(raised)
        assert [path.name for path in tmp_path.iterdir() if path != target] == [], f"left behind at step {step}"
        assert refusal in ("", full if error is FULL else "Ctrl-C")
        found = load(target) if target.exists() else set()
        if not refusal:
            assert found == {"new"}
        elif disk.failed != "fsync":
            assert found == ({"old"} if old else set())
        else:  # the last one makes the rename durable: when it fails, the new is in place already
            assert found in ({"new"}, {"old"} if old else set())
        if disk.calls < step:
            break
    assert step > 3, "the injection did not bite"


SAVE_AND_DIE = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from common import files
left = int(sys.argv[2])
def deadly(call):
    def counted(*args, **kwargs):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **kwargs)
    return counted
os.fsync, os.replace, os.mkdir, os.rmdir = map(deadly, (os.fsync, os.replace, os.mkdir, os.rmdir))
with files.whole_folder(Path(sys.argv[3])) as folder:
    (folder / "part").mkdir()
    (folder / "part" / "a").write_text("new")
    (folder / "b").write_text("new")
"""


def test_kill_9_at_every_step_of_a_folder(tmp_path: Path) -> None:
    """A process is killed at each of its steps; the next writer finds old or new, whole, and clears up."""
    target = tmp_path / "target"
    kills = 0
    for step in range(1, 100):
        save_folder(target, "old")
        run = subprocess.run([sys.executable, "-I", "-c", SAVE_AND_DIE, str(ROOT), str(step), str(target)])
        if target.exists():
            assert load_folder(target) in ({"old"}, {"new"})
        files._remove_leftovers(target)  # what the next writer begins with
        assert [path.name for path in tmp_path.iterdir()] == ["target"]
        assert load_folder(target) in ({"old"}, {"new"})
        if run.returncode == 0:
            assert load_folder(target) == {"new"}
            break
        assert run.returncode == -signal.SIGKILL
        kills += 1
    assert kills > 8, "the injection did not bite"


def test_the_next_writer_spares_a_live_one(tmp_path: Path) -> None:
    live = tmp_path / f"{files.TEMPORARY}{os.getppid()}-target"
    dead = tmp_path / f"{files.TEMPORARY}{2**22 + 1}-target"  # above Linux's greatest process number
    namesake = tmp_path / f"{files.TEMPORARY}{os.getpid()}-target"  # a container numbers its processes alike
    other = tmp_path / f"{files.TEMPORARY}{2**22 + 1}-another-target"
    for leftover in (live, dead, namesake, other):
        leftover.write_text("half")
    files.write_text(tmp_path / "target", "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([live.name, other.name, "target"])


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc to see what is synced")
def test_all_of_a_folder_is_durable_before_it_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events, fsync, replace = list[str](), os.fsync, os.replace
    names = lambda descriptor: os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))  # noqa: E731
    monkeypatch.setattr(os, "fsync", lambda descriptor: events.append(names(descriptor)) or fsync(descriptor))
    monkeypatch.setattr(os, "replace", lambda *paths: events.append("rename") or replace(*paths))
    save_folder(tmp_path / "target", "new")
    assert sorted(events[:4]) == sorted(["a", "b", "part", f"{files.TEMPORARY}{os.getpid()}-target"])
    assert events[4:] == ["rename", tmp_path.name]


@pytest.mark.parametrize(("umask", "file_mode"), [(0o022, 0o644), (0o002, 0o664), (0o077, 0o600)])
def test_files_of_a_folder_have_the_rights_of_the_umask(umask: int, file_mode: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        with files.whole_folder(tmp_path / "made") as folder:
            (folder / "part").mkdir()
            save_weights({"w": torch.zeros(1)}, folder / "part/model.safetensors")
            (folder / "notes").write_text("")
        with Store(tmp_path / "replies.sqlite", "asked again") as store:
            store.store("key", 1)
    finally:
        os.umask(before)
    made = [tmp_path / name for name in ("made/part/model.safetensors", "made/notes", "replies.sqlite")]
    assert [stat.S_IMODE(file.stat().st_mode) for file in made] == [file_mode] * 3


# --- manifests


def test_manifests_and_read_json_name_the_cure(tmp_path: Path) -> None:
    save_folder(tmp_path, "value")
    manifest, file = files.digests(tmp_path), tmp_path / "part/a"
    files.verify(tmp_path, manifest, "Export again.")
    for damage, told in ((lambda: file.write_text("valuf"), "is corrupt"), (file.unlink, "is missing")):
        damage()
        with pytest.raises(ArtifactError, match=rf"part/a {told}.*Export again\."):
            files.verify(tmp_path, manifest, "Export again.")
    with pytest.raises(MissingInputError, match=r"does not exist\. Train first\."):
        files.read_json(tmp_path / "none.json", "Train first.")
    for content in (b"{", b"[1]", b"\xff"):
        file.write_bytes(content)
        with pytest.raises(ArtifactError, match=r"part/a .*Train first\."):
            files.read_json(file, "Train first.")


def test_an_error_about_another_file_is_not_taken_for_a_failed_write(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="model"), files.whole_folder(tmp_path / "out"):
        (tmp_path / "model").read_bytes()
    assert not list(tmp_path.iterdir())
    with pytest.raises(ArtifactError, match="cannot write"), files.whole_folder(tmp_path / "out") as folder:
        (folder / "missing" / "report.md").write_text("x")
