"""Questions that fail apart from the others, in every system and command; what ends a run all the same."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from common.errors import (
    ArtifactError,
    DataError,
    MissingInputError,
    RefusedError,
    SearchFailedError,
    SomeFailedError,
    UnavailableError,
    UserError,
)
from common.records import Answer, Passage, Question, Ranked
from harness.commands.evaluate import evaluate
from harness.commands.label import label
from harness.commands.mine import mine
from harness.commands.tune import tune
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.rerank import RerankedRetriever
from harness.runtime.answer_text import answer_text
from harness.runtime.failures import FailedQuestions, Failure, each_apart, failure_of
from harness.selection.options import SelectionOptions
from harness.systems.dmqr import Dmqr
from harness.systems.drrag import DrRag
from harness.systems.hiqa import HiQa
from harness.systems.rerag import ReRag
from harness.systems.retrieve_read import RetrieveRead
from tests.helpers.reports import questions as records_of
from tests.helpers.reports import report
from tests.helpers.rerag_world import write_serving
from tests.helpers.river_corpus import QUESTIONS, gold_scorer, write_index, write_questions
from tests.helpers.table_rewriter import CountingRetriever

BAD = QUESTIONS[1][1]
TEXTS = [text for _, text, *_ in QUESTIONS]
FAILED = "1 of 3 questions failed: q2: the part breaks"


class Fragile(Bm25Retriever):
    """Fails on one query."""

    error: Exception = UserError("the part breaks.\nTry again.")

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        if any(query.startswith(BAD) for query in queries):
            raise self.error
        return super().search(queries, k)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_index(tmp_path_factory.mktemp("index"))


@pytest.fixture
def fragile(index: Path) -> Fragile:
    return Fragile(index)


# --- batches


def doubled(bad: dict[int, Exception], sizes: list[int]) -> Callable[[Sequence[int]], list[int]]:
    def one(item: int) -> int:
        if item in bad:
            raise bad[item]
        return 2 * item

    return lambda items: sizes.append(len(items)) or [*map(one, items)]  # type: ignore[func-returns-value]


def shown(found: Sequence[int | Failure]) -> list[int | str]:
    return [each.reason if isinstance(each, Failure) else each for each in found]


def test_items_that_fail_are_found_one_by_one_and_the_others_are_done() -> None:
    sizes: list[int] = []
    work = doubled({2: UserError("two\nlines"), 4: SearchFailedError("four"), 5: TimeoutError()}, sizes)
    assert shown(each_apart(work, [1, 3])) == [2, 6]
    assert sizes == [2]  # a batch that succeeds is done once
    assert shown(each_apart(work, [1, 2, 3, 4, 5])) == [2, "two lines", 6, "four", "TimeoutError"]
    assert shown(each_apart(work, [2], first=True)) == ["two lines"]
    assert shown(each_apart(work, [2, 4])) == ["two lines", "four"]
    assert shown(each_apart(doubled({2: UserError("odd"), 4: UserError("odd")}, []), [2, 4])) == ["odd", "odd"]  # later
    assert shown(each_apart(work, [])) == []


ENDING = [UnavailableError, RefusedError, MissingInputError, ArtifactError, TypeError, BrokenPipeError]


@pytest.mark.parametrize(("error", "calls"), [(UserError, 4), *((error, 1) for error in ENDING)])
def test_what_ends_all(error: type[Exception], calls: int) -> None:
    """All of them for one reason; a service, a file or a bug whatever the others."""
    sizes: list[int] = []
    with pytest.raises(error):
        each_apart(doubled({n: error("why") for n in range(3)[-calls:]}, sizes), range(3), first=True)
    assert len(sizes) == calls


# --- systems


def test_every_system_answers_the_others(fragile: Fragile) -> None:
    second = DrRag(Bm25Retriever(fragile.folder), selection=SelectionOptions("qdc", k=2), second_retriever=fragile)
    for system in (RetrieveRead(fragile, 2), HiQa(fragile, 2), Dmqr(fragile, fusion="rrf"), second):
        found = system.answer(TEXTS)
        assert [(each.question_id, bool(each.evidence)) for each in found] == [("1", True), ("2", False), ("3", True)]
        assert [failure_of(each) for each in found] == ["", "the part breaks. Try again.", ""]
        with pytest.raises(UserError, match="the part breaks"):
            system.answer([TEXTS[1]])


def test_an_empty_question_and_one_that_is_not_text_fail_alone(index: Path) -> None:
    system = RetrieveRead(Bm25Retriever(index), 2)
    rows = [
        "alba river", "  ", "\udcff", None, ["alba", "river"], Question("q6", "alba", history=("\ud800",)),
        Question("q7", "\u200b \t"), Question("q8", 8), "alba\0 river", "river " * 20_000, Question("9" * 5000, "alba"),
    ]  # fmt: skip
    found = system.answer(rows)  # type: ignore[arg-type]
    assert [place for place, each in enumerate(found, start=1) if each.evidence] == [1, 9, 10, 11]
    reasons = ["2 is empty", "3 is not UTF-8", "4 is None", "5 is ['alba'", "q6 is not UTF-8", "q7 is empty", "q8 is 8"]
    for each, reason in zip(found[1:8], reasons, strict=True):
        assert failure_of(each).startswith(f"question {reason}")
    assert not any({"cut", "unknown_words"} & each.notes.keys() for each in found[1:8])
    with pytest.raises(DataError, match="question 1 is None"):
        system.answer([None])  # type: ignore[list-item]


def test_a_question_that_is_too_long_is_cut_and_the_others_answer_as_alone(index: Path, checkpoints, tmp_path) -> None:
    """Passages that are too long are counted in one line of the report."""
    serving, bm25 = write_serving(checkpoints["t5"], tmp_path / "serving"), Bm25Retriever(index)
    long = "alba river " * 60
    for system, models in (
        (ReRag(bm25, serving, 3, 2, device="cpu"), {"RelevanceEstimator", "T5Generator"}),
        (Dmqr(bm25, serving=serving, device="cpu"), {"MultiQueryRetriever", "RelevanceEstimator"}),
        (RetrieveRead(RerankedRetriever(bm25, serving, 5, "cpu"), 2), {"RerankedRetriever", "RelevanceEstimator"}),
    ):
        first, cut, last = system.answer([TEXTS[0], long, TEXTS[2]])
        assert [first.notes.get("cut"), last.notes.get("cut")] == [None, None]
        assert cut.notes["cut"].keys() == models  # type: ignore[attr-defined]
        for note in cut.notes["cut"].values():  # type: ignore[attr-defined]
            assert re.fullmatch(r"reads the first \d\d of the question's 1\d\d tokens", note)
        assert (failure_of(cut), bool(cut.evidence)) == ("", True)
        assert "RelevanceEstimator: reads the first " in answer_text(Question("1", long), cut)
        (alone,) = system.answer([TEXTS[0]])
        assert alone.text == first.text
        assert [hit.passage for hit in alone.evidence] == [hit.passage for hit in first.evidence]
    reranked = RetrieveRead(RerankedRetriever(bm25, serving, 3, "cpu"), 2)
    reranked.retriever.estimator.encode.max_tokens = 13  # the shortest input; the longest has 16
    evaluate(reranked, tmp_path / "out", questions=str(write_questions(tmp_path)), resamples=10)
    line = "- inputs that lost the end of a passage: 5 of 7 for RelevanceEstimator (13 tokens)"
    assert line in (tmp_path / "out/report.md").read_text().splitlines()


FAILURES = [
    (Answer("1", "Rome", (), notes={"error": "cut"}), ""),
    (Answer("1", "", (), notes={"error": "no reply"}), "no reply"),
    (Answer("1", "", (), costs={"failed_calls": 2}, notes={"contexts": [{"error": "a"}, {"error": "b"}]}), "a"),
    (Answer("1", "", (), -1.0, {"failed_calls": 1}, {"contexts": [{"error": "a"}, {}]}), ""),
    (Answer("1", "", (), costs={"failed_searches": 1}, notes={"queries": [{"error": "HTTP 500"}]}), "HTTP 500"),
    (Answer("1", "", (), costs={"failed_searches": 1}, notes={"queries": [{"error": "x"}, {"found": []}]}), ""),
    (Answer("1", "", (Ranked(Passage.of("", "a"), 1.0),)), ""),
]


@pytest.mark.parametrize(("answer", "why"), FAILURES)
def test_what_is_a_failure(answer: Answer, why: str) -> None:
    assert failure_of(answer) == why


def test_failed_questions_in_one_line() -> None:
    failed = FailedQuestions()
    failed.check()
    asked = [Question(f"q{n}", "who") for n in range(6)]
    failed.add(asked, [Answer(each.id, "", (), notes={"error": "no."} if n else {}) for n, each in enumerate(asked)])
    assert failed.failed == "5 of 6 questions failed: q1: no; q2: no; q3: no; and 2 more"
    failed.add(asked[:1], [Answer("q0", "a", (), notes={"cut": {"Generator": "reads ...", "LlmReader": "reads ..."}})])
    cut = "questions that are too long and were cut: 1 for Generator (the first: q0), 1 for LlmReader (the first: q0)"
    assert failed.facts == [cut, failed.failed]
    with pytest.raises(SomeFailedError, match="and 2 more"):
        failed.check()


# --- commands


@pytest.mark.parametrize("error", [UserError, TimeoutError])
def test_evaluate_scores_the_others_and_counts_what_failed(fragile: Fragile, tmp_path: Path, error: type) -> None:
    """A run that answers no question leaves the report before, also where each has a reason of its own, or is alone."""
    fragile.error, out = error("the part breaks.\nTry again."), tmp_path / "out"
    options = {"questions": str(write_questions(tmp_path)), "resamples": 10}
    with pytest.raises(SomeFailedError, match=FAILED):
        evaluate(
            DrRag(fragile, scorer=gold_scorer()) if error is UserError else RetrieveRead(fragile, 2), out, **options
        )
    assert report(out)["questions"]["failed"] == {"q2": "the part breaks. Try again"}
    assert [bool(each["evidence"]) for each in records_of(out)] == [True, False, True]

    class Late(Fragile):
        def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
            raise TimeoutError(f"late: {queries}")

    before = (out / "report.json").read_bytes()
    for limit in (None, 1):
        with pytest.raises(UserError, match=r"^late"):
            evaluate(RetrieveRead(Late(fragile.folder), 2), out, limit=limit, **options)
        assert (out / "report.json").read_bytes() == before


@pytest.mark.parametrize("kind", [UnavailableError, ConnectionRefusedError])
def test_a_service_that_is_down_ends_an_evaluation_which_goes_on(fragile, tmp_path, monkeypatch, kind) -> None:
    monkeypatch.setattr("harness.evaluation.engine.QUESTIONS_AT_ONCE", 1)
    fragile.error, file = kind("the service is down."), write_questions(tmp_path)
    kept = "the service is down. What was computed for 1 of 3 questions is kept: type the same command again to go on."
    with pytest.raises(UnavailableError, match=kept):
        evaluate(RetrieveRead(fragile, 2), tmp_path / "out", questions=str(file), resamples=10)
    assert not (tmp_path / "out").exists()
    evaluate(RetrieveRead(Bm25Retriever(fragile.folder), 2), tmp_path / "out", questions=str(file), resamples=10)
    assert not report(tmp_path / "out")["questions"]["failed"]


def test_tune_fits_on_the_others(fragile: Fragile, tmp_path: Path) -> None:
    file = write_questions(tmp_path)
    with pytest.raises(SomeFailedError, match=FAILED):
        tune(DrRag(fragile, scorer=gold_scorer()), tmp_path / "tuned.json", questions=str(file), tuning={"ks": [2]})
    assert json.loads((tmp_path / "tuned.json").read_text())["chosen_on"]["questions"] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["questions.json", "tuned.json"]


def test_an_option_that_fits_no_question_is_said_before_all_are_asked(index: Path, tmp_path: Path) -> None:
    asked = [(f"{id_}-{n}", *rest) for n in range(40) for id_, *rest in QUESTIONS]
    file, retriever = write_questions(tmp_path, asked), CountingRetriever(Bm25Retriever(index))
    system, options = DrRag(retriever, scorer=gold_scorer()), {"ks": [2], "max_documents": [1]}
    with pytest.raises(UserError, match="no setting for k = 2 hands over at most 1 documents"):
        tune(system, tmp_path / "tuned.json", questions=str(file), tuning=options)
    # q and two Concat(q, d) of each question, and three questions alone
    assert sum(len(queries) for queries, _ in retriever.asked) < 2 * 120 * 3


@pytest.mark.parametrize("write", [mine, label])
def test_training_data_leave_out_what_failed(write: Callable, fragile: Fragile, tmp_path: Path) -> None:
    with pytest.raises(SomeFailedError, match=FAILED):
        write(fragile, str(write_questions(tmp_path)), tmp_path / "made.jsonl", depth=5)
    rows = [json.loads(line) for line in (tmp_path / "made.jsonl").read_text().splitlines()]
    assert [row["question_id"] for row in rows] == ["q1", "q3"]
    assert not (tmp_path / "made.jsonl.partial").exists()
