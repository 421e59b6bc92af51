"""The cache of stored questions: found again, never stale, never half-written, made by one process."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from common.errors import ArtifactError
from common.locks import exclusive
from datamodules.cache import content_digests
from datamodules.cache import record_cache as cache
from datamodules.cache.content_digests import content_digest
from datamodules.cache.splits import Split, are_stored, split_questions
from datamodules.cache.token_cache import token_rows
from datamodules.examples.data_files import QuestionDataFile
from tests.helpers.rerag_data import fid_rows

ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder(tmp_path: Path, on_disk: None) -> Path:
    """A folder with a file of questions, which counts as large."""
    write(tmp_path, 12)
    return tmp_path


def write(folder: Path, count: int, age_seconds: float = 60) -> None:
    (folder / "fid.json").write_text(json.dumps(fid_rows(count)))
    os.utime(folder / "fid.json", (time.time() - age_seconds,) * 2)


def split(folder: Path, **options: object) -> Split:
    source = QuestionDataFile(str(folder / "fid.json"), "fid", **options)  # type: ignore[arg-type]
    return split_questions([source], [], 0.3, str(folder / "cache"))


def stores(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "cache").iterdir() if len(path.name) == 32)


def texts(found: Split) -> list[str]:
    return sorted(question.text for question in (*found.training, *found.held_out))


def test_only_what_is_large_is_stored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = (folder / "fid.json").stat().st_size
    for least, expected in ((size + 1, False), (size, True)):
        monkeypatch.setattr(content_digests, "SMALL_BYTES", least)
        assert are_stored([QuestionDataFile(str(folder / "fid.json"), "fid")], "cache") is expected
        assert not are_stored([QuestionDataFile(str(folder / "fid.json"), "fid")], None)
        assert texts(split(folder)) == sorted({row["question"] for row in fid_rows(12)})
        assert (folder / "cache").exists() is expected


def test_a_store_is_found_again_and_not_written_anew(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = texts(split(folder))
    assert "stored in" in capsys.readouterr().err
    (store,) = stores(folder)
    before = {path: path.stat().st_mtime_ns for path in store.rglob("*")}
    (folder / "fid.json").rename(folder / "renamed.json")  # the content counts
    found = split_questions([QuestionDataFile(str(folder / "renamed.json"), "fid")], [], 0.3, str(folder / "cache"))
    assert texts(found) == expected
    assert before == {path: path.stat().st_mtime_ns for path in store.rglob("*")}
    assert capsys.readouterr().err == ""


def test_another_content_limit_or_format_is_another_store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [split(folder).stores[0].name, split(folder, limit=5).stores[0].name]
    assert len(texts(split(folder, limit=5))) == 5
    write(folder, 13, age_seconds=50)
    names.append(split(folder).stores[0].name)
    assert texts(split(folder)) == sorted({row["question"] for row in fid_rows(13)})
    monkeypatch.setattr(cache, "FORMAT", 99)
    names.append(split(folder).stores[0].name)
    assert len(set(names)) == len(stores(folder)) == 4


@pytest.mark.parametrize(
    "change",
    [lambda data: data[:-9], lambda data: b"", lambda data: b"x" * len(data), lambda data: bytes(len(data)), None],
)
def test_a_damaged_store_is_made_anew(folder: Path, change: object, capsys: pytest.CaptureFixture[str]) -> None:
    expected = texts(split(folder))
    file = stores(folder)[0] / cache.RECORDS
    data = file.read_bytes()
    if change is None:
        file.unlink()
    else:
        file.write_bytes(change(data))  # type: ignore[operator]
    capsys.readouterr()
    assert texts(split(folder)) == expected
    (*lines, stored) = capsys.readouterr().err.splitlines()
    assert "stored in" in stored
    assert ["is damaged" in line and "read again" in line for line in lines] == [True] * (change is not None)
    assert file.read_bytes() == data


def test_no_changed_byte_changes_what_is_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files are read again, which is said, or the error names the folder; what no reader looks at may change."""

    def everything(found: Split) -> list[object]:
        kept = found.stores[0].derived({"seed": 1}, lambda: {"a": np.arange(30)})["a"].tolist()
        return [kept, *((each.id, each.text, each.answers, each.passages) for each in found.training)]

    expected = everything(split(folder))
    (store,) = stores(folder)
    chance = random.Random(0)
    for file in [*(path for path in store.rglob("*") if path.is_file())]:
        data = file.read_bytes()
        for place in chance.sample(range(len(data)), 12):
            changed = bytes([data[place] ^ 1 << chance.randrange(8)])
            file.write_bytes(data[:place] + changed + data[place + 1 :])
            capsys.readouterr()
            found, named = expected, str(store)
            try:
                found = everything(split(folder))
            except ArtifactError as error:
                named = str(error)
            assert found == expected, (file.name, place)
            assert str(store) in named
            if file.read_bytes() == data:  # made anew
                assert "is damaged" in capsys.readouterr().err
            file.write_bytes(data)


def test_changed_token_ids_are_named_or_made_anew(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, texts_of = split(folder).stores[0], ["a bcd", "", "ef", "g"]

    def ids() -> list[list[int]]:
        found = token_rows(store, {}, texts_of, 4, lambda texts: [list(map(ord, text)) for text in texts], 256)
        return [found[row] for row in range(4)]

    expected = ids()
    (file,) = (store.folder / "derived").iterdir()  # type: ignore[operator]
    data = file.read_bytes()
    for place in range(len(data)):
        file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        capsys.readouterr()
        found, said = None, ""
        try:
            found, said = ids(), capsys.readouterr().err
        except ArtifactError as error:
            said = str(error)
        assert found in (None, expected), place
        assert "is damaged" in said, place
        file.write_bytes(data)


def test_what_is_derived_is_computed_once_for_each_key(folder: Path) -> None:
    calls: list[int] = []

    def compute() -> dict[str, np.ndarray]:
        calls.append(1)
        return {"a": np.arange(3), "b": np.array([2.5])}

    for _ in range(2):
        found = split(folder).stores[0].derived({"seed": 1}, compute)
        assert found["a"].tolist() == [0, 1, 2]
        assert found["b"].tolist() == [2.5]
    assert len(calls) == 1
    store = split(folder).stores[0]
    store.derived({"seed": 2}, compute)
    assert len(calls) == 2
    (damaged, *_) = (store.folder / "derived").iterdir()  # type: ignore[operator]
    damaged.write_bytes(damaged.read_bytes()[:20])
    for seed in (1, 2):
        assert store.derived({"seed": seed}, compute)["a"].tolist() == [0, 1, 2]
    assert len(calls) == 3


def test_two_processes_make_one_store(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that comes while another one writes waits, says so, and reads what that one wrote."""
    path = folder / "cache" / split(folder).stores[0].name
    code = (
        "import sys; from datamodules.cache import content_digests; content_digests.SMALL_BYTES = 0\n"
        "from datamodules.examples.data_files import QuestionDataFile; from datamodules.cache.splits import "
        "split_questions\n"
        "print('ready', flush=True)\n"
        "found = split_questions([QuestionDataFile(sys.argv[1], 'fid')], [], 0.3, sys.argv[2]); "
        "print(len(found.training) + len(found.held_out))"
    )
    (path / cache.RECORDS).unlink()
    expected = len(texts(split_questions([QuestionDataFile(str(folder / "fid.json"), "fid")], [], 0.3)))
    with exclusive(path):
        other = subprocess.Popen(
            [sys.executable, "-c", code, str(folder / "fid.json"), str(folder / "cache")],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(1.0)
    out, err = other.communicate(timeout=60)
    assert out.strip() == str(expected)
    assert "waiting for another process" in err


def test_a_full_disk_leaves_nothing_and_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.RecordWriter, "add", full)
    with pytest.raises(ArtifactError, match="No space left"):
        split(folder)
    assert not [*stores(folder)[0].iterdir()]


@pytest.mark.usefixtures("on_disk")
def test_a_digest_is_remembered_until_the_file_changes(tmp_path: Path) -> None:
    file, kept = tmp_path / "file", tmp_path / "cache" / "digests"
    file.write_bytes(b"one")
    old = time.time() - 100
    os.utime(file, (old, old))
    first = content_digest(file, str(tmp_path / "cache"))
    file.write_bytes(b"two")  # the same size
    os.utime(file, (old, old))  # and time: nothing shows the change
    assert content_digest(file, str(tmp_path / "cache")) == first
    assert content_digest(file, None) != first
    os.utime(file, (old, old + 1))
    assert content_digest(file, str(tmp_path / "cache")) == content_digest(file, None) != first
    assert len(list(kept.iterdir())) == 1
    fresh = tmp_path / "fresh"
    fresh.write_bytes(b"just written")
    content_digest(fresh, str(tmp_path / "cache"))  # may change again within a tick of the clock
    assert len(list(kept.iterdir())) == 1
    (next(kept.iterdir())).write_text("[]")
    assert content_digest(file, str(tmp_path / "cache")) == content_digest(file, None)
