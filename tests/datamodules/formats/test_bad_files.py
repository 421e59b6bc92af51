"""One clear line for every file that is not what it should be."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError, MissingInputError, UserError
from datamodules.formats.reading import read_passages, read_questions
from datamodules.formats.recognition import layouts, question_layouts
from tests.helpers.layout_rows import (
    CORPUS,
    FID,
    FRESHQA,
    HOTPOT,
    JSON,
    MUSIQUE,
    OWN,
    ROWS,
    TWOWIKI,
    as_csv,
    as_lines,
    as_list,
    source,
    without,
)

BAD = "Correct that row or fetch the file again."
FETCH = "Correct it or fetch the file again."


@pytest.mark.parametrize(
    ("layout", "content", "expected"),
    [
        ("hotpotqa", "", "{} is empty: it holds no rows. Fetch it again."),
        ("hotpotqa", " \n ", "{} is empty: it holds no rows. Fetch it again."),
        ("hotpotqa", "[ ]", "{} is empty: it holds no rows. Fetch it again."),
        ("hotpotqa", gzip.compress(b"", mtime=0), "{} is empty: it holds no rows. Fetch it again."),
        ("hotpotqa", "\nversion 1", f"{{}}, line 2: neither a JSON list nor JSON Lines: it starts with b'v'. {FETCH}"),
        ("hotpotqa", as_lines([HOTPOT])[:-5], "{} is truncated: 0 rows read. Fetch it again."),
        ("hotpotqa", as_lines([HOTPOT, HOTPOT])[:-25], "{} is truncated: 1 rows read. Fetch it again."),
        ("hotpotqa", as_list([HOTPOT, HOTPOT])[:-3], "{} is truncated: 1 rows read. Fetch it again."),
        ("hotpotqa", as_list([HOTPOT])[:-2], "{} is truncated: 1 rows read. Fetch it again."),
        ("hotpotqa", as_lines([HOTPOT]) + '{"_id": oops}\n',
            f"{{}}, line 2, column 9: invalid JSON: Expecting value. {FETCH}"),
        ("hotpotqa", "[" + json.dumps(HOTPOT) + ',\n  {"_id": oops, "question": "a question"}]',
            f"{{}}, line 2, column 11: invalid JSON: Expecting value. {FETCH}"),
        ("hotpotqa", "[" + json.dumps(HOTPOT) + "\n" + json.dumps(HOTPOT) + "]",
            f"{{}}, line 2, column 1: invalid JSON: expecting ',' or ']' after a row. {FETCH}",),
        ("hotpotqa", as_list([HOTPOT]) + " x",
            f"{{}}, line 2, column 2: invalid JSON: unexpected text after the end of the list. {FETCH}"),
        ("hotpotqa", as_lines([HOTPOT]).encode() + b'{"a": "\xff"}\n', f"{{}}, line 2: not UTF-8: byte 0xff. {FETCH}"),
        ("hotpotqa", b'[{"a":\n"\xe9 \xff"}]', f"{{}}, line 2: not UTF-8: byte 0xe9. {FETCH}"),
        ("hotpotqa", as_list([HOTPOT, [1]]), f"{{}}, row 2 (line 2): the row is a list, not an object. {FETCH}"),
        ("hotpotqa", as_lines([HOTPOT, without(HOTPOT, "context")]),
            f"{{}}, line 2: field 'context' is missing; line 1 has it. {BAD}"),
        ("hotpotqa", as_lines([without(HOTPOT, "context"), HOTPOT]),
            f"{{}}, line 2: field 'context' is present; line 1 does not have it. {BAD}"),
        ("hotpotqa", as_lines([without(HOTPOT, "_id")]),
            "{}, line 1: field '_id' or 'id' is missing; every hotpotqa row has it. Is this a hotpotqa file? Known "
            "layouts: ambignq, corpus_questions, fid, flashrag, freshqa, hotpotqa, ircot, jsonl, judgements, masqa, "
            "musique, questions, strategyqa, twowiki."),
        ("hotpotqa", as_lines([MUSIQUE]), "{} looks like musique: use layout musique instead of hotpotqa."),
        ("hotpotqa", as_lines([TWOWIKI]), "{} looks like twowiki: use layout twowiki instead of hotpotqa."),
        ("hotpotqa", as_lines([CORPUS]), "{} looks like jsonl: use layout jsonl instead of hotpotqa."),
    ],
)  # fmt: skip
def test_bad_files(layout: str, content: str | bytes, expected: str, tmp_path: Path) -> None:
    file = source(tmp_path, content)
    with pytest.raises(DataError) as caught:
        list(read_questions(layout, file))
    assert str(caught.value) == expected.replace("{}", file)


GOLD = {"document": "a.pdf", "evidence": "It weighs 3 kg."}  # a gold segment


@pytest.mark.parametrize(
    ("layout", "change", "message"),
    [
        ("hotpotqa", {"question": 3}, "field 'question' is a number, not a string"),
        ("hotpotqa", {"context": [["Globe"]]}, "item 1 of field 'context' is not a list of two, [title, sentences]"),
        ("hotpotqa", {"context": [["Globe", ["x", 3]]]}, "a sentence of field 'context' is a number, not a string"),
        ("hotpotqa", {"supporting_facts": [["Globe", "0"]]},
            "a sentence index of field 'supporting_facts' is a string, not a number"),
        ("hotpotqa", {"context": {"title": ["Globe"], "sentences": []}},
            "field 'context' has 1 'title' but 0 'sentences'"),
        ("hotpotqa", {"answer": "\ud800"}, "field 'answer' contains an unpaired surrogate ('\\ud800')"),
        ("musique", {"paragraphs": [{"title": "x", "paragraph_text": "y", "is_supporting": "no"}]},
            "field 'is_supporting' is a string, not true or false"),
        ("musique", {"paragraphs": [{"title": "x"}]}, "field 'paragraph_text' is missing"),
        ("fid", {"answers": "x"}, "field 'answers' is a string, not a list"),
        ("fid", {"ctxs": ["x"]}, "item 1 of field 'ctxs' is a string, not an object"),
        *(("fid", {"ctxs": [FID["ctxs"][0] | {"score": score}]}, f"field 'score' is {shown}, not a finite number")
            for score, shown in (("high", '"high"'), ("", '""'), ("nan", '"nan"'), (True, "true"), ([1.5], "a list"),
                (float("inf"), "Infinity"), (10**400, "1" + 39 * "0"))),
        ("ambignq", {"annotations": [{"type": "noAnswer"}]},
            "field 'type' is 'noAnswer', not singleAnswer or multipleQAs"),
        ("ambignq", {"annotations": [{"type": "multipleQAs", "answer": ["x"]}]}, "field 'qaPairs' is missing"),
        ("ambignq", {"annotations": {"type": ["singleAnswer"], "answer": []}},
            "field 'annotations' has 1 'type', 0 'answer'"),
        ("freshqa", {"false_premise": "maybe"}, "field 'false_premise' is 'maybe', not TRUE or FALSE"),
        ("strategyqa", {"answer": "yes"}, "field 'answer' is a string, not true or false"),
        *(("masqa", {"Context": context}, "column 'Context' does not begin with its document: [desc] document __ "
            "heading [desc]") for context in ("hamlet", "[desc] __ a [desc] text")),
        ("masqa", {"Context": "[desc] hamlet [desc]\n* "}, "column 'Context' holds no text behind its headings"),
        *(("flashrag", {"metadata": {"gold_segments": [GOLD | change]}}, message) for change, message in (
            ({"evidence": ["a", 3]}, "item 2 of field 'evidence' is a number, not a string"),
            ({"kind": "video"}, "field 'kind' of a gold segment is 'video': one of text, table, image"),
            ({"page": "four"}, "field 'page' is \"four\", not a finite number"))),
        ("flashrag", {"metadata": {"gold_passages": [{"title": "Tarn"}]}}, "field 'text' is missing"),
    ],
)  # fmt: skip
def test_a_bad_row_is_named(layout: str, change: dict[str, object], message: str, tmp_path: Path) -> None:
    file = source(tmp_path, as_lines([ROWS[layout], ROWS[layout] | change]))
    with pytest.raises(DataError) as caught:
        list(read_questions(layout, file))
    assert str(caught.value) == f"{file}, line 2: {message}. {BAD}"


def test_a_row_of_masqa_without_an_answer_s_column_is_of_another_layout(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 1: column 'Answer' is missing"):
        list(read_questions("masqa", source(tmp_path, as_lines([{"Question": "Who?"}]))))


HEADER, *LINES = as_csv([FRESHQA, FRESHQA]).split("\r\n")  # the cells of `source` hold a line break each


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "{} is empty: it holds no rows. Fetch it again."),
        (HEADER, "{} is empty: it holds no rows. Fetch it again."),
        ("\n".join([HEADER, *LINES])[:-9], f"{{}}, line 4: the row has 12 cells, the header 20. {FETCH}"),
        ("\n".join([HEADER, *LINES]).partition("https")[0], "{} is truncated: 0 rows read. Fetch it again."),
        ("\n".join([HEADER, LINES[0], "a,b"]), f"{{}}, line 4: the row has 2 cells, the header 20. {FETCH}"),
        ("\n".join([HEADER, LINES[0], '"a"b,c']), f"{{}}, line 4: invalid CSV: ',' expected after '\"'. {FETCH}"),
        ("a,b,a\n1,2,3", f"{{}}, line 1: the header names the column 'a' twice. {FETCH}"),
        (
            "\n".join([HEADER, *LINES]).replace("FALSE", "no", 1),
            "{}, line 2: field 'false_premise' is 'no', not TRUE or FALSE. Is this a freshqa file?",
        ),
        ("\n".join([HEADER, *LINES]).encode() + b"\xff", f"{{}}, line 6: not UTF-8: byte 0xff. {FETCH}"),
        (gzip.compress("\n".join([HEADER, *LINES]).encode())[:-9], "{} is truncated: 0 rows read. Fetch it again."),
    ],
)
def test_bad_csv(content: str | bytes, expected: str, tmp_path: Path) -> None:
    file = source(tmp_path, content, "file.csv")
    with pytest.raises(DataError) as caught:
        list(read_questions("freshqa", file))
    assert str(caught.value).startswith(expected.replace("{}", file))


@pytest.mark.parametrize("layout", sorted(ROWS))
def test_every_layout_knows_its_own_rows_and_no_other(layout: str, tmp_path: Path) -> None:
    assert set(ROWS) == set(layouts())
    for other, row in ROWS.items():
        file = source(tmp_path, as_lines([row]))
        if other == layout:
            ships = layout not in question_layouts() or next(read_questions(layout, file)).passages
            assert not ships or list(read_passages(layout, [file]))
        elif (layout, other) != ("questions", "masqa"):  # a question and its answer are questions
            told = f"looks like {other}: use layout {other} instead of {layout}"  # our few fields fit many files
            with pytest.raises(DataError, match=told if other not in OWN else None):
                list(read_passages(layout, [file]))


@pytest.mark.parametrize("layout", sorted(ROWS))
@given(data=st.data())
def test_a_row_with_any_junk_in_it_is_read_or_named(
    layout: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No fault of a row escapes as anything but a DataError with the file and the line."""
    row = ROWS[layout] | data.draw(st.dictionaries(st.sampled_from(sorted(ROWS[layout])), JSON, min_size=1))
    file = source(tmp_path_factory.getbasetemp(), as_lines([ROWS[layout], row]), f"{layout}.jsonl")
    try:
        list(read_passages(layout, [file]) if layout == "jsonl" else read_questions(layout, file))
    except DataError as error:
        assert str(error).startswith(f"{file}, line 2: ")  # noqa: PT017 - most rows are read without one


def test_a_corrupt_gzip(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(as_lines([HOTPOT]).encode()))
    whole[-6] ^= 1  # in the checksum
    with pytest.raises(DataError, match=r"corrupt gzip archive after \d rows \(CRC check failed.*Fetch it again\."):
        list(read_questions("hotpotqa", source(tmp_path, bytes(whole))))


def test_a_nest_too_deep(tmp_path: Path) -> None:
    for content in ('{"a": ' + "[" * 200_000, "[" * 200_000):
        with pytest.raises(DataError, match=r"line 1, column .*: invalid JSON: maximum recursion depth"):
            list(read_questions("hotpotqa", source(tmp_path, content)))


def test_what_is_refused_before_any_reading(tmp_path: Path) -> None:
    file = source(tmp_path, as_lines([HOTPOT]))
    missing = str(tmp_path / "none.json")
    with pytest.raises(
        UserError, match=r"unknown layout 'hotpot': use auto or one of ambignq, .*, twowiki\. Did you mean hotpotqa\?"
    ):
        read_questions("hotpot", file)
    with pytest.raises(UserError, match=r"unknown layout 'reading': use auto or one of"):
        read_questions("reading", file)
    with pytest.raises(
        UserError,
        match=r"layout 'jsonl' is a corpus and has no questions: use auto or one of ambignq, corpus_questions, fid",
    ):
        read_questions("jsonl", file)
    with pytest.raises(UserError, match="no source of passages"):
        read_passages("hotpotqa", [])
    with pytest.raises(MissingInputError, match=r"none\.json does not exist: give a JSON or JSON Lines file"):
        read_questions("hotpotqa", missing)
    with pytest.raises(MissingInputError, match=r"none\.json does not exist"):
        read_passages("hotpotqa", [file, missing])
    with pytest.raises(DataError, match="is a folder: give one file of it, or a data set as hf:"):
        read_questions("hotpotqa", str(tmp_path))
    for bad in ("hf:", "hf:name", "hf:name:", "hf:a:b:c:d"):
        with pytest.raises(
            UserError, match=r"names no data set and split: write hf:<id or folder>\[:<config>\]:<split>"
        ):
            read_questions("hotpotqa", bad)


def test_a_split_that_the_file_lacks(tmp_path: Path) -> None:
    file = source(tmp_path, as_csv([FRESHQA, FRESHQA | {"split": "DEV"}]), "file.csv")
    with pytest.raises(DataError, match=r"file\.csv:test has no row of the split 'test'; its splits: DEV, TEST\."):
        list(read_questions("freshqa", f"{file}:test"))
    with pytest.raises(MissingInputError, match=r"none\.csv:TEST does not exist"):
        read_questions("freshqa", f"{tmp_path}/none.csv:TEST")
    plain = source(tmp_path, as_lines([HOTPOT]))
    with pytest.raises(DataError, match=r"file\.json:dev has no row of the split 'dev'"):
        list(read_questions("hotpotqa", f"{plain}:dev"))
