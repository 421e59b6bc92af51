"""Questions that name gold passages by a corpus's own ids.

Read with the corpus they are the same as questions that ship these.
"""

import json
from pathlib import Path

import pytest

from common.errors import DataError, UserError
from common.records import Passage, Question
from datamodules.drrag import DrRagData
from datamodules.examples.data_files import QuestionDataFile
from datamodules.formats.gold_in_corpus import read_questions_with_gold
from datamodules.formats.mined_negatives import Mined
from tests.helpers.mined_files import write_mined
from tests.helpers.tiny_runs import set_up
from trainers.drrag import DrRagTrainer

LAYOUT = "corpus_questions"
CORPUS = [{"_id": f"d{number}", "title": f"Title {number}", "text": f"text of {number}"} for number in range(6)]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run in, with corpus.jsonl and questions.jsonl.

    The gold passages of question i are d0 and those after it.
    """
    write(tmp_path / "corpus.jsonl", CORPUS)
    write(tmp_path / "questions.jsonl", [asked(number, "d0", f"d{1 + number % 3}") for number in range(12)])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(file: Path, rows: list[dict[str, object]]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def asked(number: int, *gold: str) -> dict[str, object]:
    return {"id": f"q{number}", "question": f"Which one is {number}?", "gold_doc_ids": list(gold)}


def read(questions: str = "questions.jsonl", **options: object) -> list[Question]:
    return list(read_questions_with_gold(LAYOUT, questions, **({"corpus": "corpus.jsonl"} | options)))  # type: ignore[arg-type]


def test_the_gold_passages_become_passages_of_the_question(place: Path) -> None:
    first, second = read(limit=2)
    assert [(p.title, p.text, p.corpus_id) for p in first.gold_passages] == [
        ("Title 0", "text of 0", "d0"),
        ("Title 1", "text of 1", "d1"),
    ]
    assert [p.title for p in second.gold_passages] == ["Title 0", "Title 2"]
    assert first.gold.corpus_ids == ()


def test_texts_that_the_corpus_has_twice_are_one_gold_passage(place: Path) -> None:
    write(place / "corpus.jsonl", [CORPUS[0], CORPUS[0] | {"_id": "again"}, CORPUS[1]])
    write(place / "questions.jsonl", [asked(1, "again", "d0", "d1")])
    assert [p.title for p in read()[0].gold_passages] == ["Title 0", "Title 1"]


def test_all_passages_of_a_gold_id_are_gold(place: Path) -> None:
    chunks = [CORPUS[0], CORPUS[1], CORPUS[2] | {"_id": "d0"}, CORPUS[0], CORPUS[3] | {"_id": 7}]
    write(place / "corpus.jsonl", chunks)
    write(place / "questions.jsonl", [asked(1, "d0", "d1") | {"gold_doc_ids": ["d1", "d0", 7]}])
    (question,) = read()
    assert [p.title for p in question.gold_passages] == ["Title 1", "Title 0", "Title 2", "Title 3"]
    one, zero, two, three = (p.id for p in question.gold_passages)
    assert question.gold_groups == ({one}, {zero, two}, {three})


def test_a_cell_of_several_ids_is_parted_where_the_corpus_has_all_parts_and_not_the_whole(place: Path) -> None:
    write(place / "corpus.jsonl", [*CORPUS, {"_id": "d1, d2", "title": "Both", "text": "one id"}])
    cells = ("d1,d3", " d3 ; d4;", "d1, d2", "d1,d9", "d1|d3")
    write(place / "questions.jsonl", [asked(number, cell) for number, cell in enumerate(cells)])
    assert [(each.id, [p.title for p in each.gold_passages]) for each in read()] == [
        ("q0", ["Title 1", "Title 3"]),
        ("q1", ["Title 3", "Title 4"]),
        ("q2", ["Both"]),
    ]


def test_questions_without_all_their_gold_passages_are_left_out_and_counted_once(place: Path, capsys) -> None:
    write(place / "some.jsonl", [asked(1, "d0", "d9"), asked(2, "d1"), asked(3, "d8")])
    assert [question.id for question in read("some.jsonl")] == ["q2"]
    assert len(read("some.jsonl")) == 1
    assert capsys.readouterr().err == (
        "some.jsonl: 2 of 3 questions are left out, for want of gold passages in corpus.jsonl, such as 'd9' of "
        "question 'q1'.\n"
    )


@pytest.mark.parametrize(
    ("gold", "corpus", "error", "message"),
    [
        (["d0", "d9"], "corpus.jsonl", DataError, "gold passage 'd9' of question 'q1' is not in corpus.jsonl"),
        (["d0"], None, UserError, "questions.jsonl names its gold passages by the ids of a corpus, such as 'd0'"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    place: Path, gold: list[str], corpus: str | None, error: type[Exception], message: str
) -> None:
    write(place / "questions.jsonl", [asked(1, *gold)])
    with pytest.raises(error, match=message):
        read(corpus=corpus)


def test_training_draws_the_same_triples_as_from_a_file_that_ships_its_passages(
    place: Path, checkpoints: dict[str, Path]
) -> None:
    rows = [
        {
            "_id": question.id, "question": question.text, "answer": "x", "type": "bridge", "level": "hard",
            "supporting_facts": [[p.title, 0] for p in question.gold_passages],
            "context": [[p.title, [p.text]] for p in question.gold_passages],
        }
        for question in read()
    ]  # fmt: skip
    (place / "shipped.json").write_text(json.dumps(rows))
    noise = Mined([Passage.of(str(row["title"]), str(row["text"])) for row in CORPUS[4:]])
    write_mined(place / "mined.jsonl", [(f"q{number}", noise) for number in range(12)])

    def triples(source: QuestionDataFile) -> list[tuple[str, str, str, bool]]:
        data = DrRagData([source], validation_fraction=0.4, hard_negatives=["mined.jsonl"], cache=None)
        set_up(data, DrRagTrainer(str(checkpoints["bert"]), max_tokens=96).load())
        drawn = [*data._epoch(0).examples, *data.validation_triples]
        return [(each.question.text, each.first.text, each.second.text, each.positive) for each in drawn]

    source = QuestionDataFile("questions.jsonl", LAYOUT, corpus="corpus.jsonl")
    expected = triples(QuestionDataFile("shipped.json", "hotpotqa"))
    assert triples(source) == expected
    assert len(expected) > 24
    assert DrRagData([source]).files == ["questions.jsonl", "corpus.jsonl"]
