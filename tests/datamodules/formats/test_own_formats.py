"""This project's own formats, as a person or a spreadsheet writes them, and the layout of a file by its first row."""

import json
from pathlib import Path

import pytest

from common.errors import DataError
from common.records import Question, Source, clean
from common.validation_split import validation_shares
from datamodules.cache.splits import split_questions
from datamodules.examples.context_sets import relevant, shares_of_grades
from datamodules.examples.data_files import QuestionDataFile
from datamodules.formats.gold_in_corpus import read_questions_with_gold
from datamodules.formats.reading import read_joined_questions, read_passages
from datamodules.formats.recognition import AUTO, recognized
from datamodules.formats.rewrites import read_rewrites
from datamodules.formats.row_counts import RowCounts
from tests.helpers.data_page import examples
from tests.helpers.layout_rows import ROWS

CORPUS = "id;title;text\r\ndoc 1;Tarn;Ada Wells built it.\r\n 7 ;;It opened in 1902.\r\ndoc 1;Tarn;More of doc 1.\r\n"


def written(folder: Path, name: str, content: str, encoding: str = "utf-8") -> str:
    (folder / name).write_bytes(content.encode(encoding))
    return str(folder / name)


def read(file: str, counts: RowCounts | None = None) -> list[Question]:
    return list(read_joined_questions(AUTO, file, counts=counts))


@pytest.mark.parametrize("layout", sorted({*ROWS} - {"masqa"}))
def test_a_file_is_recognized_by_its_first_row(layout: str) -> None:
    assert recognized(ROWS[layout], "file") == layout
    further = {} if layout in ("questions", "judgements", "jsonl") else {"text": "with a column of another layout"}
    assert recognized(ROWS[layout] | further, "file") == layout


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_spreadsheet_s_export_is_questions(delimiter: str, encoding: str, end: str, tmp_path: Path) -> None:
    rows = [
        ("Question", "Answer", "Gold IDs", "Customer"),
        ('"Who built ""it""' + delimiter + ' then?"', "Ada Wells|A. Wells", "doc 1 | 7", "x"),
        ("And when?", '"[""1902"", 1903]"', "['7']", ""),
        ("", "nothing", "7", ""),
    ]
    counts = RowCounts()
    found = read(written(tmp_path, "own.csv", end.join(map(delimiter.join, rows)) + end, encoding), counts)
    assert [each.text for each in found] == [clean(f'Who built "it"{delimiter} then?'), "And when?"]
    assert [each.answers for each in found] == [("Ada Wells", "A. Wells"), ("1902", "1903")]
    assert [each.gold.corpus_ids for each in found] == [("doc 1", "7"), ("7",)]
    unusual = " ".join(counts.lines())
    assert "'customer'" in unusual
    assert "field 'question' or 'query' is" in unusual


def test_the_fields_of_a_question(tmp_path: Path) -> None:
    file = written(tmp_path, "own.jsonl", examples("questions")["json"])
    named, dialogue = read(file)
    assert (named.id, named.answers, named.gold.corpus_ids) == ("q1", ("Ada Wells",), ("doc-17", "doc-4"))
    assert dialogue.history == ("Who built the bridge at Tarn?", "Ada Wells.")
    assert (dialogue.source.group, dialogue.scores) == ("customer-9", (7.5, 6.1))
    assert [(each.title, each.corpus_id) for each in dialogue.passages] == [("Tarn", "doc-4"), ("", "")]
    assert dialogue.support == (dialogue.passages[0].id,)
    assert dialogue.gold.grades == ((dialogue.passages[0].id, 2.0),)
    shipped = {"question": "Q?", "gold": "b", "passages": [{"id": "a", "text": "one"}, {"id": "b", "text": "two"}]}
    (one,) = read(written(tmp_path, "shipped.json", json.dumps([shipped])))
    assert (one.support, one.gold.corpus_ids, one.gold.grades) == ((one.passages[1].id,), (), ())


def test_clicks_and_grades_are_one_question_with_the_passages_of_the_corpus(tmp_path: Path) -> None:
    corpus = written(tmp_path, "corpus.csv", CORPUS)
    rows = ["reset pump\tdoc 1\t0", "Reset\t7\tno", "reset pump\t7\t3", "reset pump\tdoc 1\t0", "reset pump\t7\t2"]
    clicks = "\n".join(["Query\tPassage ID\tClicked", *rows])
    file = written(tmp_path, "clicks.tsv", clicks)
    counts = RowCounts()
    (pump, reset) = read_questions_with_gold(AUTO, file, corpus=corpus, counts=counts)
    texts = {passage.id: passage.text for passage in pump.passages}
    assert sorted(texts.values()) == ["Ada Wells built it.", "It opened in 1902.", "More of doc 1."]
    assert [texts[id_] for id_ in pump.support] == ["It opened in 1902."]
    assert [(texts[id_], grade) for id_, grade in pump.gold.grades] == [("It opened in 1902.", 3.0)]
    assert (reset.support, [passage.text for passage in reset.passages]) == ((), ["It opened in 1902."])
    assert any("joined" in line and ": 3," in line for line in counts.lines())


def test_a_judged_text_and_a_log_without_labels(tmp_path: Path) -> None:
    file = written(tmp_path, "judged.jsonl", examples("judgements")["json"])
    (pump,) = read(file)
    assert (pump.gold.corpus_ids, pump.support) == (("manual-3",), ())
    assert [passage.text for passage in pump.passages] == ["Hold the red button for five seconds."]
    log = written(tmp_path, "log.csv", "query,doc_id\nreset,a\nreset,b\n")
    assert [each.gold.corpus_ids for each in read(log)] == [("a", "b")]


@pytest.mark.parametrize("given", ["corpus ids", "texts", "passages"])
def test_a_judgement_below_one_is_relevant_and_a_share_of_the_highest(given: str, tmp_path: Path) -> None:
    labels = {"Which?": {"a": 1, "b": 0.5, "c": 0.25, "d": 0}, "Alone?": {"b": 0.5}, "Another?": {"d": 0, "b": "0.5"}}
    texts = {id_: f"the text of the passage {id_}" for id_ in "abcd"}
    corpus = written(tmp_path, "corpus.jsonl", "\n".join(json.dumps({"id": i, "text": t}) for i, t in texts.items()))
    rows: list[dict[str, object]] = []
    for query, own in labels.items():
        judged = [{"text": texts[id_], "label": label} for id_, label in own.items()]
        if given == "passages":
            rows.append({"question": query, "passages": judged})
        elif given == "texts":
            rows += [{"query": query, **each} for each in judged]
        else:
            rows += [{"query": query, "passage_id": id_, "label": label} for id_, label in own.items()]
    file = written(tmp_path, "judged.jsonl", "\n".join(map(json.dumps, rows)))
    found = {}
    for question in read_questions_with_gold(AUTO, file, corpus=corpus):
        relevance = relevant(question, question.passages, "gold")
        shares = shares_of_grades(question, question.passages, relevance)
        found[question.text] = {
            passage.text[-1]: both for passage, *both in zip(question.passages, relevance, shares, strict=True)
        }
    assert found == {
        "Which?": {"a": [True, 1], "b": [True, 0.5], "c": [True, 0.25], "d": [False, 0]},
        "Alone?": {"b": [True, 1]},
        "Another?": {"b": [True, 1], "d": [False, 0]},
    }


def test_a_corpus_by_a_spreadsheet_keeps_ids_and_other_columns(tmp_path: Path) -> None:
    file = written(tmp_path, "corpus.csv", "ID,Title,Text,Page No\n007,Tarn,A lake.,4\n")
    (passage,) = read_passages(AUTO, [file])
    assert (passage.corpus_id, passage.title, passage.text, passage.metadata) == (
        "007", "Tarn", "A lake.", {"Page No": "4"}
    )  # fmt: skip


def test_rewrites_by_a_spreadsheet(tmp_path: Path) -> None:
    file = written(tmp_path, "own.csv", "Question;Rewrite;History\nand when?;When was Tarn built?;Who? | Ada\n")
    (one,) = read_rewrites(AUTO, file)
    assert (one.question, one.rewrite, one.strategy, one.history) == (
        "and when?", "When was Tarn built?", "gqr", ("Who?", "Ada")
    )  # fmt: skip
    with pytest.raises(DataError, match="not recognized as rewrites: the first row has the fields 'question'"):
        list(read_rewrites(AUTO, written(tmp_path, "other.jsonl", '{"question": "a"}')))


def test_what_belongs_together_is_on_one_side() -> None:
    def asked(text: str, *history: str, group: str = "") -> Question:
        return Question("", text, history=history, source=Source(group=group))

    apart = [asked(f"Question {number}?") for number in range(200)]
    together = [
        asked("Who built Tarn?"),
        asked("And when?", "who built  TARN?"),
        asked("And when?", "Who else?", group="x"),
        asked("Another?", group="x"),
        asked("ANOTHER?"),
    ]
    shares = validation_shares([*apart, *together])
    assert shares[:200] == validation_shares(apart)
    assert len(set(shares[:200])) == 200
    assert shares[200] == shares[201] == validation_shares([asked("Who built Tarn?")])[0]
    assert shares[202] == shares[203] == shares[204] == validation_shares([asked("Who?", group="x")])[0]
    assert shares[201] != shares[202]  # two dialogues that ask "And when?"


def test_a_validation_file_takes_what_belongs_to_its_questions_from_training(tmp_path: Path) -> None:
    train = written(
        tmp_path, "train.csv",
        "question,gold,history,group\nWho built  Tarn?,7,,\nAnd when?,7,,\nHow?,7,WHO built tarn?|Ada,\n"
        "Why?,7,,x\nWhere?,7,,y\n",
    )  # fmt: skip
    held_out = written(tmp_path, "held.csv", "question,gold,group\nwho built tarn?,7,\nWhat?,7,x\n")
    corpus = written(tmp_path, "corpus.csv", CORPUS)
    files = [[QuestionDataFile(file, corpus=corpus)] for file in (train, held_out)]
    split = split_questions(*files, 0.5)
    assert [each.text for each in split.training] == ["And when?", "Where?"]


def test_a_click_that_was_none_is_no_question_without_gold(tmp_path: Path) -> None:
    file = tmp_path / "clicks.csv"
    file.write_text("query,passage,clicked\nwho,p2,0\nwho,p1,1\nwhere,p1,0\n")
    counts = RowCounts()
    who, where = read_joined_questions("judgements", str(file), counts=counts)
    assert (who.gold.corpus_ids, where.gold.corpus_ids) == (("p1",), ())
    assert counts.lines() == [
        f"a row of an earlier question: 1, joined with it; the first: {file}, line 3",
        f"a question without a gold answer and a gold passage: 1, not used; the first: {file}, line 4",
    ]
