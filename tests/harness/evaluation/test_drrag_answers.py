"""A reader behind `infer.py evaluate`: what it says of every selection's choice, with figures worked out by hand."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import infer
from common.records import Answer, Question, Ranked
from harness.commands.evaluate import evaluate
from harness.readers.t5 import PackedReader
from harness.retrievers.bm25 import Bm25Retriever
from harness.selection.options import SelectionOptions
from harness.strategies.drrag import DrRag
from models.rerag.generator import Generator
from tests.helpers.reports import cells, measured_cells, report
from tests.helpers.rerag_world import write_serving
from tests.helpers.river_corpus import QUESTIONS, gold_scorer, write_index, write_questions


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_index(tmp_path_factory.mktemp("index"))


class Titles:
    """Answers with the titles it was shown, in their order, and remembers how often it was asked about each set."""

    def __init__(self) -> None:
        self.read_sets: list[tuple[str, str]] = []

    def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
        texts = [", ".join(hit.passage.title for hit in hits) for hits in evidence]
        self.read_sets += [(question.id, text) for question, text in zip(questions, texts, strict=True)]
        return [
            Answer(question.id, text, tuple(hits))
            for question, hits, text in zip(questions, evidence, texts, strict=True)
        ]


def with_answers(folder: Path, answers: Sequence[str]) -> str:
    """The questions file with those answers."""
    file = Path(write_questions(folder))
    rows = json.loads(file.read_text(encoding="utf-8"))
    for row, answer in zip(rows, answers, strict=True):
        row["answer"] = answer
    file.write_text(json.dumps(rows), encoding="utf-8")
    return str(file)


def test_every_selection_is_read_and_judged(index: Path, tmp_path: Path) -> None:
    reader = Titles()
    strategy = DrRag(Bm25Retriever(index), scorer=gold_scorer(), reader=reader)
    # q1 is right where both hops are chosen in order, q2 never, q3 where the two best by similarity are
    sm_of_q3 = DrRag(Bm25Retriever(index), selection=SelectionOptions("sm", k=2)).answer(
        [Question("q3", QUESTIONS[2][1])]
    )
    titles = ", ".join(hit.passage.title for hit in sm_of_q3[0].evidence)
    questions = with_answers(tmp_path, ["Alba, Brune", "nothing", titles])
    evaluate(strategy, questions, tmp_path / "report", study={"ks": (2,)}, resamples=200, paper="hotpotqa")
    found = cells(tmp_path / "report")
    table = "answers, k = 2"
    assert found[table, "SM", "EM %"] == pytest.approx(100 / 3, abs=0.01)
    assert found[table, "CFS", "EM %"] == pytest.approx(200 / 3, abs=0.01)
    assert found[table, "CFS", "EM - SM, points"] == pytest.approx(100 / 3, abs=0.01)
    assert (table, "SM", "EM - SM, points") not in found
    # of q1, SM shows Alba and another: half of what it says is gold, and half of the gold is said
    assert found[table, "CFS", "F1 %"] > found[table, "SM", "F1 %"] > found[table, "SM", "EM %"]
    assert found[table, "SM", "time"] == 1
    assert found[table, "CFS", "time"] > 1
    assert len(set(reader.read_sets)) == len(reader.read_sets)  # each distinct choice is read once
    markdown = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "# DrRag: 3 questions of questions.json" in markdown
    assert "*paper:* DR-RAG (Table 2) | 48.58 |  | 62.87 | 55.68 | 1.00 | 1.40 |" in markdown
    assert "*paper:* gpt-4-turbo, CFS, 500 questions, k = 3 (Table 7) | 51.60 |  | 68.93 | 67.20 |  |  |" in markdown


def test_a_trained_reader_says_what_the_whole_strategy_says(
    index: Path, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    serving = write_serving(checkpoints["t5"], tmp_path / "serving", estimator=False, generator="packed", max_tokens=96)
    reader = PackedReader(serving, device="cpu")
    strategy = DrRag(Bm25Retriever(index), scorer=gold_scorer(), reader=reader, selection=SelectionOptions("cfs", k=2))
    asked = [Question(id_, text) for id_, text, *_ in QUESTIONS]
    texts = [answer.text for answer in strategy.answer(asked)]
    evaluate(
        strategy, with_answers(tmp_path, texts), tmp_path / "report", study={"ks": (2,), "rows": ["CFS"]}, resamples=50
    )
    assert all(texts)
    assert cells(tmp_path / "report")["answers, k = 2", "CFS", "EM %"] == 100


def test_an_interrupted_reading_goes_on(
    index: Path, checkpoints: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving = write_serving(checkpoints["t5"], tmp_path / "serving", estimator=False, generator="packed", max_tokens=96)
    questions = with_answers(tmp_path, ["a", "b", "c"])
    arguments = [
        "evaluate", "--strategy", "harness.strategies.drrag.DrRag", "--strategy.selection.method", "qdc",
        "--strategy.retriever", "harness.retrievers.bm25.Bm25Retriever", "--strategy.retriever.index", str(index),
        "--strategy.reader", "harness.readers.t5.PackedReader", "--strategy.reader.serving", str(serving), "--study.ks",
        "[1,2,3]", "--questions", questions, "--resamples", "50", "--out", str(tmp_path / "out"),
    ]  # fmt: skip
    monkeypatch.setattr("harness.evaluation.reading.CHOICES_AT_ONCE", 2)
    calls = []
    answers = Generator.answers

    def broken(self: Generator, *given) -> list[tuple[str, float]]:
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return answers(self, *given)

    monkeypatch.setattr(Generator, "answers", broken)
    with pytest.raises(KeyboardInterrupt):
        infer.main(arguments)
    assert (tmp_path / "out.partial" / "reading.jsonl").is_file()
    infer.main(arguments)
    resumed, found = len(calls), measured_cells(tmp_path / "out")
    assert not (tmp_path / "out.partial").exists()
    infer.main(arguments)
    assert len(calls) - resumed == resumed - 1  # each batch once, but for the one that was broken off
    assert measured_cells(tmp_path / "out") == found


def test_answers_stand_beside_what_they_were_read_from(index: Path, tmp_path: Path) -> None:
    strategy = DrRag(Bm25Retriever(index), scorer=gold_scorer(), reader=Titles())
    evaluate(
        strategy,
        with_answers(tmp_path, ["x", "y", ""]),
        tmp_path / "report",
        study={"ks": (2,), "rows": ["CFS"]},
        resamples=50,
    )
    lines = (tmp_path / "report" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    first, _, third = map(json.loads, lines)
    assert first["answers"] == ["x"]
    assert first["rows"]["CFS"]["2"]["answer"] == "Alba, Brune"
    assert third["rows"]["CFS"]["2"]["answer"] == ""  # nothing to compare with: not read
    assert [first["EM"], third["EM"]] == [0, None]
    assert "answers for 2." in (tmp_path / "report" / "report.md").read_text()


def test_without_gold_answers_nothing_is_read_and_recall_is_measured(index: Path, tmp_path: Path) -> None:
    strategy = DrRag(Bm25Retriever(index), scorer=gold_scorer(), reader=Titles())
    evaluate(strategy, with_answers(tmp_path, ["", "", ""]), tmp_path / "report", study={"ks": (2,)}, resamples=50)
    assert strategy.reader.read_sets == []
    found = cells(tmp_path / "report")
    assert found["recall, k = 2", "CFS", "recall %"] == 100
    assert {table for table, *_ in found if table.startswith(("answers", "EM"))} == {"answers"}
    reasons = report(tmp_path / "report")["not measured"]["answers"]
    assert reasons == {"ours": dict.fromkeys(("EM %", "F1 %", "Acc %"), "no question has a gold answer")}
