"""Questions whose gold passages are looked up in the index: by text, by title and by the corpus's own ids.

Also files of questions together.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from common.errors import DataError, UserError
from common.records import Gold, Passage, Question, Ranked
from datamodules.formats.reading import read_questions
from harness.evaluation.gold_in_index import with_gold_in_index
from harness.evaluation.retrieval_scores import retrieval_scores
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.dense import DenseRetriever, build_dense
from tests.helpers.commands import Ended, command, refused
from tests.helpers.reports import cells, reasons, report

ALBA, BRUNE = Passage.of("Alba", "A river.", corpus_id="a-1"), Passage.of("Brune", "A lake.", corpus_id="b-1")
DORN = [Passage.of("Dorn", text, corpus_id=text) for text in ("one", "two")]


@pytest.fixture
def retriever(tmp_path: Path) -> SimpleNamespace:
    build_bm25([ALBA, BRUNE, *DORN], tmp_path / "index")
    return SimpleNamespace(retriever=Bm25Retriever(tmp_path / "index"))


def shipped(*gold: Passage, unshipped: tuple[str, ...] = ()) -> Question:
    ids = tuple(passage.id for passage in gold)
    passages = (Passage.of("Other", "no gold"), *gold)
    return Question("q", "?", passages=passages, support=ids, gold=Gold(titles=unshipped))


def named(*ids: str, **more: Any) -> Question:
    return Question("q", "?", gold=Gold(corpus_ids=ids, **more))


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        (shipped(ALBA, BRUNE), ["A river.", "A lake."]),
        (shipped(unshipped=("Alba", "Brune")), ["A river.", "A lake."]),
        (shipped(Passage.of("Alba", "another cut of it"), BRUNE), ["A lake.", "A river."]),
        (shipped(DORN[1]), ["two"]),  # its text says which of both
        (named("b-1", "two"), ["A lake.", "two"]),
        (named("b-1; two"), ["A lake.", "two"]),
        (named("b-1", "a-1", grades=(("b-1", 0.5), ("a-1", 0.25), ("two", 0.0))), ["A lake.", "A river."]),
        (named("b-1; none"), None),  # a question without all its gold passages is left out
        (shipped(ALBA, unshipped=("Dorn",)), None),  # two passages have that title
        (shipped(ALBA, unshipped=("Elbe",)), None),
        (shipped(ALBA, Passage.of("Elbe", "is elsewhere")), None),
        (named("a-1", "z-1"), None),
        (Question("q", "?", answers=("no gold passage is known",)), None),
    ],
)
def test_gold_passages(retriever: SimpleNamespace, question: Question, texts: list[str] | None) -> None:
    """By text, by title, and by the corpus's own ids."""
    found, _ = with_gold_in_index(retriever, [question])
    assert [[passage.text for passage in each.gold_passages] for each in found] == ([texts] if texts else [])


def test_all_passages_of_an_id_are_gold_and_one_of_them_finds_it(tmp_path) -> None:
    """Gold are the two passages of 7 and one of 8; found is the second of 7, at rank 2 of 2."""
    chunks = [Passage.of(title, "a text", corpus_id=own) for title, own in (("A", "7"), ("B", "8"), ("C", "7"))]
    build_bm25(chunks, tmp_path / "index")
    searching = Bm25Retriever(tmp_path / "index")
    (question,), _ = with_gold_in_index(searching, [named("7", "8")])
    assert [passage.title for passage in question.gold_passages] == ["A", "C", "B"]
    found = [[Ranked(Passage.of("Z", "no gold"), 2.0), Ranked(chunks[2], 1.0)]]
    names = ("recall@1", "recall@2", "all@2", "hit@2", "precision@2", "MRR")
    scores = retrieval_scores([question], found, (1, 2))
    assert [scores[each].item() for each in names] == [0.0, 0.5, 0.0, 1.0, 0.5, 0.5]
    whole = retrieval_scores([question], [[Ranked(passage, 1.0) for passage in chunks]], (2,))
    assert [whole[each].item() for each in ("recall@2", "precision@2", "EM")] == [1.0, 1.0, 1.0]


def test_a_passage_is_found_by_every_id_that_the_corpus_gives_it(tmp_path, encoder) -> None:
    """Indexed once, under 1; the corpus has it under 2, twice, and under 3, whose other passage is its own."""
    rows = [("1", "A"), ("1", "B"), ("2", "A"), ("2", "A"), ("3", "A"), ("3", "C"), ("", "B")]
    passages = [Passage.of(title, "a text", corpus_id=own) for own, title in rows]
    build_bm25(passages, tmp_path / "bm25")
    build_dense(passages, tmp_path / "dense", encoder)
    for searching in (Bm25Retriever(tmp_path / "bm25"), DenseRetriever(tmp_path / "dense", "cpu")):
        found, _ = with_gold_in_index(searching, [*map(named, "123")])
        of_ids = [[passage.title for passage in question.gold_passages] for question in found]
        assert of_ids == [["A", "B"], ["A"], ["A", "C"]]


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
    asked = [shipped(ALBA, Passage.of("Elbe", "elsewhere"), unshipped=("Brune", "Fulda")), named("a-1", "z-1", "b-1")]
    # which of the two is gold is not known
    asked += [shipped(ALBA, unshipped=("Dorn",)), named("z-1"), shipped(BRUNE), Question("q", "?")]
    found, lines = with_gold_in_index(retriever, asked, missed=True)
    assert "3 of 6 questions have some that are not there and count as missed" in lines[0]
    assert "1 of 3 judged passages are not there, such as 'z-1'" in lines[1]
    assert len(lines) == 4
    titles = [[passage.title for passage in question.gold_passages] for question in found]
    assert titles == [["Alba", "Brune"], ["Alba", "Brune"], [], ["Brune"]]
    recall = retrieval_scores(found, [[Ranked(ALBA, 2.0), Ranked(BRUNE, 1.0)]] * 4, (1, 2))
    assert recall["recall@1"].tolist() == pytest.approx([1 / 4, 1 / 3, 0, 0])
    assert recall["recall@2"].tolist() == pytest.approx([2 / 4, 2 / 3, 0, 1])
    assert recall["all@2"].tolist() == [0, 0, 0, 1]


def write(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text(json.dumps(rows), encoding="utf-8")
    return str(path)


def row(id_: str, *gold: str | int, **more: Any) -> dict[str, Any]:
    return {"id": id_, "question": f"Which is {id_}?", "answer": "x", "gold_doc_ids": list(gold), **more}


def test_the_layout_of_questions_over_a_corpus(tmp_path: Path) -> None:
    rows = row("q1", "a", "b", "a", hops=3, answer_aliases=["y"]), row("q", 7, "7", 0) | {"id": 17, "hops": 2}
    question, other = read_questions("corpus_questions", write(tmp_path / "q.json", *rows))
    assert (question.gold.corpus_ids, question.kind, question.answers) == (("a", "b"), "3hop", ("x", "y"))
    assert (other.id, other.gold.corpus_ids) == ("17", ("7", "0"))


def test_an_id_that_is_none_is_named(tmp_path: Path) -> None:
    for change, what in (
        ({"gold_doc_ids": ["a", 7.5]}, "item 2 of field 'gold_doc_ids' is the number 7.5"),
        ({"gold_doc_ids": [True]}, "item 1 of field 'gold_doc_ids' is true or false"),
        ({"id": 7.5}, "field 'id' is the number 7.5"),
        ({"id": False}, "field 'id' is true or false"),
    ):
        broken = write(tmp_path / "broken.json", row("q1", "a"), row("q2", "a") | change)
        with pytest.raises(DataError, match=rf"row 2 .*: {what}, not a string or an integer"):
            list(read_questions("corpus_questions", broken))


def evaluate(place: Path, questions: str, *more: str) -> Ended:
    bm25 = ("--system.retriever", "harness.retrievers.bm25.Bm25Retriever", "--system.retriever.index", "index")
    system = ("--system", "harness.systems.retrieve_read.RetrieveRead", *bm25, "--layout", "corpus_questions")
    options = ("--out", "report", "--ks", "[1]", "--resamples", "50")
    return command(place, "infer.py", "evaluate", *system, "--questions", questions, *options, *more)


def test_the_command_measures_recall_with_gold_in_the_index(tmp_path: Path, retriever: SimpleNamespace) -> None:
    """Of two files of questions one question is in both, and one is not answered by the index."""
    write(tmp_path / "one.json", row("q1", "a-1", question="a river"), row("q2", "z-1"))
    third = row("q3", "b-1", "two", question="one or one lake")
    write(tmp_path / "two.json", row("q1", "a-1", question="a  river"), third)
    recall, every = "recall of gold passages", "all gold passages found"
    for more, figures, measured in (
        # q1 finds its Alba; q3 finds the other passage Dorn, and Brune: one of its two
        ((), {recall: [50, 75], every: [50, 50]}, 2),
        (("--missing_gold", "missed"), {recall: [pytest.approx(100 / 3, abs=0.01), 50]}, 3),
    ):
        ended = evaluate(tmp_path, "[one.json, two.json]", "--gold", "index", *more)
        assert ended.code == 0, ended.err
        found, record = cells(tmp_path / "report"), report(tmp_path / "report")["questions"]
        for name, values in figures.items():
            assert [found["evidence", name, column] for column in ("1 first %", "2 first %")] == values
        assert (record["source"], record["asked"], record["measured"]) == (["one.json", "two.json"], 3, measured)
        assert (record["gold"], len(record["sha256"])) == ("index", 2)
    assert record["missing_gold"] == "missed"
    ended = evaluate(tmp_path, "one.json", "--gold", "file")
    assert ended.code == 0, ended.err
    assert reasons(tmp_path / "report")["evidence", recall, "1 first %"]


def test_what_names_no_gold_passage_of_the_index_is_refused(tmp_path: Path, retriever: SimpleNamespace) -> None:
    write(tmp_path / "none.json", row("q2", "z-1"))
    for questions, option, value, message in (
        ("none.json", "--gold", "index", "gold"),
        ("none.json", "--missing_gold", "missed", "--gold index"),
    ):
        refused(evaluate(tmp_path, questions, option, value), 2, message)
    with pytest.raises(UserError, match="searches none"):
        with_gold_in_index(SimpleNamespace(retriever=None), [shipped(ALBA)])
