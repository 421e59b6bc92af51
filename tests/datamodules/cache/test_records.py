"""Stored records give back what was written, whatever is in them."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ArtifactError
from common.records import Gold, GoldSegment, Passage, Question, Source
from datamodules.cache.checked_rows import CheckedRows, RowWriter, rows_in_memory, write_rows
from datamodules.cache.question_lookup import stored_mined
from datamodules.cache.questions import CachedQuestions, write_questions
from datamodules.cache.records import Records, RecordWriter
from datamodules.cache.splits import split_questions
from datamodules.examples.data_files import QuestionDataFile, distinct_questions
from datamodules.formats.mined_negatives import Mined
from tests.helpers.mined_files import read_mined, write_mined

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
def test_questions_come_back_as_they_were(questions: list[Question]) -> None:
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


def test_thousands_of_records_are_found_by_their_place(tmp_path: Path) -> None:
    numbered = (Question(str(n), f"q{n}", passages=(Passage.of("t", f"p{n}"),) * (n % 3)) for n in range(9000))
    write_rows(tmp_path / "file", written(numbered))
    found = CachedQuestions(Records(CheckedRows(tmp_path / "file")))
    for place in (0, 4095, 4096, 8999, -1):
        assert (found[place].text, len(found[place].passages)) == (f"q{place % 9000}", place % 9000 % 3)
    with pytest.raises(IndexError):
        found[9000]


@pytest.mark.usefixtures("large")
def test_mined_passages_are_those_of_the_files(tmp_path: Path) -> None:
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
def test_a_hub_data_set_is_stored_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_row_that_takes_several_reads_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One call of the system reads 2 GiB at most, here 5 bytes."""
    file, read = tmp_path / "file", os.pread
    write_rows(file, lambda rows: rows.add(bytes(range(23))))
    monkeypatch.setattr(os, "pread", lambda descriptor, size, start: read(descriptor, min(size, 5), start))
    assert CheckedRows(file)[0] == bytes(range(23))
    os.truncate(file, file.stat().st_size - 1)
    with pytest.raises(ArtifactError, match="not whole"):
        CheckedRows(file)
