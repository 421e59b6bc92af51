"""Rows that are not as they should be are counted by kind with the first one's place, or are an error if strict."""

import json
from pathlib import Path

import pytest

from common.errors import DataError
from common.records import GoldSegment, Passage
from datamodules.examples.data_files import QuestionDataFile, distinct_questions
from datamodules.formats.reading import (
    read_distinct_questions,
    read_joined_questions,
    read_passages,
    read_questions,
)
from datamodules.formats.row_counts import JOINED, RowCounts
from tests.helpers.layout_rows import FID, HOTPOT, MUSIQUE, ROWS, as_csv, as_lines, source

CORPUS = [
    {"id": "1", "title": "Ode", "text": "a"}, {"id": "2", "title": "", "text": " \u200b\u00ad\n"},
    {"id": "3", "text": None}, {"id": "4", "title": "Ode"} | {"text": ""}, {"id": "5", "contents": ""},
    {"id": "6", "title": "Elegy", "text": None},
]  # fmt: skip


def test_passages_of_a_corpus(tmp_path: Path) -> None:
    file, counts = source(tmp_path, as_lines(CORPUS)), RowCounts()
    found = list(read_passages("jsonl", [file], counts=counts))
    assert [passage.corpus_id for passage in found] == ["1", "4", "6"]
    assert counts.lines() == [
        f"a passage without title and text: 3, left out; the first: {file}, line 2",
        f"a passage with a title and no text: 2, kept; the first: {file}, line 4",
    ]
    rows = [{"title": "", "text": "", "id": "1"}, {"title": "A", "text": "", "id": "2"}]
    table = source(tmp_path, as_csv(rows), "a.csv")
    assert [passage.title for passage in read_passages("jsonl", [table])] == ["A"]


def click(question: str, *gold: str, **more: object) -> dict:
    return {"question": question, "gold_doc_ids": list(gold), **more}


FILLED = {"title": "T", "text": "x"}
LEFT_OUT = [  # layout, what is other in a row, what is left out: the row, or a part of it
    ("hotpotqa", {"question": "\u200b"}, "a row whose field 'question' is empty"),
    ("hotpotqa", {"question": None}, "a row whose field 'question' is null"),
    ("hotpotqa", {"_id": None}, "a row whose field '_id' or 'id' is null"),
    ("hotpotqa", {"_id": " "}, "a row whose field '_id' or 'id' is empty"),
    ("hotpotqa", {"context": [["T", ["a", None]]]}, "a sentence of field 'context' that is null"),
    ("hotpotqa", {"context": [[None, ["a"]]]}, "a title of field 'context' that is null"),
    ("hotpotqa", {"context": [None, *HOTPOT["context"]]}, "an item of field 'context' that is null"),
    ("hotpotqa", {"supporting_facts": [[None, 0], ["Globe", 0]]}, "a title of field 'supporting_facts' that is null"),
    ("musique", {"answer_aliases": [None]}, "an item of field 'answer_aliases' that is null"),
    ("corpus_questions", {"gold_doc_ids": ["", "a"]}, "an item of field 'gold_doc_ids' that is empty"),
    ("flashrag", {"id": ""}, "a field 'id' that is empty"),
    ("flashrag", {"golden_answers": [None, "x"]}, "an item of field 'golden_answers' that is null"),
    ("fid", {"ctxs": [None, FILLED]}, "an item of field 'ctxs' that is null"),
    ("masqa", {"Question": ""}, "a row whose field 'Question' is empty"),
    ("freshqa", {"answer_0": None}, "a row whose field 'answer_0' is null"),
    ("ambignq", {"annotations": []}, "a row whose field 'annotations' is empty"),
    *(("flashrag", {"metadata": {"gold_segments": [segment]}}, f"a row whose field {what}") for segment, what in (
        ({"document": None, "evidence": "x"}, "'document' is null"),
        ({"document": "a", "evidence": [" "]}, "'evidence' of a gold segment is empty"))),
    ("fid", {"ctxs": [FILLED, {"text": None}]}, "a passage without title and text"),
]  # fmt: skip
OTHERS = [
    ("hotpotqa", {"context": None}, "a row whose field 'context' is null", "read without it"),
    ("fid", {"answers": [], "ctxs": [FILLED]}, "a question without a gold answer and a gold passage", "not used"),
    ("musique", {"paragraphs": [{"title": "T", "paragraph_text": None}]}, "a passage with a title and no text", "kept"),
]


@pytest.mark.parametrize(("layout", "change", "what", "then"), [*((*row, "left out") for row in LEFT_OUT), *OTHERS])
def test_rows_of_questions(layout: str, change: dict, what: str, then: str, tmp_path: Path) -> None:
    row = click("q", "a") if layout == "corpus_questions" else ROWS[layout]
    rows = [row, row | change, row, row | change]
    file, counts = source(tmp_path, as_lines(rows)), RowCounts()
    questions = list(read_questions(layout, file, counts=counts))
    assert counts.lines() == [f"{what}: 2, {then}; the first: {file}, line 2"]
    assert len(questions) == (2 if "row whose" in what and then == "left out" else 4)
    first = source(tmp_path, as_lines(rows[1:]))  # of a file that begins with such a row
    assert len(list(read_questions(layout, first))) == len(questions) - 1
    with pytest.raises(DataError, match=f"line 2: {what}. Correct it, or omit strict: it is then"):
        list(read_questions(layout, source(tmp_path, as_lines(rows)), counts=RowCounts(strict=True)))


@pytest.mark.parametrize(("said", "line"), [
    ("mined all the same", "a question without a gold answer and a gold passage: 2, mined all the same; the first: "),
    (None, None),
])  # fmt: skip
def test_what_becomes_of_a_question_without_gold_is_the_command_s(
    said: str | None, line: str | None, tmp_path: Path
) -> None:
    bare = FID | {"answers": [], "ctxs": [FILLED]}
    file, counts = source(tmp_path, as_lines([FID, bare, bare])), RowCounts(without_gold=said)
    assert len(list(read_questions("fid", file, counts=counts))) == 3
    assert counts.lines() == ([f"{line}{file}, line 2"] if line else [])
    strict = RowCounts(True, said)
    if said is None:
        assert len(list(read_questions("fid", file, counts=strict))) == 3


def test_empty_passages_of_a_question_take_their_scores_and_gold_with_them(tmp_path: Path) -> None:
    ctxs = [{"text": "", "score": 3, "isgold": True}, FILLED | {"score": 2, "isgold": True}]
    ctxs.append({"title": "U", "text": "", "score": 1})
    (question,) = read_questions("fid", source(tmp_path, as_lines([FID | {"ctxs": ctxs}])))
    assert [passage.title for passage in question.passages] == ["T", "U"]
    assert (question.scores, question.support) == ((2.0, 1.0), (Passage.of("T", "x").id,))


def test_clicks_become_one_question_with_the_gold_of_all(tmp_path: Path) -> None:
    rows = [click("q one", "a"), click("Q two", "b"), click("q  one", "c"), click("q one", "a", "d")]
    rows.append(click("Q two", "b"))
    file, counts = source(tmp_path, as_lines(rows)), RowCounts()
    found = list(read_joined_questions("corpus_questions", file, counts=counts))
    assert [(each.text, each.gold.corpus_ids) for each in found] == [("q one", ("a", "c", "d")), ("Q two", ("b",))]
    assert counts.lines() == [f"a row of an earlier question: 3, joined with it; the first: {file}, line 3"]
    assert [each.gold.corpus_ids for each in read_joined_questions("corpus_questions", file, 3)] == [("a", "c"), ("b",)]
    RowCounts(strict=True).add(JOINED)  # no error


def test_training_and_mining_read_the_gold_passages_of_all_clicks(tmp_path: Path) -> None:
    corpus = source(tmp_path, as_lines([{"id": name, "text": name} for name in "abc"]), "corpus.jsonl")
    file = source(tmp_path, as_lines([click("q", "a"), click("r", "c"), click("q", "b"), click("q", "a")]))
    found = list(distinct_questions([QuestionDataFile(file, "corpus_questions", corpus=corpus)]))
    assert [[passage.text for passage in question.gold_passages] for question in found] == [["a", "b"], ["c"]]


def ctx(name: str, gold: bool = False, score: float | None = None) -> dict:
    return {"title": name, "text": name, "isgold": gold, "score": score}


def test_which_rows_are_one_question(tmp_path: Path) -> None:
    def titles(*rows: dict, layout: str = "fid") -> list[tuple[str, str]]:
        """Gold and other passages of the questions that are read."""
        found = read_joined_questions(layout, source(tmp_path, as_lines(list(rows))))
        return [
            (
                "".join(p.title for p in each.gold_passages),
                "".join(p.title for p in each.passages if p not in each.gold_passages),
            )
            for each in found
        ]

    def row(answers: list[str], *ctxs: dict) -> dict:
        return {"question": "q", "answers": answers, "ctxs": list(ctxs)}

    shown = ctx("A", True), ctx("B")
    assert titles(row([], *shown), row([], ctx("B", True), ctx("C"))) == [("AB", "C")]
    assert titles(row(["x"], *shown), row(["x"], *shown), row([], ctx("D", True))) == [("AD", "B")]
    assert titles(row(["x"], *shown), row(["y"], ctx("A"), ctx("B", True))) == [("A", "B"), ("B", "A")]  # two of PopQA
    assert titles(row(["x"], *shown), row(["x"], ctx("B"))) == [("A", "B"), ("", "B")]
    several = [row([answer], ctx(name, True)) for answer, name in ("xA", "yB", "yC", "xD", "zE")]
    assert titles(row([], ctx("F", True)), *several) == [("FAD", ""), ("BC", ""), ("E", "")]
    assert titles(*several, row([], ctx("F", True))) == [("ADF", ""), ("BC", ""), ("E", "")]
    both = row(["x", "y"], ctx("A", True)), row(["y", "x"], ctx("B", True))
    assert titles(*both, row(["x"], ctx("C", True))) == [("AB", ""), ("C", "")]
    empty = ctx("", True)
    assert titles(row(["x"], ctx("A", True)), row(["x"], ctx("B", True), empty)) == [("AB", "")]
    full = [MUSIQUE, MUSIQUE | {"paragraphs": MUSIQUE["paragraphs"][:1]}]
    assert titles(*full, layout="musique") == [("Hamlet", "Globe"), ("", "Globe")]


def test_rows_that_are_left_out_do_not_shift_those_that_are_joined(tmp_path: Path) -> None:
    rows = [
        click("q", "a", id=None),
        click("q", "a"),
        click("q", "b"),
        click("r", "c"),
        click(" ", "c"),
        click(" ", "c"),
    ]
    rows[0]["gold_doc_ids"] = None
    counts = RowCounts()
    found = list(read_joined_questions("corpus_questions", source(tmp_path, as_lines(rows)), counts=counts))
    assert [(each.text, each.gold.corpus_ids) for each in found] == [("q", ("a", "b")), ("r", ("c",))]
    assert [count for *_, count, _ in counts.as_json()] == [1, 1, 2]
    rows = [click("q", "a"), click(" ", "c"), click(" ", "c")]
    assert len(list(read_joined_questions("corpus_questions", source(tmp_path, as_lines(rows))))) == 1


def test_a_limit_counts_rows(tmp_path: Path) -> None:
    rows = [click("q", "a"), click(" ", "b"), click("q", "c"), click("r", "d")]
    file = source(tmp_path, as_lines(rows))
    assert [len(list(read_questions("corpus_questions", file, limit))) for limit in (1, 2, 3, 4)] == [1, 1, 2, 3]
    assert [len(list(read_joined_questions("corpus_questions", file, limit))) for limit in (1, 2, 3, 4)] == [1, 1, 1, 2]


def test_null_answers_are_counted_in_any_order(tmp_path: Path) -> None:
    null = HOTPOT | {"answer": None}
    for rows, place in (([null, null, HOTPOT], 1), ([HOTPOT, null, null], 2), ([null, HOTPOT, null], 1)):
        file, counts = source(tmp_path, as_lines(rows)), RowCounts()
        list(read_questions("hotpotqa", file, counts=counts))
        assert counts.lines() == [
            f"a row whose field 'answer' is null: 2, read without it; the first: {file}, line {place}"
        ]
        with pytest.raises(
            DataError, match=f"line {place}: a row whose field 'answer' is null. Correct it, or omit strict"
        ):
            list(read_questions("hotpotqa", file, counts=RowCounts(strict=True)))
    counts = RowCounts()
    list(read_questions("hotpotqa", source(tmp_path, as_lines([null, null])), counts=counts))
    assert counts.lines() == []  # of a test file


def test_different_questions_of_several_files_with_one_id_are_all_read(tmp_path: Path) -> None:
    files = [
        source(tmp_path, as_lines([HOTPOT | {"question": text} for text in texts]), name)
        for name, texts in (("1", ["Q one?"]), ("2", ["Q  one?", "Q two?", "Q two?"]), ("3", ["Q two?", "Q three?"]))
    ]
    counts = RowCounts()
    found = [each.text for each in read_distinct_questions("hotpotqa", files, counts)]
    assert found == ["Q one?", "Q two?", "Q two?", "Q three?"]
    assert [(what, count) for what, _, count, _ in counts.as_json()] == [
        ("a question of an earlier file", 2), ("a question with the id of another one", 3)
    ]  # fmt: skip


def test_scores_and_segments_of_joined_rows(tmp_path: Path) -> None:
    rows = [{"question": "q", "answers": [], "ctxs": ctxs} for ctxs in (
        [ctx("A", True, 1.0), ctx("B", score=2.0)], [ctx("B", True, 5.0), ctx("C", score=0.5)])]  # fmt: skip
    (question,) = read_joined_questions("fid", source(tmp_path, as_lines(rows)))
    assert question.given_scores == (1.0, 5.0, 0.5)
    segments = [{"document": name, "evidence": "x"} for name in "ab"]
    rows = [{"question": "q", "golden_answers": ["y"], "metadata": {"gold_segments": [each]}} for each in segments]
    (question,) = read_joined_questions("flashrag", source(tmp_path, as_lines(rows)))
    assert question.gold.segments == (GoldSegment("a", ("x",)), GoldSegment("b", ("x",)))


def test_training_counts_what_it_leaves_out(tmp_path: Path) -> None:
    same = HOTPOT | {"_id": "h2", "context": HOTPOT["context"][:1]}
    other = HOTPOT | {"question": "Who wrote Lear?"}
    files = [source(tmp_path, as_lines(rows), name) for rows, name in (([HOTPOT, same, other], "1"), ([HOTPOT], "2"))]
    counts = RowCounts()
    found = list(distinct_questions([QuestionDataFile(file, "hotpotqa") for file in files], counts))
    assert [question.id for question in found] == ["h1", "h1"]
    assert counts.lines() == [
        f"a row with the question of an earlier one: 1, left out; the first: {files[0]}, line 2",
        f"a question with the id of another one: 1, kept; the first: {files[0]}, line 3",
        f"a question of an earlier file: 1, left out; the first: {files[1]}, line 1",
    ]
    again = RowCounts()
    again.add_all(json.loads(json.dumps(counts.as_json())))
    assert again.lines() == counts.lines()


def test_a_first_row_without_a_click_joins_the_clicks_of_the_others(tmp_path: Path) -> None:
    file = tmp_path / "clicks.jsonl"
    clicks = [[], ["d1"], ["d2"]]
    rows = [{"id": f"m{n}", "question": "Who?", "gold_doc_ids": gold} for n, gold in enumerate(clicks)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (question,) = read_joined_questions("corpus_questions", str(file))
    assert question.gold.corpus_ids == ("d1", "d2")
