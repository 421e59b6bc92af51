"""Files of many kinds: archives, encodings, tables and JSON in other forms are read; what is not read is named."""

import bz2
import csv
import gzip
import io
import json
import lzma
import os
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from common.errors import DataError
from common.records import Passage
from datamodules.formats.csv_rows import csv_rows
from datamodules.formats.mined_negatives import Mined
from datamodules.formats.open_data import content_files, rows
from datamodules.formats.reading import check_questions, read_passages, read_questions
from tests.helpers.layout_rows import HOTPOT, as_lines, as_list, source, zipped
from tests.helpers.mined_files import read_mined, write_mined

ROWS = [{"id": "1", "title": "Ode, a", "text": 'ü "x"\n; y'}, {"id": "2", "title": "Ode", "text": "b\tc | d"}]
PASSAGES = [Passage.of(row["title"], row["text"]) for row in ROWS]


def table(delimiter: str, above: str = "", end: str = "\r\n") -> str:
    target = io.StringIO()
    writer = csv.DictWriter(target, ROWS[0], delimiter=delimiter, lineterminator=end)
    writer.writeheader()
    writer.writerows(ROWS)
    return above + target.getvalue()


def parquet(rows: list[dict]) -> bytes:
    from pyarrow import BufferOutputStream, Table
    from pyarrow.parquet import write_table

    target = BufferOutputStream()
    write_table(Table.from_pylist(rows), target)
    return target.getvalue().to_pybytes()


JSONL = as_lines(ROWS).encode()
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress,
    "zip": lambda data: zipped(**{"x/": b"", "x/a.jsonl": data, "__MACOSX/x/a.jsonl": b"?"}),
    "gz in gz": lambda data: gzip.compress(gzip.compress(data)), "bz2 of two": lambda data: bz2.compress(data[:40])
    + bz2.compress(data[40:]),
}  # fmt: skip
ENCODINGS = ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be")
FORMS = {
    "lines": JSONL.decode(), "list": as_list(ROWS), "indented list": json.dumps(ROWS, indent=2),
    "indented objects": "\n".join(json.dumps(row, indent=2) for row in ROWS), "objects on one line": "".join(
    map(json.dumps, ROWS)), "lines, then indented": json.dumps(ROWS[0]) + "\n" + json.dumps(ROWS[1], indent=1),
    "lines of a Mac": "\r".join(map(json.dumps, ROWS)),
    "joined files": "\ufeff".join(json.dumps(row) + "\n" for row in ROWS),
}  # fmt: skip
TABLES = {
    **{delimiter: table(delimiter) for delimiter in ",;\t|"}, "a line above": table(";", "Do not edit, ever;;\r\n"),
    "its delimiter above, as of Excel": table(";", "sep=;\r\n"),
    "a quoted line above": table(",", '"Warning: a\nb; c"\r\n'), "lines of a Mac": table(";", end="\r"),
}  # fmt: skip


@pytest.mark.parametrize("packed", PACKED.values(), ids=PACKED)
@pytest.mark.parametrize("name", ["a.jsonl", "a"])
def test_archives(packed: Callable[[bytes], bytes], name: str, tmp_path: Path) -> None:
    assert list(read_passages("jsonl", [source(tmp_path, packed(JSONL), name)])) == PASSAGES


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    "content", [FORMS["lines"], FORMS["indented list"], TABLES["\t"]], ids=["lines", "list", "tab"]
)
def test_encodings(encoding: str, content: str, tmp_path: Path) -> None:
    assert list(read_passages("jsonl", [source(tmp_path, content.encode(encoding))])) == PASSAGES


@pytest.mark.parametrize("content", FORMS.values(), ids=FORMS)
def test_forms_of_json(content: str, tmp_path: Path) -> None:
    assert list(read_passages("jsonl", [source(tmp_path, content, "rows.csv")])) == PASSAGES


@pytest.mark.parametrize("content", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("name", ["a.csv", "a.TSV.gz", "a.txt"])
def test_tables(content: str, name: str, tmp_path: Path) -> None:
    if name == "a.txt" and content not in (table(each) for each in ",;\t|"):
        pytest.skip("a table that is not named so begins with its header")
    assert list(read_passages("jsonl", [source(tmp_path, content, name)])) == PASSAGES


def test_places_are_lines(tmp_path: Path) -> None:
    for content, places in ((FORMS["indented objects"], ["line 1", "line 6"]), (table(";"), ["line 2", "line 4"])):
        assert [place for place, _ in rows(source(tmp_path, content))] == places


@pytest.mark.parametrize(
    "text", ["x" * 300_000, "\n| a | b |\n| c | d |\n" * 9000, "; a; b\n" * 9], ids=["long", "|", ";"]
)
@pytest.mark.parametrize("last", [False, True])
def test_what_is_in_a_cell_does_not_matter(text: str, last: bool) -> None:
    target = io.StringIO()
    csv.writer(target).writerows([["id", "text"], ["1", text], *([] if last else [["2", text]])])
    found = list(csv_rows(io.BufferedReader(io.BytesIO(target.getvalue().encode()))))
    assert [row["text"] for _, row in found] == [text] * (2 - last)


QUOTES = {  # cells with tabs as they are in the file: what is read
    '"Ode" is a poem': '"Ode" is a poem', 'an "ode"': 'an "ode"', '"we could be': '"we could be', "b": "b",
    'heroes"': 'heroes"', '"a ""b"", c"': 'a "b", c', '""': None, '"two\n\nlines"': "two\n\nlines", '"a\tb"': "a\tb",
    '"""Ode"""': '"Ode"', '"Ode" and "Elegy"': '"Ode" and "Elegy"', '"a\tb\nc"': "a\tb\nc",
}  # fmt: skip


@pytest.mark.parametrize("last", [False, True])
def test_a_quote_that_does_not_enclose_a_cell_is_text_in_a_file_with_tabs(last: bool, tmp_path: Path) -> None:
    above = [f"{number}\tt\t{'word ' * 20}" for number in range(700)]  # more than a beginning
    for head in ([], above):
        lines = [f"x\tO\t{cell}" if last else f"x\t{cell}\tO" for cell in QUOTES]
        file = source(tmp_path, "\n".join(["id\ttitle\ttext", *head, *lines]) + "\n", "a.tsv")
        found = list(rows(file))[len(head) :]
        assert [row["text" if last else "title"] for _, row in found] == list(QUOTES.values())
        assert found[-1][0] == f"line {len(head) + len(QUOTES) + 3}"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('1\t"a\n2\tx\ty\n', "line 2: the row has 2 cells, the header 3"),
        ('1\t"a\nb\n2\tx\ty\n', "line 2: a quote that begins a cell is not closed in it"),
        ('1\tx\t"a\nb', "is truncated: 0 rows read"),
        ('1\t"a\nb"\n', "line 2: the row has 2 cells, the header 3"),
    ],
)
def test_faults_of_quotes_in_a_file_with_tabs(content: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=expected):
        list(rows(source(tmp_path, "id\ttitle\ttext\n" + content)))


def test_tables_of_one_column(tmp_path: Path) -> None:
    for name in ("a.csv", "a.tsv"):
        file = source(tmp_path, 'text\nHello, you | all; bye\n\n"a ""b"", c"\n"two\nlines"\n', name)
        assert [row for _, row in rows(file)] == [
            {"text": text} for text in ("Hello, you | all; bye", 'a "b", c', "two\nlines")
        ]
    for content, place in (
        ("Questions\nid,question\n1,a\n2,b\n", "line 3"),
        ("Some notes\nid,question\n1,a\n", "line 3"),
    ):
        assert next(rows(source(tmp_path, content, "a.csv"))) == (place, {"id": "1", "question": "a"})
    with pytest.raises(DataError, match="line 1: no header"):
        list(rows(source(tmp_path, "Who wrote it?\nWho, me?\n", "a.csv")))


def test_parquet(tmp_path: Path) -> None:
    file = source(tmp_path, parquet(ROWS * 200), "a.parquet")
    assert [(place, row["id"]) for place, row in rows(file)][-1] == ("row 400", "2")
    assert list(read_passages("jsonl", [file])) == PASSAGES
    nested = source(tmp_path, parquet([HOTPOT | {"context": {"title": ["Hamlet"], "sentences": [["A play."]]},
        "supporting_facts": {"title": ["Hamlet"], "sent_id": [0]}}]))  # fmt: skip
    assert [question.gold_passages for question in read_questions("hotpotqa", nested)] == [
        (Passage.of("Hamlet", "A play."),)
    ]


def test_a_cut_within_a_character_of_utf_16(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is truncated: [12] rows read"):
        list(rows(source(tmp_path, table(",").encode("utf-16")[:-1], "a.csv")))


def test_a_pipe_is_read_again(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(
        target=pipe.write_bytes, args=[gzip.compress(b"\n" + as_lines([HOTPOT, HOTPOT | {"_id": 2}]).encode())]
    )
    writer.start()
    check_questions("hotpotqa", [str(pipe)])
    for _ in range(2):
        assert [question.id for question in read_questions("hotpotqa", str(pipe))] == ["h1", "2"]
    assert [place for place, _ in rows(str(pipe))] == ["line 2", "line 3"]
    (kept,) = content_files(str(pipe))
    assert kept.is_file()
    writer.join()


def test_mined_negatives_in_an_archive(tmp_path: Path) -> None:
    mined = tmp_path / "mined.jsonl"
    write_mined(mined, [("q", Mined(PASSAGES))])
    mined.write_bytes(gzip.compress(mined.read_bytes()))
    assert read_mined([str(mined)]) == {"q": PASSAGES}
