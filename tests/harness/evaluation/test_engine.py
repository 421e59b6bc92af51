"""The evaluation engine: what it measures of any system, and that a study's answers are those of its system.

Judging: what is asked once, costs, hit rate and precision by hand.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from common.chat import Chat, Reply
from common.errors import ArtifactError
from common.records import Answer, Gold, Passage, Question
from datamodules.cache.splits import split_questions
from datamodules.examples.data_files import QuestionDataFile
from harness.commands.evaluate import evaluate
from harness.evaluation.engine import MeasuredSystem, measure, measures_of
from harness.evaluation.judge import Judge
from harness.evaluation.judging import hit_and_precision, judge_costs_table
from harness.evaluation.question_files import QuestionFiles
from harness.evaluation.rerag.study import Study as ReRagStudy
from harness.evaluation.settings import Bootstrap, Settings
from harness.evaluation.trec import measure_names
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.runtime.memo import Memo
from harness.runtime.provenance import construct
from harness.systems.drrag import DrRag
from harness.systems.rerag import ReRag
from harness.systems.retrieve_read import RetrieveRead
from models.cross_encoder import RelevanceEstimator
from tests.conftest import hotpot_rows
from tests.helpers import rerag_world
from tests.helpers.reports import report
from tests.helpers.river_corpus import IDS, PASSAGES, QUESTIONS, gold_scorer, write_index, write_questions
from tests.helpers.studied import Titles, rows_of
from tests.helpers.tolerances import model_close

ASKED = [
    Question(id_, text, ("Alba, Alba (ship)",), tuple(PASSAGES.values()), tuple(map(IDS.__getitem__, gold)), kind=kind)
    for id_, text, kind, gold in QUESTIONS
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_index(tmp_path_factory.mktemp("index"))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings("hotpotqa", "squad", (1, 5), None, Bootstrap(50, 0), tmp_path / "partial")


def values(measured: MeasuredSystem, table: str, row: str) -> list[float | None]:
    return [value if value is None else round(value, 3) for value in rows_of(measured.tables, table)[row]]


# --- any system


def test_a_strategy_without_a_study_has_answers_evidence_and_costs(index: Path, settings: Settings) -> None:
    measured = measure(RetrieveRead(Bm25Retriever(index), k=2, reader=Titles()), ASKED, None, settings)
    assert (measured.word, 0 < measured.seconds < 60) == ("retrieve_read", True)
    assert [table.name for table in measured.tables] == ["answers", "answers by kind", "evidence", "costs", "judged"]
    # BM25 finds the first gold passage of q1 and q2, and both of q3, first
    third, two = round(100 / 3, 3), round(200 / 3, 3)
    assert [hit.passage.title for hit in measured.answers[0].evidence] == ["Alba", "Alba (ship)"]
    assert values(measured, "answers", "ours, squad")[0] == third  # q1
    assert values(measured, "answers by kind", "bridge")[:2] == [2, 50]
    expected = {"recall of gold passages": [50, two], "hit rate by gold passages": [100, 100], "MRR": [None, 100]}
    expected |= {"precision by gold passages": [100, two], "F1 of the passages": [None, two]}
    expected |= {"EM of the passages": [None, third]}  # q3's two
    assert {row: values(measured, "evidence", row) for row in expected} == expected
    (costs,) = (table for table in measured.tables if table.name == "costs")
    found = dict(zip(costs.columns, values(measured, "costs", "retrieve_read"), strict=True))
    assert (found["retriever calls"], found["model calls"]) == (1, 2)
    assert measured.measures.keys() == measured.systems.keys() == {"retrieve_read"}
    measures = measured.measures["retrieve_read"]
    assert (measures["EM"].tolist(), measures["recall of gold"].tolist()) == ([1, 0, 0], [0.5, 0.5, 1])


def test_measures_are_undefined_where_the_file_lacks_what_they_need(index: Path, settings: Settings) -> None:
    changes: list[dict[str, Any]] = [{"answers": ()}, {"support": ()}, {"gold": Gold(titles=("Nowhere",))}]
    asked = [replace(each, **change) for each, change in zip(ASKED, changes, strict=True)]
    measured = measure(RetrieveRead(Bm25Retriever(index), k=2, reader=Titles()), asked, None, settings)
    found = {name: (~np.isnan(each_N)).tolist() for name, each_N in measured.measures["retrieve_read"].items()}
    answered = {name: [False, True, True] for name in ("EM", "F1", "Acc", "has-answer recall")}
    names = ("recall of gold", "hit", "MRR", "Log-Rank", *measure_names())
    gold = {name: [True, False, False] for name in names}
    assert found == answered | gold
    assert values(measured, "answers", "ours, squad")[0] == 0  # of two questions
    assert values(measured, "evidence", "recall of gold passages") == [50, 50]  # of one
    nothing = measures_of(ASKED, [Answer(each.id, "", ()) for each in ASKED], settings)
    assert np.isnan(nothing["EM"]).all()
    assert all(nothing[name].tolist() == [0, 0, 0] for name in ("recall of gold", "hit", "MRR", "has-answer recall"))


class Asks:
    """Retrieve-then-read that takes no memo, and counts what it is asked."""

    asked: ClassVar[list[str]] = []

    def __init__(self, index: Path, k: int) -> None:
        self.index, self.k = index, k

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        """One answer per question; none to the second one."""
        self.asked.extend(question.id for question in questions)
        found = RetrieveRead(Bm25Retriever(self.index), self.k, Titles()).answer(questions)
        failed: dict[str, Any] = {"text": "", "logprob": None, "notes": {"error": "busy"}}
        return [replace(each, **failed) if each.question_id == "q2" else each for each in found]


def test_what_failed_is_asked_again(index: Path, settings: Settings) -> None:
    kept = replace(settings, memo=settings.partial / "memo")
    plain = RetrieveRead(Bm25Retriever(index), k=2, reader=Titles()).answer(ASKED)
    for expected in (["q1", "q2", "q3"], ["q2"]):
        Asks.asked.clear()
        measured = measure(construct(Asks, index=index, k=2), ASKED, None, kept)
        assert Asks.asked == expected
        assert [a.evidence for a in measured.answers] == [a.evidence for a in plain]
        assert [a.text for a in measured.answers] == [plain[0].text, "", plain[2].text]
        assert [*measured.failed.reasons] == ["q2"]
        assert list(measured.systems) == list(measured.measures) == ["test_engine"]


# --- a study's answers are the system's


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    """A reranker without a generator."""
    folder = tmp_path_factory.mktemp("rerag") / "serving"
    return rerag_world.write_serving(checkpoints["t5"], folder, generator=None, max_tokens=96)


def test_a_reranker_without_a_generator_scores_once_what_the_system_answers(
    serving: Path, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passages, scored, scores = rerag_world.corpus(), list[Any](), RelevanceEstimator.scores
    build_bm25(passages, tmp_path / "bm25")
    asked = rerag_world.questions(passages)  # each with an answer that is in some passage
    asked = [replace(each, answers=(each.passages[0].text.split()[0],)) for each in asked]
    options: dict[str, Any] = {"candidates": 6, "contexts": 3, "device": "cpu", "threshold": 0.5, "abstain": True}
    system = ReRag(Bm25Retriever(tmp_path / "bm25"), serving, **options)
    expected = system.answer(asked)
    watched = wraps(scores)(lambda self, pairs: (scored.extend(pairs), scores(self, pairs))[1])
    monkeypatch.setattr(RelevanceEstimator, "scores", watched)
    measured = measure(system, [*asked, replace(asked[0], id="x", answers=())], ReRagStudy(), settings)
    pairs = [(question, passage.id) for question, passage in scored]
    assert len(pairs) == len({*pairs}) > 0
    assert [each.costs["model_calls"] for each in (*measured.answers, *expected)] == [6] * 11
    for found, other in zip(measured.answers, expected, strict=False):
        assert (found.text, found.logprob) == (other.text, other.logprob)
        assert [hit.passage for hit in found.evidence] == [hit.passage for hit in other.evidence]
        assert [hit.score for hit in found.evidence] == model_close([hit.score for hit in other.evidence])
        assert found.notes.keys() == other.notes.keys()
        assert found.notes["answerable"] == other.notes["answerable"]
    assert list(measured.systems) == ["rerag"]
    assert "refusal threshold: 0.5, given" in measured.findings.facts


# --- whole evaluations


def test_an_index_of_another_corpus(tmp_path: Path, serving: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is refused by the study of gold passages, and noted by others."""
    build_bm25([Passage.of("Other", "alba river of quite another corpus")], tmp_path / "other")
    file, other = str(write_questions(tmp_path)), Bm25Retriever(tmp_path / "other")
    with pytest.raises(
        ArtifactError, match=r"other is an index of another corpus: it holds none of the 6 gold .* --kind bm25 "
    ):
        evaluate(DrRag(other, scorer=gold_scorer()), tmp_path / "refused", questions=file, resamples=10)
    assert not list(tmp_path.glob("refused*"))
    for system in (RetrieveRead(other), ReRag(other, serving, 2, 1, device="cpu")):
        evaluate(system, tmp_path / "noted", questions=file, resamples=10)
        line = "Note: " + str(tmp_path / "other") + " is an index of another corpus: it holds none of the 6 gold"
        assert line in capsys.readouterr().err
        assert f"- {line}" in (tmp_path / "noted" / "report.md").read_text()
        assert report(tmp_path / "noted")["questions"]["gold passages not in the index"] is None
        assert all(means["recall of gold"] == 0 for means in report(tmp_path / "noted")["means"].values())


def test_what_a_training_holds_out_is_asked(tmp_path: Path) -> None:
    file, system = tmp_path / "train.json", RetrieveRead(None)  # type: ignore[arg-type]
    file.write_text(json.dumps(hotpot_rows(24)))
    split = split_questions([QuestionDataFile(str(file), "hotpotqa")], [], 0.4)
    held_out = [question.id for question in split.held_out]
    assert 3 <= len(held_out) <= 21
    files = QuestionFiles(str(file), "hotpotqa", validation_split=0.4)
    asked = files.read(system)
    assert [question.id for question in asked.questions] == held_out
    assert "0.4" in asked.facts[0]
    assert [question.id for question in replace(files, limit=2).read(system).questions] == held_out[:2]


# --- judging


class Priced:
    """Finds everything relevant, replies nonsense on the third question, and is busy after some replies of a call."""

    name = "priced"

    def __init__(self, replies: int = 9) -> None:
        self.replies = replies

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        odd = ["question 3" in "".join(message.content for message in chat.messages) for chat in chats]
        texts = ["nothing" if each else '{"reason": "so", "relevant": true}' for each in odd]
        replies = [Reply(text, usd=0.5, prompt_tokens=7, reply_tokens=2, retries=1) for text in texts]
        return [each if place < self.replies else Reply("", "503: busy") for place, each in enumerate(replies)]


def cases(*numbers: int) -> list[tuple[Question, Passage]]:
    return [(Question(f"q{number}", f"question {number}"), Passage.of("t", "x")) for number in numbers]


def test_a_call_that_failed_is_made_again_by_the_next_run(tmp_path: Path) -> None:
    """A judge that is not known saves nothing."""
    for llm, failures in (
        (Priced(), ["", ""]),  # how it was made is not known
        (construct(Priced, replies=1), ["", "503: busy"]),
        (construct(Priced, replies=1), ["", ""]),  # one reused, one asked
    ):
        judge = construct(Judge, llm=llm)
        judge.verdicts = Memo(tmp_path).of("verdicts", judge)
        assert [each.failure for each in judge.on_passages(cases(0, 1))] == failures
        assert bool([*tmp_path.iterdir()]) is (llm.replies == 1)


@pytest.mark.parametrize(
    ("relevant", "expected"),
    [
        ([True, False], (1, 0.2)),
        ([False, False], (0, 0)),
        ([], (0, 0)),
        ([True, None], (1, math.nan)),
        ([False, None], (math.nan, math.nan)),
    ],
)
def test_hit_and_precision_by_hand(relevant: list[bool | None], expected: tuple[float, float]) -> None:
    """A failed verdict leaves open what it could change."""
    assert hit_and_precision(relevant, 5) == pytest.approx(expected, nan_ok=True)


def test_costs_of_all_rounds_are_summed_and_equal_requests_are_charged_once() -> None:
    verdicts = Judge(Priced(), repairs=2).on_passages(cases(1, 2, 3, 1))
    table = judge_costs_table({"passages": verdicts, "again": verdicts[:2]})
    rows = {
        name: dict(zip(table.columns, values, strict=True)) for name, values in rows_of([table], table.name).items()
    }
    assert verdicts[2].fields is None
    assert rows["all"] == rows["passages"]
    names = ("verdicts", "failed", "calls", "repairs", "tokens read", "tokens written", "US dollars")
    assert [rows["passages"][name] for name in names] == [3, 1, 5, 2, 35, 10, 2.5]
    assert rows["again"]["calls"] == 2
