"""The cache of stored records: they come back as written, are found again, never stale, and go when unused."""

import json
import os
import random
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ArtifactError
from common.locks import exclusive
from common.records import Gold, GoldSegment, Passage, Question, Source
from datamodules.cache import content_digests
from datamodules.cache import record_cache as cache
from datamodules.cache.checked_rows import CheckedRows, RowWriter, rows_in_memory, write_rows
from datamodules.cache.content_digests import content_digest
from datamodules.cache.question_lookup import stored_mined
from datamodules.cache.questions import CachedQuestions, write_questions
from datamodules.cache.record_cache import RECORDS, stored
from datamodules.cache.records import Records, RecordWriter
from datamodules.cache.splits import Split, are_stored, split_questions
from datamodules.cache.token_cache import token_rows
from datamodules.examples.data_files import QuestionDataFile, distinct_questions
from datamodules.formats.mined_negatives import Mined
from tests.helpers.mined_files import read_mined, write_mined
from tests.helpers.rerag_data import fid_rows

TEXT = st.text(max_size=6)  # any characters but surrogates, which no file has
JSON = st.dictionaries(TEXT, st.one_of(TEXT, st.integers(), st.lists(TEXT, max_size=2)), max_size=2)
FEW = {"max_size": 3}
PASSAGE = st.builds(Passage, TEXT, TEXT, TEXT, TEXT, TEXT, st.none() | JSON, TEXT)
TEXTS = st.lists(TEXT, **FEW).map(tuple)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
SEGMENT = st.builds(GoldSegment, TEXT, TEXTS, TEXT, TEXTS, st.none() | st.integers())
GOLD = st.builds(
    Gold, TEXTS, TEXTS, st.lists(SEGMENT, **FEW).map(tuple), st.lists(st.tuples(TEXT, NUMBERS), **FEW).map(tuple)
)
QUESTION = st.builds(
    Question, TEXT, TEXT, TEXTS, st.lists(PASSAGE, **FEW).map(tuple), TEXTS, TEXT,
    st.lists(st.none() | NUMBERS, **FEW).map(tuple), TEXTS, GOLD, st.builds(Source, TEXT, st.booleans(), TEXTS),
)  # fmt: skip


def written(questions: Iterable[Question]) -> Callable[[RowWriter], None]:
    def write(rows: RowWriter) -> None:
        writer = RecordWriter(rows)
        write_questions(writer, iter(questions), "writing")
        writer.finish([1, "note"])

    return write


def everything(question: Question) -> tuple[object, ...]:
    """All fields, also those that do not count when questions are compared."""
    return question, [(p, p.corpus_id, p.metadata, p.indexed) for p in question.passages]


@given(questions=st.lists(QUESTION, max_size=4))
def test_questions_come_back_as_they_were(questions) -> None:
    records = Records(rows_in_memory(written(questions)))
    assert records.note == [1, "note"]
    found = CachedQuestions(records)
    assert [everything(one) for one in found] == [everything(one) for one in questions]
    assert [(q.id, q.text, q.answers, q.kind) for q in found.without_passages()] == [
        (q.id, q.text, q.answers, q.kind) for q in questions
    ]
    backwards = found.select(range(len(found))[::-1])
    assert list(backwards) == questions[::-1]
    assert list(backwards.without_passages()) == list(found.without_passages())[::-1]
    assert list(found[1:]) == questions[1:]


def test_thousands_of_records_are_found_by_their_place(tmp_path) -> None:
    numbered = (Question(str(n), f"q{n}", passages=(Passage.of("t", f"p{n}"),) * (n % 3)) for n in range(9000))
    write_rows(tmp_path / "file", written(numbered))
    found = CachedQuestions(Records(CheckedRows(tmp_path / "file")))
    for place in (0, 4095, 4096, 8999, -1):
        assert (found[place].text, len(found[place].passages)) == (f"q{place % 9000}", place % 9000 % 3)
    with pytest.raises(IndexError):
        found[9000]


@pytest.mark.usefixtures("large")
def test_mined_passages_are_those_of_the_files(tmp_path) -> None:
    one, two, three = (Passage.of(f"t{n}", f"text {n} é") for n in range(3))
    files = [str(tmp_path / name) for name in ("a.jsonl", "b.jsonl")]
    write_mined(Path(files[0]), [("x", Mined([one], {"d": [one.id, one.id]})), ("y", Mined()), ("x", Mined([two]))])
    write_mined(Path(files[1]), [("x", Mined([three, one], {"d": [three.id, one.id], "e": [two.id]}))])
    for _ in range(2):
        found, expected = stored_mined(files, str(tmp_path / "cache")), read_mined(files)
        assert {key: (list(each), each.hits) for key, each in found.items()} == {
            key: (list(each), each.hits) for key, each in expected.items()
        }
        assert len(found) == 2
        assert "z" not in found
    assert not dict(stored_mined([], str(tmp_path / "cache")))


@pytest.mark.usefixtures("on_disk")
def test_a_hub_data_set_is_stored_by_its_content(tmp_path, monkeypatch) -> None:
    datasets = pytest.importorskip("datasets")
    rows = [{"id": str(n), "question": f"q {n}", "golden_answers": ["a"]} for n in range(6)]
    (tmp_path / "set").mkdir()
    datasets.Dataset.from_list(rows).to_json(tmp_path / "set" / "train.jsonl")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hub")
    source = QuestionDataFile(f"hf:{tmp_path / 'set'}:train", "flashrag")
    names = []
    for _ in range(2):
        split = split_questions([source], [], 0.5, str(tmp_path / "cache"))
        assert sorted(q.id for q in (*split.training, *split.held_out)) == [q.id for q in distinct_questions([source])]
        names.append(split.stores[0].name)
    assert names[0] == names[1]
    assert (tmp_path / "cache" / names[0]).is_dir()


def test_a_row_that_takes_several_reads_is_whole(tmp_path, monkeypatch) -> None:
    """One call of the system reads 2 GiB at most, here 5 bytes."""
    file, read = tmp_path / "file", os.pread
    write_rows(file, lambda rows: rows.add(bytes(range(23))))
    monkeypatch.setattr(os, "pread", lambda descriptor, size, start: read(descriptor, min(size, 5), start))
    assert CheckedRows(file)[0] == bytes(range(23))
    os.truncate(file, file.stat().st_size - 1)
    with pytest.raises(ArtifactError, match="not whole"):
        CheckedRows(file)


FORK = get_context("fork")


@pytest.fixture
def folder(tmp_path: Path, on_disk: None) -> Path:
    """A folder in which every file counts as large, with one of questions."""
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


def test_only_what_is_large_is_stored(folder, monkeypatch) -> None:
    size = (folder / "fid.json").stat().st_size
    for least, expected in ((size + 1, False), (size, True)):
        monkeypatch.setattr(content_digests, "SMALL_BYTES", least)
        assert are_stored([QuestionDataFile(str(folder / "fid.json"), "fid")], "cache") is expected
        assert not are_stored([QuestionDataFile(str(folder / "fid.json"), "fid")], None)
        assert texts(split(folder)) == sorted({row["question"] for row in fid_rows(12)})
        assert (folder / "cache").exists() is expected


def test_a_store_is_found_again_and_not_written_anew(folder, capsys) -> None:
    expected = texts(split(folder))
    assert "stored in" in capsys.readouterr().err
    (store,) = stores(folder)
    before = {path: path.stat().st_mtime_ns for path in store.rglob("*")}
    (folder / "fid.json").rename(folder / "renamed.json")  # the content counts
    found = split_questions([QuestionDataFile(str(folder / "renamed.json"), "fid")], [], 0.3, str(folder / "cache"))
    assert texts(found) == expected
    assert before == {path: path.stat().st_mtime_ns for path in store.rglob("*")}
    assert capsys.readouterr().err == ""


def test_another_content_limit_or_format_is_another_store(folder, monkeypatch) -> None:
    names = [split(folder).stores[0].name, split(folder, limit=5).stores[0].name]
    assert len(texts(split(folder, limit=5))) == 5
    write(folder, 13, age_seconds=50)
    assert texts(split(folder)) == sorted({row["question"] for row in fid_rows(13)})
    names.append(split(folder).stores[0].name)
    monkeypatch.setattr(cache, "FORMAT", 99)
    names.append(split(folder).stores[0].name)
    assert len(set(names)) == len(stores(folder)) == 4


def test_a_damaged_store_is_made_anew(folder, capsys) -> None:
    expected = texts(split(folder))
    file = stores(folder)[0] / RECORDS
    data = file.read_bytes()
    for damaged in (data[:-9], b"", b"x" * len(data), bytes(len(data)), None):
        file.unlink() if damaged is None else file.write_bytes(damaged)
        capsys.readouterr()
        assert texts(split(folder)) == expected
        (*lines, stored) = capsys.readouterr().err.splitlines()
        assert "stored in" in stored
        assert ["is damaged" in line and "read again" in line for line in lines] == [True] * (damaged is not None)
        assert file.read_bytes() == data


def test_no_changed_byte_changes_what_is_read(folder, capsys) -> None:
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


def test_changed_token_ids_are_named_or_made_anew(folder, capsys) -> None:
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


def test_what_is_derived_is_computed_once_for_each_key(folder) -> None:
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


def test_two_processes_make_one_store(folder, capfd) -> None:
    """One that comes while another one writes waits, says so, and reads what that one wrote."""
    expected, path = texts(split(folder)), stores(folder)[0]
    (path / RECORDS).unlink()
    with ProcessPoolExecutor(1, FORK) as other:
        assert other.submit(len, ()).result() == 0
        with exclusive(path):
            found = other.submit(questions_of, folder)
            with pytest.raises(TimeoutError):
                found.result(1.0)
        assert found.result(60) == expected
    assert "waiting for another process" in capfd.readouterr().err


def test_a_full_disk_leaves_nothing_and_one_line(folder, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.RecordWriter, "add", full)
    with pytest.raises(ArtifactError, match="No space left"):
        split(folder)
    assert not [*stores(folder)[0].iterdir()]


@pytest.mark.usefixtures("on_disk")
def test_a_digest_is_remembered_until_the_file_changes(tmp_path) -> None:
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


DAY = 86400
READ: list[Records] = []  # by another process


def opened(file: Path) -> None:
    READ.append(Records(CheckedRows(file)))


def text_read() -> str:
    return READ[0].body(0)[0][0].text


def questions_of(folder: Path) -> list[str]:
    return texts(split(folder))


def store(folder: Path, content: str) -> Path:
    """The folder of a store of one file."""

    def write(writer: RecordWriter) -> None:
        writer.add("key", [Passage.of("", content)], {})

    (folder / "file").write_text(content)
    found = stored(str(folder / "cache"), [folder / "file"], {}, write, "records")
    assert found.folder is not None
    return found.folder


def age(path: Path, days: float) -> None:
    os.utime(path, (time.time() - days * DAY,) * 2)


def test_an_unused_store_is_removed_when_another_is_written(folder, capsys) -> None:
    old, recent, earlier = store(folder, "old"), store(folder, "recent"), folder / "cache" / ("d" * 32)
    (old / "derived").mkdir()
    (old / "derived" / "tokens").write_bytes(bytes(5 << 20))
    earlier.mkdir()
    (earlier / "records.arrow").write_bytes(b"of release 0.2")
    kept = [folder / "cache" / name for name in ("notes", "f" * 31, "0123456789abcdef0123456789abcdeg", "e" * 32)]
    for each in kept:  # no stores: by their names, or by what is in them
        each.mkdir()
        (each / ("about.json" if each.name == "e" * 32 else RECORDS)).write_text("{}")
    for each, days in ((old, 31), (recent, 29), *((each, 400) for each in kept)):
        age(each, days)
    assert store(folder, "recent") == recent  # nothing is written, nothing removed
    assert old.exists()
    new = store(folder, "new")
    assert {path for path in (folder / "cache").iterdir() if path.name != "digests"} == {recent, new, earlier, *kept}
    said = capsys.readouterr().err
    assert f"{old}: removed, since no start has opened it for 30 days (5.0 MiB)." in said.splitlines()
    assert "stores of another version" in said
    age(earlier, 31)
    store(folder, "newer")
    assert not earlier.exists()


@pytest.mark.parametrize("why", ["has been opened since", "is being written"])
def test_an_old_store_stays(why, folder) -> None:
    old = store(folder, "old")
    age(old, 31)
    if why == "has been opened since":
        assert store(folder, "old") == old
    with exclusive(old) if why == "is being written" else nullcontext():
        store(folder, "new")
    assert old.exists()


def test_a_store_that_another_process_reads_stays(folder) -> None:
    old = store(folder, "old")
    with ProcessPoolExecutor(1, FORK) as other:
        other.submit(opened, old / RECORDS).result()
        age(old, 400)  # a long run
        store(folder, "new")
        assert old.exists()
        assert other.submit(text_read).result() == "old"
    store(folder, "newer")
    assert not old.exists()
