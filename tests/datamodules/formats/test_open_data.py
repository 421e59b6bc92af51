"""What rows lie in: archives, encodings, JSON in any form and pieces, tables, Parquet, pipes, the Hub's data sets."""

import bz2
import csv
import gzip
import hashlib
import io
import json
import lzma
import os
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ArtifactError, DataError, MissingInputError, UserError
from common.files import seal, seal_of
from common.records import Passage
from datamodules.formats import json_stream as json_rows
from datamodules.formats.csv_rows import csv_rows
from datamodules.formats.open_data import content_files, rows
from datamodules.formats.reading import check_questions, read_passages, read_questions
from tests.helpers import layout_rows as sample
from tests.helpers.layout_rows import CORPUS, HOTPOT, as_lines, as_list, source, zipped

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
SEVERAL = {"lines": JSONL.decode(), "list": as_list(ROWS), "indented list": json.dumps(ROWS, indent=2)}
INDENTED = "\n".join(json.dumps(row, indent=2) for row in ROWS)
FORMS: dict[str, str | bytes] = {
    **SEVERAL,
    **{f"delimiter {delimiter}": table(delimiter) for delimiter in ",;\t|"},
    "indented objects": INDENTED,
    "objects on one line": "".join(map(json.dumps, ROWS)),
    "lines, then indented": json.dumps(ROWS[0]) + "\n" + json.dumps(ROWS[1], indent=1),
    "lines of a Mac": "\r".join(map(json.dumps, ROWS)),
    "joined files": "\ufeff".join(json.dumps(row) + "\n" for row in ROWS),
    "bz2": bz2.compress(JSONL),
    "bz2 of two": bz2.compress(JSONL[:40]) + bz2.compress(JSONL[40:]),
    "xz": lzma.compress(JSONL),
    "gz in gz": gzip.compress(gzip.compress(JSONL)),
    "zip": zipped(**{"x/": b"", "x/a.jsonl": JSONL, "__MACOSX/x/a.jsonl": b"?"}),
}
for form, text in {**SEVERAL, "tab": table("\t")}.items():
    for encoding in ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"):
        FORMS[f"{form} {encoding}"] = text.encode(encoding)
    FORMS |= {f"{form} gz": gzip.compress(text.encode()), f"{form} of Windows": text.replace("\n", "\r\n")}
    FORMS[f"{form} after a blank line"] = "\ufeff\n " + text if form != "tab" else text
TABLES = {  # which need a table's name
    "a line above": table(";", "Do not edit, ever;;\r\n"),
    "its delimiter above, as of Excel": table(";", "sep=;\r\n"),
    "a quoted line above": table(",", '"Warning: a\nb; c"\r\n'),
    "table of a Mac": table(";", end="\r"),
}


@pytest.mark.parametrize("form", [*FORMS, *TABLES])
def test_content_is_told_by_its_bytes(form, tmp_path) -> None:
    for name in ("a.csv", "a.TSV.gz", *(["a.json", "a.jsonl", "a"] if form in FORMS else [])):
        assert list(read_passages("jsonl", [source(tmp_path, (FORMS | TABLES)[form], name)])) == PASSAGES


def test_places_are_lines(tmp_path) -> None:
    for content, places in ((INDENTED, ["line 1", "line 6"]), (table(";"), ["line 2", "line 4"])):
        assert [place for place, _ in rows(source(tmp_path, content))] == places


@pytest.mark.parametrize("text", ["x" * 300_000, "\n| a | b |\n| c | d |\n" * 9000, "; a; b\n" * 9])
@pytest.mark.parametrize("last", [False, True])
def test_what_is_in_a_cell_does_not_matter(text, last) -> None:
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
def test_a_quote_that_does_not_enclose_a_cell_is_text_in_a_file_with_tabs(last, tmp_path) -> None:
    above = [f"{number}\tt\t{'word ' * 20}" for number in range(700)]  # more than a beginning
    for head in ([], above):
        lines = [f"x\tO\t{cell}" if last else f"x\t{cell}\tO" for cell in QUOTES]
        file = source(tmp_path, "\n".join(["id\ttitle\ttext", *head, *lines]) + "\n", "a.tsv")
        found = list(rows(file))[len(head) :]
        assert [row["text" if last else "title"] for _, row in found] == list(QUOTES.values())
        assert found[-1][0] == f"line {len(head) + len(QUOTES) + 3}"


def test_tables_of_one_column_and_lines_above_a_header(tmp_path) -> None:
    for name in ("a.csv", "a.tsv"):
        file = source(tmp_path, 'text\nHello, you | all; bye\n\n"a ""b"", c"\n"two\nlines"\n', name)
        assert [row["text"] for _, row in rows(file)] == ["Hello, you | all; bye", 'a "b", c', "two\nlines"]
    for above in ("Questions", "Some notes"):
        file = source(tmp_path, f"{above}\nid,question\n1,a\n2,b\n", "a.csv")
        assert next(rows(file)) == ("line 3", {"id": "1", "question": "a"})


def test_parquet(tmp_path) -> None:
    file = source(tmp_path, parquet(ROWS * 200), "a.parquet")
    assert [(place, row["id"]) for place, row in rows(file)][-1] == ("row 400", "2")
    assert list(read_passages("jsonl", [file])) == PASSAGES
    (nested,) = read_questions("hotpotqa", source(tmp_path, parquet([sample.HUB_HOTPOT])))
    assert nested.gold_passages == (sample.GLOBE, sample.HAMLET)


def test_a_pipe_is_read_again(tmp_path) -> None:
    pipe, content = tmp_path / "pipe", gzip.compress(b"\n" + as_lines([HOTPOT, HOTPOT | {"_id": 2}]).encode())
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_bytes, args=[content])
    writer.start()
    check_questions("hotpotqa", [str(pipe)])
    for _ in range(2):
        assert [question.id for question in read_questions("hotpotqa", str(pipe))] == ["h1", "2"]
    assert [place for place, _ in rows(str(pipe))] == ["line 2", "line 3"]
    (kept,) = content_files(str(pipe))
    assert kept.is_file()
    writer.join()


def test_a_file_whose_sha256_stands_beside_it_is_compared_with_it(tmp_path) -> None:
    file = tmp_path / "corpus.jsonl"
    file.write_text(as_lines([CORPUS]))
    whole, digest = file.read_bytes(), hashlib.sha256(file.read_bytes()).hexdigest()
    seal(file)
    for written in (seal_of(file).read_text(), f"{digest} *x\n", f"SHA256 (x) = {digest}\n"):  # ours, GNU's, BSD's
        seal_of(file).write_text(written)
        file.write_bytes(whole)
        assert list(read_passages("jsonl", [str(file)]))
        for place in range(0, len(whole), 7):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(ArtifactError, match=r"corpus\.jsonl is corrupt or was edited: .*type rm .*sha256\."):
                list(read_passages("jsonl", [str(file)]))
    file.write_text(as_lines([CORPUS | {"text": "edited"}]))
    seal_of(file).unlink()
    assert [passage.text for passage in read_passages("jsonl", [str(file)])] == ["edited"]


def test_line_separators_inside_strings_do_not_part_rows_and_a_limit_reads_no_further(tmp_path) -> None:
    text = json.dumps(CORPUS | {"text": "a\u2028b\u0085c"}, ensure_ascii=False)
    assert list(read_passages("jsonl", [source(tmp_path, f"\n{text}\n\n")])) == [Passage.of("Hamlet", "a b c")]
    file = source(tmp_path, as_lines([HOTPOT, HOTPOT]) + "broken")
    assert len(list(read_questions("hotpotqa", file, limit=2))) == 2


def in_pieces(text: bytes, chunk: int) -> list[tuple[str, object]]:
    """The values of a JSON list with their places, read in pieces of so many bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_rows, "CHUNK_BYTES", chunk)
        return list(json_rows.json_values(io.BufferedReader(io.BytesIO(text))))


PIECES = st.integers(1, 9)


@given(rows=st.lists(sample.JSON, max_size=5), ascii=st.booleans(), indent=st.sampled_from([None, 1]), chunk=PIECES)
def test_a_list_read_in_any_pieces_equals_json(rows, ascii, indent, chunk) -> None:
    text = json.dumps(rows, ensure_ascii=ascii, indent=indent)
    found, lines = in_pieces(text.encode(), chunk), text.split("\n")
    assert [value for _, value in found] == rows
    for number, (place, value) in enumerate(found, 1):  # each place names the line on which the row starts
        row, _, line = place.partition(" (line ")
        assert row == f"row {number}"
        assert json.dumps(value, ensure_ascii=ascii)[:1] in lines[int(line.rstrip(")")) - 1]


OBJECTS = st.lists(st.dictionaries(st.text(max_size=3), sample.JSON), min_size=1, max_size=4)


@given(rows=OBJECTS, at=st.floats(0, 1), chunk=PIECES)
def test_a_list_cut_anywhere_is_truncated(rows, at, chunk) -> None:
    """Never an error about JSON, never fewer rows in silence."""
    text = json.dumps(rows, ensure_ascii=False, indent=1).encode()
    with pytest.raises(json_rows.TruncatedError):
        in_pieces(text[: 1 + int(at * (len(text) - 2))], chunk)


FAULTS = {
    '[{"a": 1},\n {"b": "x",\n  "c": oops, "d": "something more"}]': "line 3, column 8: invalid JSON: Expecting value",
    '[{"a": 1},\n {"b": 2} {"c": 3}]': "line 2, column 11: invalid JSON: expecting ',' or ']' after a row",
    '[{"a": 1, }]': "line 1, column 11: invalid JSON: Expecting property name enclosed in double quotes",
    '[{"a": 1}, oops "something longer"]': "line 1, column 12: invalid JSON: Expecting value",
    '[{"a": 1},\n]': "line 2, column 1: invalid JSON: Expecting value",
}


@pytest.mark.parametrize("text", FAULTS)
def test_a_fault_is_placed_alike_in_any_pieces(text) -> None:
    for chunk in (*range(1, 30), 1 << 20):
        with pytest.raises(DataError) as caught:
            in_pieces(text.encode(), chunk)
        assert str(caught.value) == FAULTS[text]


@pytest.mark.parametrize("write", [as_list, as_lines, lambda rows: json.dumps(rows, indent=2)])
def test_a_gzip_cut_anywhere_is_truncated(write, tmp_path) -> None:
    written = [HOTPOT | {"_id": f"{i}", "question": str(i * 7919)} for i in range(9)]
    whole = gzip.compress(write(written).encode())
    for size in (*range(3, 30), len(whole) // 2, len(whole) - 1):
        with pytest.raises(DataError, match=r"file\.json is truncated: \d rows read\. Fetch it again\."):
            list(read_questions("hotpotqa", source(tmp_path, whole[:size])))


def test_a_hugging_face_folder(tmp_path, monkeypatch) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder, lines = tmp_path / "set", tmp_path / "lines"
    folder.mkdir()
    lines.mkdir()
    given = [sample.HUB_HOTPOT | {"id": f"h{i}"} for i in range(3)]
    datasets.Dataset.from_list(given).to_parquet(folder / "validation.parquet")
    files = "data_files: [{split: validation, path: validation.parquet}]\n"
    configs = f"- config_name: distractor\n  {files}- config_name: other\n  {files}"
    (folder / "README.md").write_text(f"---\nconfigs:\n{configs}---\n")
    name = f"hf:{folder}:distractor:validation"
    questions = list(read_questions("hotpotqa", name, limit=2))
    assert [question.id for question in questions] == ["h0", "h1"]
    assert questions[0].gold_passages == (sample.GLOBE, sample.HAMLET)
    assert list(read_passages("hotpotqa", [name])) == [sample.GLOBE, sample.LONDON, sample.HAMLET]
    source(lines, as_lines([sample.MUSIQUE, sample.MUSIQUE]), "train.jsonl")
    assert [question.kind for question in read_questions("musique", f"hf:{lines}:train")] == ["3hop1", "3hop1"]
    refused: list[tuple[str, type[UserError], str]] = [
        (f"{folder}:distractor:nosplit", UserError, r"distractor:nosplit cannot be opened as .*nosplit"),
        (f"{folder}:noconfig:train", UserError, r"noconfig:train cannot be opened as .*noconfig"),
        (f"{folder}/none:train", MissingInputError, "was not found"),
    ]
    for place, error, said in refused:
        with pytest.raises(error, match=said):
            list(read_questions("hotpotqa", f"hf:{place}"))
