"""Files that are not what they should be: each is refused by one line that names the file, the place and the cause."""

import bz2
import gzip
import io
import json
import lzma
import pickle
import tarfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from common.errors import DataError, MissingInputError, UserError
from datamodules.formats.reading import read_joined_questions, read_passages, read_questions
from datamodules.formats.recognition import AUTO
from datamodules.formats.rewrites import REWRITE_LAYOUTS, read_rewrites
from tests.helpers.layout_rows import ROWS, as_csv, as_lines, as_list, source, without, zipped

LAYOUTS = ("jsonl", "fid", "freshqa", "hotpotqa", "musique", "twowiki")
CORPUS, FID, FRESHQA, HOTPOT, MUSIQUE, TWOWIKI = (ROWS[layout] for layout in LAYOUTS)
LINE, LIST = as_lines([HOTPOT]), as_list([HOTPOT])
INDENTED = json.dumps(HOTPOT, indent=1)
HEADER, *CELLS = as_csv([FRESHQA, FRESHQA]).split("\r\n")  # the cells of `source` hold a line break each
TABLE, FIRST = "\n".join([HEADER, *CELLS]), "\n".join([HEADER, CELLS[0]])
TABS = "id\ttitle\ttext\n"
CANARD: dict[str, Any] = {"History": ["Zappa"], "Question": "When?", "Rewrite": "When did Zappa?"}
QRECC = {"conversation": "", "question": "who?", "label": "who was it?"}
OURS = {"question": "who was it lol", "rewrite": "who"}


def tarred(content: bytes) -> bytes:
    """A tar archive of one file."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        about = tarfile.TarInfo("a.json")
        about.size = len(content)
        archive.addfile(about, io.BytesIO(content))
    return target.getvalue()


def edited(packed: bytes) -> bytes:
    """A gzip archive with another checksum."""
    return packed[:-6] + bytes([packed[-6] ^ 1]) + packed[-5:]


def office(name: str) -> bytes:
    """A file of an office program."""
    return zipped(**{"[Content_Types].xml": b"<x/>", name: b"<x/>"})


WHOLE = [  # layout, the file's content, what the line says behind the file's name
    *(("hotpotqa", content, " is empty: it holds no rows") for content in ("", " \n ", "[ ]", gzip.compress(b""))),
    ("hotpotqa", "\nversion 1", ", line 2: neither a JSON list nor JSON Lines: it starts with b'v'"),
    ("hotpotqa", LINE[:-5], " is truncated: 0 rows read"),
    ("hotpotqa", (LINE * 2)[:-25], " is truncated: 1 rows read"),
    ("hotpotqa", as_list([HOTPOT, HOTPOT])[:-3], " is truncated: 1 rows read"),
    ("hotpotqa", LIST[:-2], " is truncated: 1 rows read"),
    ("hotpotqa", INDENTED[:-9], " is truncated: 0 rows read"),
    ("hotpotqa", LINE.encode("utf-16")[:-3], " is truncated: 0 rows read"),
    ("hotpotqa", bz2.compress(LINE.encode())[:-9], " is truncated: 0 rows read"),
    ("hotpotqa", LINE + '{"_id": oops}\n', ", line 2, column 9: invalid JSON"),
    ("hotpotqa", f'[{json.dumps(HOTPOT)},\n  {{"_id": oops, "question": "a"}}]', ", line 2, column 11: invalid JSON"),
    ("hotpotqa", f"[{LINE}{LINE.strip()}]", ", line 2, column 1: invalid JSON: expecting ',' or ']' after a row"),
    ("hotpotqa", LIST + " x", ", line 2, column 2: invalid JSON: unexpected text after the end of the list"),
    ("hotpotqa", LINE.replace("\n", ",\n") * 2, f", line 1, column {len(LINE)}: invalid JSON: a comma after a row"),
    ("hotpotqa", INDENTED.replace('"level"', "level"), f", line {INDENTED.count(chr(10))}, column 2: invalid JSON"),
    *(("hotpotqa", nest, ", line 1, column ") for nest in ('{"a": ' + "[" * 200_000, "[" * 200_000)),
    ("hotpotqa", LINE.encode() + b'{"a": "\xff"}\n', ", line 2: not UTF-8: byte 0xff"),
    ("hotpotqa", b'[{"a":\n"\xe9 \xff"}]', ", line 2: not UTF-8: byte 0xe9"),
    ("hotpotqa", LINE.encode("utf-16")[:-2] + b"\x00\xd8x\x00", ", not UTF-16"),
    ("hotpotqa", as_list([HOTPOT, [1]]), ", row 2 (line 2): the row is a list, not an object"),
    ("hotpotqa", json.dumps({"version": 1, "data": [HOTPOT]}), ", line 1: "),
    ("hotpotqa", as_lines([HOTPOT, without(HOTPOT, "context")]), ", line 2: field 'context' is missing; line 1 has it"),
    ("hotpotqa", as_lines([without(HOTPOT, "context"), HOTPOT]), ", line 2: field 'context' is present; line 1 does"),
    ("hotpotqa", as_lines([without(HOTPOT, "_id")]), ", line 1: field '_id' or 'id' is missing"),
    ("freshqa", "question\nWho?\n", ", line 2: field "),
    ("freshqa", "Who?\nWhy?\n", ", line 1: no header"),
    ("hotpotqa", as_lines([MUSIQUE]), " looks like musique"),
    ("hotpotqa", as_lines([TWOWIKI]), " looks like twowiki"),
    ("hotpotqa", as_lines([CORPUS]), " looks like jsonl"),
    ("hotpotqa", as_lines([HOTPOT | {"question": None}] * 2), ": every row is left out, as line 1: field 'question'"),
    ("hotpotqa", edited(gzip.compress(LINE.encode())), " is a corrupt gzip archive after"),
    ("hotpotqa", b"BZh9" + b"0" * 99, " is a corrupt archive after 0 rows"),
    ("hotpotqa", lzma.compress(LINE.encode())[:-9] + b"012345678", " is a corrupt archive after 0 rows"),
    ("hotpotqa", zipped(a=LINE.encode())[:-9], " is a corrupt archive after 0 rows"),
    ("hotpotqa", b"\x28\xb5\x2f\xfd" + b"0" * 40, " is a Zstandard archive"),
    ("hotpotqa", tarred(LINE.encode()), " is a tar archive"),
    ("hotpotqa", gzip.compress(tarred(LINE.encode())), " is a tar archive"),
    ("hotpotqa", zipped(a=b"{}", b=b"{}"), " is a zip archive of 2 files"),
    ("hotpotqa", gzip.compress(b"PAR1" + b"0" * 40 + b"PAR1"), " is a Parquet file in an archive"),
    ("hotpotqa", b"PAR1" + b"0" * 40, " is a corrupt Parquet file"),
    ("hotpotqa", office("xl/workbook.xml"), " is an Excel workbook"),
    ("hotpotqa", office("word/document.xml"), " is an Office document"),
    ("hotpotqa", b"%PDF-1.7\n", " is a PDF file"),
    ("hotpotqa", b"SQLite format 3\x00", " is an SQLite database"),
    ("hotpotqa", b"\n<!DOCTYPE html><html>", " is an HTML page"),
    ("hotpotqa", b'<?xml version="1.0"?>', " is an XML file"),
    ("hotpotqa", pickle.dumps([HOTPOT]), " is a pickle"),
    ("hotpotqa", b"version https://git-lfs.github.com/spec/v1\noid", " is a pointer of Git LFS"),
    ("freshqa", HEADER, " is empty: it holds no rows"),
    ("freshqa", TABLE[:-9], ", line 4: the row has 12 cells, the header 20"),
    ("freshqa", TABLE.partition("https")[0], " is truncated: 0 rows read"),
    ("freshqa", f"{FIRST}\na,b", ", line 4: the row has 2 cells, the header 20"),
    ("freshqa", f'{FIRST}\n"a"b,c', ", line 4: invalid CSV"),
    ("freshqa", "a,b,a\n1,2,3", ", line 1: the header names the column 'a' twice"),
    ("freshqa", TABLE.replace("FALSE", "no", 1), ", line 2: field 'false_premise' is 'no', not TRUE or FALSE"),
    ("freshqa", TABLE.encode() + b"\xff", ", line 6: not UTF-8: byte 0xff"),
    ("freshqa", gzip.compress(TABLE.encode())[:-9], " is truncated: 0 rows read"),
    ("jsonl", f'{TABS}1\t"a\n2\tx\ty\n', ", line 2: the row has 2 cells, the header 3"),
    ("jsonl", f'{TABS}1\t"a\nb\n2\tx\ty\n', ", line 2: a quote that begins a cell is not closed in it"),
    ("jsonl", f'{TABS}1\tx\t"a\nb', " is truncated: 0 rows read"),
    ("jsonl", f'{TABS}1\t"a\nb"\n', ", line 2: the row has 2 cells, the header 3"),
    ("jsonl", f"{TABS}1\tx\tä\n".encode("utf-16")[:-1], " is truncated: 0 rows read"),
    ("freshqa", "Who wrote it?\nWho, me?\n", ", line 1: no header"),
    ("masqa", as_lines([{"Question": "Who?"}]), ", line 1: column 'Answer' is missing"),
    (AUTO, '{"_id": "5", "question": "Who?", "context": [["Tarn", ["A lake."]]]}', " is not recognized as questions"),
    (AUTO, '{"prompt": "Who?", "completion": "Ada"}', " is not recognized as questions"),
    (AUTO, '{"id": 1, "text": "A lake."}', " is not recognized as questions"),
    (AUTO, '{"question": "Q?", "gold": [["a"]]}', ", line 1: an id of field 'gold' is a list"),
    (AUTO, '{"question": "Q?", "answers": {"a": 1}}', ", line 1: an item of field 'answers|answer' is an object"),
    (AUTO, '{"question": "Q?", "passages": [7]}', ", line 1: item 1 of field 'passages' is a number"),
    (AUTO, '{"question": "Q?", "passages": [{"text": "a", "label": "maybe"}]}', ", line 1: field 'label' is \"maybe\""),
    (AUTO, 'question,gold\nQ?,"[a, b]"\n', ", line 2: field 'gold' is '[a, b]', which begins like a list"),
    (AUTO, "question,gold\nQ?,['a' ... 'b']\n", ", line 2: field 'gold' is \"['a' ... 'b']\", of which '...' stands"),
    (AUTO, '{"query": "Q?", "doc_id": "a", "label": "good"}', ", line 1: field 'label"),
    ("canard", json.dumps([CANARD | {"History": {"a": 1}}]), ", row 1 (line 1): an item of field 'history' is an obje"),
    ("canard", as_lines([CANARD | {"Rewrite": ""}]), ": every row is left out"),
    ("qrecc", json.dumps([QRECC | {"conversation": "A: x"}]), ", row 1 (line 1): field 'conversation' has the line"),
    ("qrecc", json.dumps([CANARD]), ", row 1 (line 1): "),
    ("rewrites", json.dumps([QRECC]), ", row 1 (line 1): "),
    ("rewrites", json.dumps([OURS | {"strategy": 3}]), ", row 1 (line 1): field 'strategy' is a number"),
]
GOLD = {"document": "a.pdf", "evidence": "It weighs 3 kg."}  # a gold segment
FIELDS: list[tuple[str, dict[str, Any], str]] = [  # layout, fields of the second row, what the line says of it
    ("hotpotqa", {"question": 3}, "field 'question' is a number"),
    ("hotpotqa", {"context": [["Globe"]]}, "item 1 of field 'context' is not a list of two"),
    ("hotpotqa", {"context": [["Globe", ["x", 3]]]}, "a sentence of field 'context' is a number"),
    ("hotpotqa", {"supporting_facts": [["Globe", "0"]]}, "a sentence index of field 'supporting_facts' is a string"),
    ("hotpotqa", {"context": {"title": ["Globe"], "sentences": []}}, "field 'context' has 1 'title', 0 'sentences'"),
    ("hotpotqa", {"answer": "\ud800"}, "field 'answer' contains an unpaired surrogate"),
    ("musique", {"paragraphs": [{"title": "x", "paragraph_text": "y", "is_supporting": "no"}]}, "field 'is_suppor"),
    ("musique", {"paragraphs": [{"title": "x"}]}, "field 'paragraph_text' is missing"),
    ("fid", {"answers": "x"}, "field 'answers' is a string, not a list"),
    ("fid", {"ctxs": ["x"]}, "item 1 of field 'ctxs' is a string"),
    *(("fid", {"ctxs": [FID["ctxs"][0] | {"score": score}]}, f"field 'score' is {shown}, not a finite number")
        for score, shown in (("high", '"high"'), ("", '""'), ("nan", '"nan"'), (True, "true"), ([1.5], "a list"),
            (float("inf"), "Infinity"), (10**400, "1" + 39 * "0"))),
    ("ambignq", {"annotations": [{"type": "noAnswer"}]}, "field 'type' is 'noAnswer'"),
    ("ambignq", {"annotations": [{"type": "multipleQAs", "answer": ["x"]}]}, "field 'qaPairs' is missing"),
    ("ambignq", {"annotations": {"type": ["singleAnswer"], "answer": []}}, "field 'annotations' has 1 'type', 0 'answ"),
    ("freshqa", {"false_premise": "maybe"}, "field 'false_premise' is 'maybe'"),
    ("strategyqa", {"answer": "yes"}, "field 'answer' is a string, not true or false"),
    ("masqa", {"Context": "hamlet"}, "column 'Context' does not begin with its document"),
    ("masqa", {"Context": "[desc] __ a [desc] text"}, "column 'Context' does not begin with its document"),
    ("masqa", {"Context": "[desc] hamlet [desc]\n* "}, "column 'Context' holds no text behind its headings"),
    *(("flashrag", {"metadata": {"gold_segments": [GOLD | change]}}, message) for change, message in (
        ({"evidence": ["a", 3]}, "item 2 of field 'evidence' is a number"),
        ({"kind": "video"}, "field 'kind' of a gold segment is 'video'"),
        ({"page": "four"}, "field 'page' is \"four\""))),
    ("flashrag", {"metadata": {"gold_passages": [{"title": "Tarn"}]}}, "field 'text' is missing"),
]  # fmt: skip
WHOLE += [(name, as_lines([ROWS[name], ROWS[name] | change]), f", line 2: {said}") for name, change, said in FIELDS]


def records(layout: str, file: str) -> Iterable[object]:
    """What a file of a layout is read as."""
    if layout == "jsonl":
        return read_passages(layout, [file])
    read: Callable[[str, str], Iterable[object]] = read_rewrites if layout in REWRITE_LAYOUTS else read_joined_questions
    return read(layout, file)


@pytest.mark.parametrize(("layout", "content", "said"), WHOLE, ids=[f"{row[0]}{row[2]}"[:60] for row in WHOLE])
def test_a_file_is_refused_by_its_place(layout, content, said, tmp_path) -> None:
    file = source(tmp_path, content, "file.csv" if layout == "freshqa" else "file.json")
    with pytest.raises(DataError) as caught:
        list(records(layout, file))
    assert str(caught.value).startswith(f"{file}{said}")
    assert "\n" not in str(caught.value)


HOTPOT_FILE: Callable[..., object] = partial(read_questions, "hotpotqa")
EAGER: list[tuple[Callable[[str], object], type[UserError], str]] = [  # a call on a sound file, the error, a word of it
    (lambda file: read_questions("hotpot", file), UserError, "Did you mean hotpotqa?"),
    (lambda file: read_questions("reading", file), UserError, "unknown layout 'reading'"),
    (lambda file: read_questions("jsonl", file), UserError, "is a corpus and has no questions"),
    (lambda _: read_passages("hotpotqa", []), UserError, "no source of passages"),
    (lambda file: HOTPOT_FILE(f"{file}.none"), MissingInputError, "does not exist"),
    (lambda file: read_passages("hotpotqa", [file, f"{file}.none"]), MissingInputError, "does not exist"),
    (lambda file: HOTPOT_FILE(str(Path(file).parent)), DataError, "is a folder"),
    (lambda file: read_questions("freshqa", f"{file}.none:TEST"), MissingInputError, "does not exist"),
    *((lambda _, name=name: HOTPOT_FILE(name), UserError, "names no data set and split")
        for name in ("hf:", "hf:name", "hf:name:", "hf:a:b:c:d")),
    *((lambda file, limit=limit: HOTPOT_FILE(file, limit), UserError, "give at least 1") for limit in (0, -1)),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "word"), EAGER)
def test_what_is_refused_before_any_reading(call, error, word, tmp_path) -> None:
    with pytest.raises(error) as caught:
        call(source(tmp_path, LINE))
    assert word in str(caught.value)


def test_a_split_that_the_file_lacks(tmp_path) -> None:
    file = source(tmp_path, as_csv([FRESHQA, FRESHQA | {"split": "DEV"}]), "file.csv")
    with pytest.raises(DataError, match="its splits: DEV, TEST"):
        list(read_questions("freshqa", f"{file}:test"))
    with pytest.raises(DataError, match="no row of the split 'dev'"):
        list(HOTPOT_FILE(f"{source(tmp_path, LINE)}:dev"))  # type: ignore[call-overload]
