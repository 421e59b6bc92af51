"""Questions whose gold passages are looked up in the index: by text, by title and by the corpus's own ids.

Also files of questions together.
"""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.errors import DataError, UserError
from common.records import Gold, Passage, Question, Ranked
from datamodules.formats.reading import read_questions
from harness.evaluation.gold_in_index import with_gold_in_index
from harness.evaluation.retrieval_scores import retrieval_scores
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.dense import DenseRetriever, build_dense
from tests.helpers.commands import command, refused
from tests.helpers.reports import cells, reasons, report

ALBA, BRUNE = Passage.of("Alba", "A river.", corpus_id="a-1"), Passage.of("Brune", "A lake.", corpus_id="b-1")
DORN = [Passage.of("Dorn", text, corpus_id=text) for text in ("one", "two")]


@pytest.fixture
def retriever(tmp_path: Path) -> SimpleNamespace:
    build_bm25([ALBA, BRUNE, *DORN], tmp_path / "index")
    return SimpleNamespace(retriever=Bm25Retriever(tmp_path / "index"))


def shipped(*gold: Passage, unshipped: tuple[str, ...] = ()) -> Question:
    other = Passage.of("Other", "no gold")
    ids = tuple(passage.id for passage in gold)
    return Question("q", "?", passages=(other, *gold), support=ids, gold=Gold(titles=unshipped))


def titles(retriever: SimpleNamespace, question: Question) -> list[str] | None:
    """The texts of a question's gold passages in the index; None if it is left out."""
    found, _ = with_gold_in_index(retriever, [question])
    return [passage.text for passage in found[0].gold_passages] if found else None


def test_gold_passages_by_text_title_and_own_id(retriever) -> None:
    assert titles(retriever, shipped(ALBA, BRUNE)) == ["A river.", "A lake."]
    assert titles(retriever, shipped(unshipped=("Alba", "Brune"))) == ["A river.", "A lake."]
    assert titles(retriever, shipped(Passage.of("Alba", "another cut of it"), BRUNE)) == ["A lake.", "A river."]
    assert titles(retriever, shipped(DORN[1])) == ["two"]  # its text says which of both
    assert titles(retriever, Question("q", "?", gold=Gold(corpus_ids=("b-1", "two")))) == ["A lake.", "two"]
    assert titles(retriever, Question("q", "?", gold=Gold(corpus_ids=("b-1; two",)))) == ["A lake.", "two"]
    assert titles(retriever, Question("q", "?", gold=Gold(corpus_ids=("b-1; none",)))) is None
    judged = Question(
        "q", "?", gold=Gold(corpus_ids=("b-1", "a-1"), grades=(("b-1", 0.5), ("a-1", 0.25), ("two", 0.0)))
    )
    assert titles(retriever, judged) == ["A lake.", "A river."]


def test_all_passages_of_an_id_are_gold_and_one_of_them_finds_it(tmp_path) -> None:
    """Gold are the two passages of 7 and one of 8; found is the second of 7, at rank 2 of 2."""
    chunks = [Passage.of(title, "a text", corpus_id=own) for title, own in (("A", "7"), ("B", "8"), ("C", "7"))]
    build_bm25(chunks, tmp_path / "index")
    searching = Bm25Retriever(tmp_path / "index")
    (question,), _ = with_gold_in_index(searching, [Question("q", "?", gold=Gold(corpus_ids=("7", "8")))])
    assert [passage.title for passage in question.gold_passages] == ["A", "C", "B"]
    found = [[Ranked(Passage.of("Z", "no gold"), 2.0), Ranked(chunks[2], 1.0)]]
    scores = {name: value.tolist() for name, value in retrieval_scores([question], found, (1, 2)).items()}
    assert {name: scores[name] for name in ("recall@1", "recall@2", "all@2", "hit@2", "precision@2", "MRR")} == {
        "recall@1": [0.0], "recall@2": [0.5], "all@2": [0.0], "hit@2": [1.0], "precision@2": [0.5], "MRR": [0.5],
    }  # fmt: skip
    whole = retrieval_scores([question], [[Ranked(passage, 1.0) for passage in chunks]], (2,))
    assert (whole["recall@2"].tolist(), whole["precision@2"].tolist(), whole["EM"].tolist()) == ([1.0], [1.0], [1.0])


def test_a_passage_is_found_by_every_id_that_the_corpus_gives_it(tmp_path, encoder) -> None:
    """Indexed once, under 1; the corpus has it under 2, twice, and under 3, whose other passage is its own."""
    rows = [("1", "A"), ("1", "B"), ("2", "A"), ("2", "A"), ("3", "A"), ("3", "C"), ("", "B")]
    passages = [Passage.of(title, "a text", corpus_id=own) for own, title in rows]
    build_bm25(passages, tmp_path / "bm25")
    build_dense(passages, tmp_path / "dense", encoder)
    for searching in (Bm25Retriever(tmp_path / "bm25"), DenseRetriever(tmp_path / "dense", "cpu")):
        asked = [Question("q", "?", gold=Gold(corpus_ids=(own,))) for own in ("1", "2", "3")]
        found, _ = with_gold_in_index(searching, asked)
        named = [[passage.title for passage in question.gold_passages] for question in found]
        assert named == [["A", "B"], ["A"], ["A", "C"]]


@pytest.mark.parametrize(
    "question",
    [
        shipped(ALBA, unshipped=("Dorn",)),  # two passages have that title
        shipped(ALBA, unshipped=("Elbe",)),
        shipped(ALBA, Passage.of("Elbe", "is elsewhere")),
        Question("q", "?", gold=Gold(corpus_ids=("a-1", "z-1"))),
        Question("q", "?", answers=("no gold passage is known",)),
    ],
)
def test_a_question_without_all_its_gold_passages_is_left_out(retriever, question) -> None:
    assert titles(retriever, question) is None


def test_what_was_left_out_is_said(retriever) -> None:
    questions = [shipped(ALBA), shipped(unshipped=("Elbe",)), shipped(unshipped=("Fulda",)), Question("q", "?")]
    found, lines = with_gold_in_index(retriever, [*questions, shipped(unshipped=("Dorn",))])
    assert len(found) == 1
    assert "2 of 5 questions are left out" in lines[0]
    assert lines[1] == "1 questions are left out that name a gold passage by a title that several have"
    assert lines[2] == "1 questions are left out that name no gold passage"
    assert found[0].gold.titles == ()


def test_gold_passages_that_are_not_there_count_as_missed(retriever) -> None:
    """Of the first two of three gold passages are in the index; of the last none."""
    asked = [
        shipped(ALBA, Passage.of("Elbe", "elsewhere"), unshipped=("Brune", "Fulda")),
        Question("q", "?", gold=Gold(corpus_ids=("a-1", "z-1", "b-1"))),
        shipped(ALBA, unshipped=("Dorn",)),  # which of the two is gold is not known
        Question("q", "?", gold=Gold(corpus_ids=("z-1",))),
        shipped(BRUNE),
        Question("q", "?"),
    ]
    found, lines = with_gold_in_index(retriever, asked, missed=True)
    assert "3 of 6 questions have some that are not there and count as missed" in lines[0]
    assert len(lines) == 3
    assert [[passage.title for passage in question.gold_passages] for question in found] == [
        ["Alba", "Brune"], ["Alba", "Brune"], [], ["Brune"],
    ]  # fmt: skip
    hits = [[Ranked(ALBA, 2.0), Ranked(BRUNE, 1.0)]] * 4
    recall = retrieval_scores(found, hits, (1, 2))
    assert recall["recall@1"].tolist() == pytest.approx([1 / 4, 1 / 3, 0, 0])
    assert recall["recall@2"].tolist() == pytest.approx([2 / 4, 2 / 3, 0, 1])
    assert recall["all@2"].tolist() == [0, 0, 0, 1]


def test_a_system_without_an_index_is_refused() -> None:
    with pytest.raises(UserError, match="searches none"):
        with_gold_in_index(SimpleNamespace(retriever=None), [shipped(ALBA)])


def write(path: Path, rows: list[dict]) -> str:
    path.write_text(json.dumps(rows), encoding="utf-8")
    return str(path)


def row(id_: str, *gold: str | int, **more) -> dict:
    return {"id": id_, "question": f"Which is {id_}?", "answer": "x", "gold_doc_ids": list(gold), **more}


def test_the_layout_of_questions_over_a_corpus(tmp_path) -> None:
    file = write(tmp_path / "q.json", [row("q1", "a", "b", "a", hops=3, answer_aliases=["y"])])
    (question,) = read_questions("corpus_questions", file)
    assert (question.gold.corpus_ids, question.kind, question.answers) == (("a", "b"), "3hop", ("x", "y"))
    (question,) = read_questions("corpus_questions", write(tmp_path / "q.json", [row("q", 7, "7", 0) | {"id": 17}]))
    assert (question.id, question.gold.corpus_ids) == ("17", ("7", "0"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gold_doc_ids": ["a", 7.0]}, "item 2 of field 'gold_doc_ids' is the number 7.0, not a string or an integer"),
        ({"gold_doc_ids": [True]}, "item 1 of field 'gold_doc_ids' is true or false, not a string or an integer"),
        ({"id": 7.0}, "field 'id' is the number 7.0, not a string or an integer"),
        ({"id": False}, "field 'id' is true or false, not a string or an integer"),
    ],
)
def test_an_id_that_is_none_is_named(tmp_path, change, message) -> None:
    broken = write(tmp_path / "broken.json", [row("q1", "a"), row("q2", "a") | change])
    with pytest.raises(DataError, match=rf"row 2 .*: {message}"):
        list(read_questions("corpus_questions", broken))


@pytest.fixture
def place(tmp_path: Path, retriever) -> Path:
    """Two files of questions beside the index, of which one question is in both, and one is not answered by it."""
    write(tmp_path / "one.json", [row("q1", "a-1", question="a river"), row("q2", "z-1")])
    write(
        tmp_path / "two.json",
        [row("q1", "a-1", question="a  river"), row("q3", "b-1", "two", question="one or one lake")],
    )
    return tmp_path


def evaluate(questions: str, *more: str) -> list[str]:
    bm25 = ("--system.retriever", "harness.retrievers.bm25.Bm25Retriever", "--system.retriever.index", "index")
    return [
        "infer.py", "evaluate", "--system", "harness.systems.retrieve_read.RetrieveRead", *bm25, "--questions",
        questions, "--layout", "corpus_questions", "--out", "report", "--ks", "[1]", "--resamples", "50", *more,
    ]  # fmt: skip


def test_recall_over_several_files_with_gold_in_the_index(place) -> None:
    ended = command(place, *evaluate("[one.json, two.json]", "--gold", "index"))
    assert ended.code == 0, ended.err
    found = cells(place / "report")
    # q1 finds its Alba; q3 finds the other passage Dorn, and Brune: one of its two
    for row, values in (("recall of gold passages", [50, 75]), ("all gold passages found", [50, 50])):
        assert [found["evidence", row, column] for column in ("1 first %", "2 first %")] == values
    record = report(place / "report")["questions"]
    assert (record["source"], record["asked"], record["measured"]) == (["one.json", "two.json"], 3, 2)
    assert (record["gold"], len(record["sha256"])) == ("index", 2)


def test_recall_with_gold_outside_of_the_index_counted_as_missed(place) -> None:
    ended = command(place, *evaluate("[one.json, two.json]", "--gold", "index", "--missing_gold", "missed"))
    assert ended.code == 0, ended.err
    found = cells(place / "report")  # q1 1 and q3 1 of 2, as above; q2's is not there
    assert [found["evidence", "recall of gold passages", f"{k} first %"] for k in (1, 2)] == [
        pytest.approx(100 / 3, abs=0.01), 50,
    ]  # fmt: skip
    assert report(place / "report")["questions"]["missing_gold"] == "missed"


def test_without_gold_in_the_index_recall_is_not_measured(place) -> None:
    ended = command(place, *evaluate("one.json", "--gold", "file"))
    assert ended.code == 0, ended.err
    assert reasons(place / "report")["evidence", "recall of gold passages", "1 first %"]


def test_what_names_no_gold_passage_of_the_index_is_refused(place) -> None:
    write(place / "none.json", [row("q2", "z-1")])
    refused(command(place, *evaluate("none.json", "--gold", "index")), 2, "gold")
    refused(command(place, *evaluate("[]", "--gold", "index")), 2, "questions names no file")
    refused(command(place, *evaluate("one.json", "--missing_gold", "missed")), 2, "--gold index")
