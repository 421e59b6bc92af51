"""Evaluating RE-RAG: the command and its report on real random models."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from common.answer_metrics import exact_match, has_answer
from common.errors import ArtifactError
from common.records import Answer, Passage, Question
from datamodules.formats.reading import read_questions
from harness.evaluation.engine import ask_rows
from harness.evaluation.rerag.candidates import CandidateSet
from harness.evaluation.rerag.study import Study
from harness.evaluation.rerag.tables import ABLATION, FULL, Confidence
from harness.evaluation.rerag.temperatures import TEMPERATURES, Fitted, fitted_for, identity
from harness.readers.read_once import ReadContexts, read_once
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.runtime.memo import FOR_STUDY, Memo
from harness.systems.rerag import ReRag
from models.calibration import Calibration
from models.rerag.marginal_reader import AnswerMatrix, MarginalReader
from models.rerag.model import ReRagModel
from tests.helpers.commands import done
from tests.helpers.reports import cells, questions, report
from tests.helpers.rerag_data import fid_rows
from tests.helpers.rerag_world import corpus, write_serving
from tests.helpers.rerag_world import questions as questions_on
from tests.helpers.tolerances import model_close

pytestmark = pytest.mark.numeric

OWN = "generator without RE: Baseline"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    """Serving folders, an index, and six questions with scores: the system and the baseline answer some right."""
    root, t5 = tmp_path_factory.mktemp("rerag"), checkpoints["t5"]
    parts = {"calibration": Calibration(0.5, 0.0), "threshold": 0.7, "refusal_contexts": 4, "temperature": 0.5}
    write_serving(t5, root / "joint", max_tokens=96, **parts)
    write_serving(t5, root / "baseline", estimator=False, max_tokens=96, retriever_temperature=0.25, seed=9)
    rows = fid_rows(6)
    for row in rows:
        for place, item in enumerate(row["ctxs"]):
            item["score"] = place / 4
    (root / "dev.json").write_text(json.dumps(rows))
    for serving, places in (("joint", range(2)), ("baseline", range(2, 5))):
        answers = served(root, serving).answer(asked(root))
        for place in places:
            rows[place]["answers"] = [answers[place].text or "none"]
    (root / "dev.json").write_text(json.dumps(rows))
    build_bm25([passage for each in asked(root) for passage in each.passages], root / "bm25")
    return root


def asked(folder: Path) -> list[Question]:
    return list(read_questions("fid", str(folder / "dev.json")))


def served(folder: Path, serving: str) -> ReRag:
    return ReRag(None, folder / serving, contexts=2, device="cpu")


def test_the_command_measures_what_the_system_and_the_baseline_answer(folder: Path) -> None:
    ended = done(
        folder, "infer.py", "evaluate", "--system", "harness.systems.rerag.ReRag", "--system.serving", "joint",
        "--system.contexts", "2", "--system.device", "cpu", "--questions", "dev.json", "--layout", "fid", "--out",
        "report", "--resamples", "20", "--paper", "nq", "--ks", "[1,3]", "--study.baseline_serving", "baseline",
    )  # fmt: skip
    out, figures = folder / "report", cells(folder / "report")
    assert (out / "report.md").read_text() in ended.out
    records = questions(out)
    assert len(records) == 6
    exact, first = {}, list[bool]()
    for serving, row in (("joint", "RE context, score"), ("baseline", OWN)):
        answers = served(folder, serving).answer(asked(folder))
        right = [exact_match(a.text, q.answers) for a, q in zip(answers, asked(folder), strict=True)]
        exact[serving] = 100 * np.mean(right)
        assert sum(right) >= 2
        assert figures["ablation", row, "EM %, thorough"] == pytest.approx(exact[serving], abs=1e-3)
        for record, answer in zip(records, answers, strict=True):
            assert record["settings"][row]["thorough"] == answer.text
            if serving == "joint":
                first.append(has_answer(answer.evidence[0].passage.text, record["answers"]))
                assert (record["answer"], record["logprob"]) == (answer.text, model_close(answer.logprob))
                assert [hit["id"] for hit in record["evidence"]] == [hit.passage.id for hit in answer.evidence]
                assert record["notes"]["answerable"] == answer.notes["answerable"]
    gain = figures["ablation", "Baseline", "EM %, thorough"] - exact["baseline"]
    assert figures["ablation", f"Baseline - {OWN}", "EM %, thorough"] == pytest.approx(gain, abs=1e-3)
    assert figures["answers", "ours, squad", "EM %"] == pytest.approx(exact["joint"], abs=1e-3)
    assert figures["recall", "RE", "R@1 %"] == pytest.approx(100 * np.mean(first), abs=1e-3)
    assert cells(out, "paper")["recall", "RE-RAG base", "R@1 %"] == 59.5
    told = report(out)
    assert told["judge"] is None
    assert told["study"]["threshold_source"] == "exported"
    assert "refusal threshold" not in (out / "report.md").read_text()  # nothing refuses
    assert told["study"]["baseline"] == {"serving": "baseline", "temperature": 0.25}


def counted(answer: Answer) -> tuple:
    costs = {name: cost for name, cost in answer.costs.items() if name != "tokens" and "seconds" not in name}
    passages = [hit.passage for hit in answer.evidence]
    return answer.question_id, answer.text, passages, costs, answer.notes["answerable"]


def test_a_temperature_belongs_to_what_gave_the_scores(folder: Path, tmp_path: Path) -> None:
    build_bm25(asked(folder)[0].passages, tmp_path / "other")
    scores_of = identity(ReRag(Bm25Retriever(folder / "bm25"), folder / "joint"), None)
    assert isinstance(scores_of, dict)
    assert scores_of["retriever"] == "Bm25Retriever"
    file = tmp_path / "temperatures.json"
    TEMPERATURES.write(file, {"temperatures": {"retriever": asdict(Fitted(2.0, 3, scores_of))}})
    assert fitted_for(file, "retriever", scores_of).temperature == 2
    for retriever in (None, Bm25Retriever(tmp_path / "other")):
        with pytest.raises(ArtifactError):
            fitted_for(file, "retriever", identity(ReRag(retriever, folder / "joint"), None))


@pytest.mark.parametrize(("marginal", "others_first"), [("thorough", True), ("fast", False)])
def test_every_row_equals_the_system_asked_alone(folder: Path, marginal: Any, others_first: bool) -> None:
    """What the rows share changes no text, no passage, no score and no count; the tables read what the rows do."""
    options: dict[str, Any] = {"contexts": 3, "marginal": marginal, "device": "cpu", "precision": "fp32"}
    for retriever, unknown in (Bm25Retriever(folder / "bm25"), [Question("q", "zebra", ("x",))]), (None, []):
        sure = ReRag(retriever, folder / "joint", 7, **options).answer(asked(folder))
        threshold = float(np.median([each.notes["contexts"][0]["probability"] for each in sure]))
        system = ReRag(retriever, folder / "joint", 7, **options, abstain=True, threshold=threshold)
        rows = Study().rows_of(system)
        given = rows if others_first else dict([*rows.items()][::-1])
        found = ask_rows(given, [*asked(folder), *unknown], Memo())
        assert list(rows) == [*ABLATION]
        pools = [CandidateSet.of(answer.notes[FOR_STUDY], 2.0, 0.5) for answer in found["Baseline"]]
        for row, (order, weights) in ABLATION.items():
            refusing = {"abstain": row == FULL, "threshold": threshold, "order": order, "weights": weights}
            alone, cooler = (
                ReRag(retriever, folder / "joint", 7, **options, **refusing, temperature=each) for each in (1.0, 2.0)
            )
            for each, expected in zip(found[row], alone.answer([*asked(folder), *unknown]), strict=True):
                assert counted(each) == counted(expected)
                scores = [hit.score for hit in expected.evidence]
                assert [hit.score for hit in each.evidence] == model_close(scores)
                assert each.logprob == (expected.logprob and model_close(expected.logprob))
            for each, pool in zip(cooler.answer([*asked(folder), *unknown]), pools, strict=True):
                read = pool.read(order, weights, 3, marginal)
                assert each.logprob is None or (each.text, each.logprob) == (read.text, model_close(read.logprob))
        assert len({answer.text for answer in found[FULL]}) > 2
        for nothing in pools[len(asked(folder)) :]:
            assert nothing.read("estimator", "retriever", 3, marginal).text == ""
            empty = Confidence.of("estimator", [nothing], [np.array([])], 3, np.zeros(1))
            assert (empty.max_N[0], empty.answerable_N[0]) == (-np.inf, False)
    costs = {row: answers[0].costs for row, answers in found.items()}
    assert [costs[row]["passages_scored"] for row in ABLATION] == [0, *[len(asked(folder)[0].passages)] * 3]
    assert costs["Baseline"]["seconds/scoring"] == 0 < costs["RE score"]["seconds/scoring"]


def test_contexts_are_read_once_and_a_failure_is_not_kept(folder: Path, tmp_path: Path) -> None:
    reader = MarginalReader(ReRagModel.load(folder / "joint", "cpu").generator, "fast", 4)

    class Failing:
        """The first context of a call fails."""

        marginal, identity = "fast", {"name": "failing"}

        def matrices(self, questions: list[str], contexts: list[list[Passage]]) -> list[AnswerMatrix]:
            calls.append([*map(len, contexts)])
            first, *others = reader.matrices(questions, contexts)
            return [replace(first, failed=("down", *[""] * (len(first.written) - 1))), *others]

    def read(memo: Memo, number: int) -> list[ReadContexts]:
        questions = questions_on(corpus(), 3)
        passages = [each.passages[:number] for each in questions]
        return read_once(memo.of("matrices", failing), failing, questions, passages)

    failing, memo, calls = Failing(), Memo(tmp_path / "memo"), []  # type: ignore[var-annotated]
    whole, few = read(memo, 4), read(memo, 2)
    assert calls == [[4, 4, 4]]
    assert [each.matrix.written for each in few] == [each.matrix.written[:2] for each in whole]
    assert [each.share for each in few] == [1 / 4] * 3
    assert len(read(memo, 5)[0].matrix.written) == 5  # one more context: all are read again
    calls.clear()
    read(Memo(tmp_path / "memo"), 4)
    assert calls == [[4]]
