"""What a cell of a table is, and a value of JSON and Parquet: lists, missing values, whole numbers."""

import json

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from common.errors import DataError
from common.records import Question
from datamodules.formats.cells import TableCell, list_of, structure, whole, without_nan
from datamodules.formats.gold_in_corpus import read_questions_with_gold
from datamodules.formats.reading import read_passages, read_questions
from datamodules.formats.recognition import AUTO
from datamodules.formats.rewrites import read_rewrites
from datamodules.formats.row_counts import RowCounts
from datamodules.formats.word_labels import WordLabels, to_row, word_label_rows
from tests.helpers.layout_rows import HUB_HOTPOT, ROWS, as_lines, source

PRINTED = {  # a list as programs write it -> its values
    '["a", null, 3]': ["a", None, 3],
    "['a', nan, None]": ["a", None, None],
    "['Aare' 'the Aare']": ["Aare", "the Aare"],
    "['Aare'\n 'the Aare' \"l'Aare\"]": ["Aare", "the Aare", "l'Aare"],
    "[3 4]": [3, 4],
    "[ 3 -4]": [3, -4],
    "[1. 2.5 nan]": [1.0, 2.5, None],
    "[<NA>, 'a', NaT]": [None, "a", None],
    "[np.int64(3), np.str_('a')]": [3, "a"],
    "array(['a', 'b'], dtype=object)": ["a", "b"],
    "[array(['a'], dtype=object) array([1, 2])]": [["a"], [1, 2]],
    "[{'text': 'a'} {'text': 'b'}]": [{"text": "a"}, {"text": "b"}],
    "['a ... b']": ["a ... b"],
    "('Aare', 'the Aare')": ["Aare", "the Aare"],
    "('Aare',)": ["Aare"],
    "[]": [],
}


@pytest.mark.parametrize("text", PRINTED)
def test_a_list_as_programs_print_it(text) -> None:
    assert list_of(TableCell(text), "field 'x'") == PRINTED[text]
    assert structure(TableCell(f" {text}\n"), "field 'x'") == PRINTED[text]


@pytest.mark.parametrize("values", [["it's", 'a "b"', "c, d"], [1, -2, 3], [0.5, -1.25], ["x"], []])
def test_numpy_and_pandas_are_read_as_they_print(values) -> None:
    for printed in (
        str(np.array(values, dtype=object)),
        str(np.array(values)),
        repr(values),
        str(list(np.array(values))),
    ):
        assert list_of(printed, "field 'x'") == values, printed


@pytest.mark.parametrize("text", ["['a' ... 'b']", "[1 2 ... 8 9]"])
def test_values_that_were_not_written_are_a_loss(text) -> None:
    with pytest.raises(DataError, match="were not written"):
        list_of(text, "field 'x'")


@pytest.mark.parametrize("text", ["[1, dtype]", "[np.int64(3]", "[a, b]", "[1, 2)]", "['a' + 'b']", '["]'])
def test_what_only_looks_like_a_list_is_refused(text) -> None:
    with pytest.raises(DataError, match="begins like a list and is none"):
        list_of(text, "field 'x'")


def read(path: str, counts: RowCounts | None = None) -> list[Question]:
    return list(read_questions(AUTO, path, counts=counts))


def test_missing_cells_of_a_table(tmp_path) -> None:
    header = "id,question,answers,gold,group\n"
    table = header + "nan,Q1?,None,None,g\n<NA>,nan,a,1,g\n" + header + "None,Q2?,NaN,2,NaT\n"
    counts = RowCounts()
    first, second = read(source(tmp_path, table, "a.csv"), counts)
    assert (first.text, first.answers, first.gold.corpus_ids) == ("Q1?", ("None",), ())
    assert (second.text, second.answers, second.gold.corpus_ids, second.source.group) == ("Q2?", (), ("2",), "")
    assert len(first.id) == len(second.id) == 16  # of the text
    told = {line.partition(": ")[0]: line for line in counts.lines()}
    assert "line 2" in told["a cell nan of the column 'id'"]
    assert "1, read as this text" in told["an item of field 'answers|answer' that is 'None'"]
    assert "a row whose field 'question' or 'query' is null" in told
    assert "1, left out" in told["a header within a table"]
    corpus = "id,title,text,url\n3.0,NaN,Tarn is a lake.,nan\n4.0,None,None of it is deep.,u\n"
    one, two = read_passages(AUTO, [source(tmp_path, corpus, "c.csv")])
    assert (one.corpus_id, one.title, one.metadata) == ("3.0", "", None)
    assert (two.title, two.text, two.metadata) == ("None", "None of it is deep.", {"url": "u"})
    clicks = "query,passage,clicked\nwho,p1,None\nwho,p2,0\n"
    (who, other) = read_questions("judgements", source(tmp_path, clicks, "k.csv"))
    assert (who.gold.corpus_ids, other.gold.corpus_ids) == (("p1",), ())


def test_a_text_of_json_and_parquet_is_one_value(tmp_path) -> None:
    row = {"question": "Q?", "answers": "P(A|B)", "gold": "a|1", "history": "[PAD] | x"}
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "a.parquet")
    for path in (source(tmp_path, as_lines([row])), str(tmp_path / "a.parquet")):
        (one,) = read(path)
        assert (one.answers, one.gold.corpus_ids, one.history) == (("P(A|B)",), ("a|1",), ("[PAD] | x",))
    (cell,) = read(source(tmp_path, "question,answers,gold\nQ?,P(A|B),a|1\n", "a.csv"))
    assert (cell.answers, cell.gold.corpus_ids) == (("P(A", "B)"), ("a", "1"))
    table = "question;answers;gold\nQ?;array(['a', 'b'], dtype=object);('p', 'q')\nR?;(a, b);f('x', 'y')\n"
    array, text = read(source(tmp_path, table, "b.csv"))
    assert (array.answers, array.gold.corpus_ids) == (("a", "b"), ("p", "q"))
    assert (text.answers, text.gold.corpus_ids) == (("(a, b)",), ("f('x', 'y')",))


def test_nan_is_null_and_values_of_numpy_are_values(tmp_path) -> None:
    lines = (
        '{"id": NaN, "question": "Q?", "answers": [NaN, "a"], "passages": [{"text": "t", "title": NaN, "label": NaN}]}'
    )
    columns = {
        "id": [float("nan")],
        "question": ["Q?"],
        "answers": [[None, "a"]],
        "passages": [[{"text": "t", "title": None}]],
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    for path in (source(tmp_path, lines), str(tmp_path / "a.parquet")):
        (one,) = read(path)
        assert (len(one.id), one.answers, [each.title for each in one.passages]) == (16, ("a",), [""])
    assert without_nan({"a": np.array([1, 2]), "b": np.float64("nan"), "c": np.str_("x")}) == {
        "a": [1, 2],
        "b": None,
        "c": "x",
    }


def test_a_whole_number_is_found_as_written_and_without_its_zero(tmp_path) -> None:
    assert [*map(whole, ("3.0", "-3.00", "3.5", "v3.0", "3.", "٣.0"))] == ["3", "-3", "3.5", "v3.0", "3.", "٣.0"]
    (one,) = read(source(tmp_path, "question,answers\nWhen?,1937.0\n", "a.csv"))
    assert one.answers == ("1937.0", "1937")
    (one,) = read(source(tmp_path, "question,answers\nWhen?,1937.0|nan|1938.5\n", "a.csv"))
    assert one.answers == ("1937.0", "1937", "1938.5")
    (one,) = read(source(tmp_path, '{"question": "When?", "answers": "1937.0", "id": 3.0}'))
    assert (one.answers, one.id) == (("1937.0",), "3")
    texts = {"3": "three", "4.0": "four", "5.0": "five", "5": "the other five"}
    corpus = source(tmp_path, as_lines([{"id": id_, "text": text} for id_, text in texts.items()]), "c.jsonl")
    file = source(tmp_path, "question,gold\na,3.0\nb,4\nc,5\nd,5.0\ne,3.0;4\n", "q.csv")
    found = [[each.text for each in q.gold_passages] for q in read_questions_with_gold(AUTO, file, corpus=corpus)]
    assert found == [["three"], ["four"], ["the other five"], ["five"], ["three", "four"]]


def test_json_in_a_text_column_of_an_official_set(tmp_path) -> None:
    rows = [(layout, ROWS[layout]) for layout in ("hotpotqa", "twowiki", "musique", "ambignq")]
    for layout, row in [*rows, ("hotpotqa", HUB_HOTPOT)]:
        as_text = {name: json.dumps(value) if isinstance(value, list | dict) else value for name, value in row.items()}
        assert list(read_questions(layout, source(tmp_path, as_lines([as_text])))) == list(
            read_questions(layout, source(tmp_path, as_lines([row]), "other.jsonl"))
        )


def test_fields_that_nobody_reads_are_named(tmp_path) -> None:
    counts = RowCounts(strict=True)
    list(
        read_passages(
            AUTO, [source(tmp_path, '{"id": 1, "text": "a", "contents": "b", "headline": "c"}')], counts=counts
        )
    )
    list(read_rewrites(AUTO, source(tmp_path, '{"question": "a", "rewrite": "b", "turns": ["c"]}'), counts=counts))
    labels = to_row(WordLabels("q1", "Who?", 0.5, {}, {}, ())) | {"rank": 1}
    list(word_label_rows(source(tmp_path, as_lines([labels])), counts=counts))
    assert [line.partition(";")[0] for line in counts.lines()] == [
        "a field 'contents': 1, not read",
        "a field 'headline': 1, kept with the passage, not searched",
        "a field 'turns', which the layout rewrites does not have: 1, not read",
        "a field 'rank', which the layout of word labels does not have: 1, not read",
    ]


def test_qrecc_as_published_and_a_turn_that_nobody_can_part(tmp_path) -> None:
    row = {
        "Context": ["Who built it?", "Ada Wells."],
        "Question": "And when?",
        "Rewrite": "When was it built?",
        "Turn_no": 2,
    }
    (one,) = read_rewrites(AUTO, source(tmp_path, json.dumps([row])))
    assert (one.question, one.rewrite, one.history) == (
        "And when?",
        "When was it built?",
        ("Who built it?", "Ada Wells."),
    )
    (first,) = read_rewrites(AUTO, source(tmp_path, json.dumps([row | {"Context": []}])))
    assert first.history == ()
    lines = ["Q: Who? A: Ada.", "Q: Is option A: red right? A: Yes."]
    given = [{"conversation": line, "question": "q", "label": "r"} for line in lines]
    counts = RowCounts()
    (kept,) = read_rewrites(AUTO, source(tmp_path, json.dumps(given)), counts=counts)
    assert kept.history == ("Who?", "Ada.")
    assert "several ' A: '" in counts.lines()[0]
