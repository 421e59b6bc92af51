"""Evaluating RE-RAG: the command and its report on real random models."""

import itertools
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import infer
from common.answer_metrics import exact_match, has_answer
from common.errors import ArtifactError, UserError
from common.records import Answer, Passage, Question
from datamodules.formats.reading import read_questions
from harness.commands.evaluate import evaluate
from harness.commands.tune import tune
from harness.evaluation.engine import ask_rows
from harness.evaluation.rerag.candidates import CandidateSet, has_answer_labels
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
from tests.conftest import hotpot_rows
from tests.helpers.commands import Ended, command, refused
from tests.helpers.reports import cells, reasons
from tests.helpers.reports import questions as records_of
from tests.helpers.reports import report as report_of
from tests.helpers.rerag_data import fid_rows
from tests.helpers.rerag_world import write_serving
from tests.helpers.tolerances import model_close

pytestmark = pytest.mark.numeric


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> dict[str, Path]:
    """A serving folder, and questions half of whose answers it gets right; some passages hold them."""
    root = tmp_path_factory.mktemp("answers")
    serving = write_serving(
        checkpoints["t5"],
        root / "both",
        calibration=Calibration(0.5, 0.0),
        threshold=0.7,
        refusal_contexts=4,
        max_tokens=96,
        temperature=0.5,
    )
    rows = hotpot_rows(7)
    for row in rows:
        row["supporting_facts"] = []
    file = root / "dev.json"
    file.write_text(json.dumps(rows))
    asked = list(read_questions("hotpotqa", str(file)))
    given = ReRag(None, serving, contexts=4, device="cpu").answer(asked)
    for row, answer in itertools.islice(zip(rows, given, strict=True), 4):
        row["answer"] = answer.text
    rows[5]["context"][6][1] = [f"it is {rows[5]['answer']}"]
    rows[6]["answer"] = ""
    file.write_text(json.dumps(rows))
    reranker = write_serving(checkpoints["t5"], root / "reranker", generator=None, max_tokens=96)
    return {"serving": serving, "reranker": reranker, "dev": file, "encoder": checkpoints["bert"], "root": root}


def run(folders: dict[str, Path], out: Path, *more: str, serving: str = "serving") -> None:
    infer.main(
        [
            "evaluate", "--system", "harness.systems.rerag.ReRag", "--system.serving", str(folders[serving]),
            "--system.contexts", "4", "--system.device", "cpu", "--questions", str(folders["dev"]), "--out",
            str(out), "--study.encoder", str(folders["encoder"]), "--resamples", "100", *more,
        ]
    )  # fmt: skip


def test_the_command_measures_what_the_system_answers(folders: dict[str, Path], tmp_path: Path, capsys) -> None:
    file = str(tmp_path / "temperatures.json")
    system = ReRag(None, folders["serving"], contexts=4, device="cpu")
    tune(system, Path(file), questions=str(folders["dev"]), tuning={"encoder": str(folders["encoder"])})
    assert "of cosine scores, fitted on 6 questions" in capsys.readouterr().out
    run(folders, tmp_path / "report", "--paper", "nq", "--ks", "[1,3]", "--study.temperatures", file)
    out = tmp_path / "report"
    asked = [q for q in read_questions("hotpotqa", str(folders["dev"])) if q.answers]
    expected = system.answer(asked)
    records = [json.loads(line) for line in (out / "questions.jsonl").read_text().splitlines()]
    assert len(records) == len(asked) == 6
    for record, answer in zip(records, expected, strict=True):
        assert record["answer"] == answer.text
        assert record["logprob"] == model_close(answer.logprob)
        assert [hit["id"] for hit in record["evidence"]] == [hit.passage.id for hit in answer.evidence]
        assert record["notes"]["answerable"] == answer.notes["answerable"]
    figures = cells(out)
    exact = np.mean([exact_match(a.text, q.answers) for a, q in zip(expected, asked, strict=True)])
    assert exact >= 4 / 6
    assert figures["answers", "ours, squad", "EM %"] == pytest.approx(100 * exact, abs=1e-3)
    assert figures["ablation", "RE context, score", "EM %, thorough"] == pytest.approx(100 * exact, abs=1e-3)
    first = [has_answer(a.evidence[0].passage.text, q.answers) for a, q in zip(expected, asked, strict=True)]
    assert figures["recall", "RE", "R@1 %"] == pytest.approx(100 * np.mean(first), abs=1e-3)
    report = report_of(out)
    assert report["questions"]["asked"] == 7
    assert report["study"]["temperatures"]["cosine"] != 1
    assert report["study"]["threshold_source"] == "exported"
    assert cells(out, "paper")["recall", "RE-RAG base", "R@1 %"] == 59.5
    assert (out / "report.md").read_text() in capsys.readouterr().out


def ranked_by_bm25(folders: dict[str, Path], tmp_path: Path) -> tuple[list[Question], ReRag]:
    """Questions with answers, and a system that retrieves for them."""
    asked = [q for q in read_questions("hotpotqa", str(folders["dev"])) if q.answers]
    build_bm25([p for q in asked for p in q.passages], tmp_path / "bm25")
    return asked, ReRag(Bm25Retriever(tmp_path / "bm25"), folders["serving"], 7, 3, device="cpu", precision="fp32")


def counted(answer: Answer) -> tuple:
    costs = {name: cost for name, cost in answer.costs.items() if name != "tokens" and "seconds" not in name}
    passages = [hit.passage for hit in answer.evidence]
    return answer.question_id, answer.text, passages, costs, answer.notes["answerable"]


def test_a_temperature_belongs_to_what_gave_the_scores(folders: dict[str, Path], tmp_path: Path) -> None:
    asked, system = ranked_by_bm25(folders, tmp_path)
    build_bm25(asked[0].passages, tmp_path / "other")
    scores_of, file = identity(system, None), tmp_path / "temperatures.json"
    assert isinstance(scores_of, dict)
    assert scores_of["retriever"] == "Bm25Retriever"
    TEMPERATURES.write(file, {"temperatures": {"retriever": asdict(Fitted(2.0, 3, scores_of))}})
    assert fitted_for(file, "retriever", scores_of).temperature == 2
    for retriever in (None, Bm25Retriever(tmp_path / "other")):
        with pytest.raises(ArtifactError):
            fitted_for(file, "retriever", identity(ReRag(retriever, folders["serving"]), None))


@pytest.mark.parametrize(("marginal", "others_first"), [("thorough", True), ("fast", False)])
def test_every_row_equals_the_system_asked_alone(
    folders: dict[str, Path], tmp_path: Path, marginal: Any, others_first: bool
) -> None:
    """What the rows share changes no text, no passage, no score and no count."""
    asked, system = ranked_by_bm25(folders, tmp_path)
    given = [replace(each, scores=tuple(map(float, range(len(each.passages))))) for each in asked]
    for questions, retriever in (asked, system.retriever), (given, None):
        options: dict[str, Any] = {"contexts": 3, "marginal": marginal, "device": "cpu", "precision": "fp32"}
        sure = [each.notes["contexts"] for each in ReRag(retriever, folders["serving"], 7, **options).answer(questions)]
        threshold = float(np.median([max(context["probability"] for context in each) for each in sure]))
        system = ReRag(retriever, folders["serving"], 7, **options, abstain=True, threshold=threshold)
        rows = Study().rows_of(system)
        found = ask_rows(rows if others_first else dict([*rows.items()][::-1]), questions, Memo())
        assert list(rows) == [*ABLATION]
        for row, (order, weights) in ABLATION.items():
            refusing = {"abstain": row == FULL, "threshold": threshold, "order": order, "weights": weights}
            alone = ReRag(retriever, folders["serving"], 7, **options, **refusing, temperature=1.0)
            for each, expected in zip(found[row], alone.answer(questions), strict=True):
                assert counted(each) == counted(expected)
                scores = [hit.score for hit in expected.evidence]
                assert [hit.score for hit in each.evidence] == model_close(scores)
                assert each.logprob == (expected.logprob and model_close(expected.logprob))
        assert len({answer.text for answer in found[FULL]}) > 1
    costs = {row: answers[0].costs for row, answers in found.items()}
    assert [costs[row]["passages_scored"] for row in ABLATION] == [0, *[len(given[0].passages)] * 3]
    assert costs["Baseline"]["seconds/scoring"] == 0 < costs["RE score"]["seconds/scoring"]


def test_contexts_are_read_once_and_a_failure_is_not_kept(folders: dict[str, Path], tmp_path: Path) -> None:
    asked = [q for q in read_questions("hotpotqa", str(folders["dev"])) if q.answers][:3]
    reader = MarginalReader(ReRagModel.load(folders["serving"], "cpu").generator, "fast", 4)

    class Failing:
        """The first context of a call fails."""

        marginal, identity = "fast", {"name": "failing"}

        def matrices(self, questions: list[str], contexts: list[list[Passage]]) -> list[AnswerMatrix]:
            calls.append([*map(len, contexts)])
            first, *others = reader.matrices(questions, contexts)
            return [replace(first, failed=("down", *[""] * (len(first.written) - 1))), *others]

    def read(memo: Memo, number: int) -> list[ReadContexts]:
        passages = [each.passages[:number] for each in asked]
        return read_once(memo.of("matrices", failing), failing, asked, passages)

    failing, memo, calls = Failing(), Memo(tmp_path / "memo"), []  # type: ignore[var-annotated]
    whole, few = read(memo, 4), read(memo, 2)
    assert calls == [[4, 4, 4]]
    assert [each.matrix.written for each in few] == [each.matrix.written[:2] for each in whole]
    assert [each.share for each in few] == [1 / 4] * 3
    assert len(read(memo, 5)[0].matrix.written) == 5  # one more context: all are read again
    calls.clear()
    read(Memo(tmp_path / "memo"), 4)
    assert calls == [[4]]


def test_every_setting_equals_a_reader_that_reads_those_contexts_alone(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    asked, system = ranked_by_bm25(folders, tmp_path)
    asked.append(Question("q", "zebra", ("x",)))
    found = ask_rows(Study().rows_of(system), asked, Memo())["Baseline"]
    assert system.model.relevance_temperature == 0.5  # the folder's
    *pools, nothing = (CandidateSet.of(answer.notes[FOR_STUDY], 2.0, 0.5) for answer in found)
    model, retriever = system.model, system.retriever
    assert nothing.read("estimator", "retriever", 3, "thorough").text == ""
    empty = Confidence.of("estimator", [nothing], [np.array([])], 3, np.zeros(1))
    assert (empty.max_N[0], empty.answerable_N[0]) == (-np.inf, False)
    for pool, hits in zip(pools, retriever.search([q.text for q in asked[:-1]], 7), strict=True):
        by_id = {hit.passage.id: hit.score / 2 for hit in hits}
        ranked = sorted(by_id, key=lambda i: -by_id[i])
        logits = model.estimator.scores([(pool.question.text, p) for p in pool.passages])
        relevance = dict(zip([p.id for p in pool.passages], logits, strict=True))
        passages = {p.id: p for p in pool.passages}
        orders = {"retriever": ranked, "estimator": sorted(ranked, key=lambda i: -relevance[i])}
        weights = {"retriever": by_id, "estimator": relevance}
        for contexts, by, count, marginal in itertools.product(orders, weights, (1, 3), ("thorough", "fast")):
            kept = orders[contexts][:count]
            temperature = 0.5 if (by, marginal) == ("estimator", "thorough") else 1.0  # the folder's
            reader = MarginalReader(model.generator, marginal, model.max_answer_tokens)
            (expected,) = reader.read(
                [pool.question.text], [[passages[i] for i in kept]], [[weights[by][i] / temperature for i in kept]]
            )
            found = pool.read(contexts, by, count, marginal)
            assert found.text == expected.text
            assert found.logprob == model_close(expected.logprob)
        assert pool.has_answer_C.tolist() == has_answer_labels(pool.question, pool.passages).tolist()
        with pytest.raises(KeyError):
            pool.read("estimator", "estimator", 7, "fast")  # more than were read


def test_refusing_and_reranking_alone(folders: dict[str, Path], tmp_path: Path) -> None:
    run(folders, tmp_path / "refusing", "--system.abstain", "true", "--system.threshold", "1.0")
    assert cells(tmp_path / "refusing")["answers", "ours, squad", "EM %"] == 0
    assert cells(tmp_path / "refusing")["ablation", "RE context, score", "EM %, thorough"] > 50
    run(folders, tmp_path / "reranker", serving="reranker")
    figures = cells(tmp_path / "reranker")
    tables = {"controls", "answers", "evidence", "costs", "recall", "detection", "judged"}
    assert {table for table, *_ in figures} == tables
    record = json.loads((tmp_path / "reranker" / "questions.jsonl").read_text().splitlines()[0])
    assert record["candidates"][0]["written"] is None


def test_a_file_whose_sets_all_hold_an_answer_says_that_nothing_is_detected(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    """As `nq-open-20_total_documents`, whose tables of detection had 18 rows of 0.00."""
    file, out = tmp_path / "answerable.json", tmp_path / "report"
    file.write_text(json.dumps(hotpot_rows(3, seed=5)))
    run(folders, out, "--questions", str(file), "--system.contexts", "10", "--paper", "nq")
    assert reasons(out)["refusal", "RE, exported threshold 0.7", "refused %"] == "every set holds an answer"
    assert reasons(out)["detection", "RE", "recall %"] == "every set holds an answer"
    assert np.isnan(cells(out)["detection", "RE", "recall %"])


def test_refusals(folders: dict[str, Path], tmp_path: Path) -> None:
    system = ReRag(None, folders["serving"], contexts=2, device="cpu")
    out = tmp_path / "out"
    bare = tmp_path / "bare.jsonl"
    rows = [{"id": id_, "question": f"who {id_}", "golden_answers": ["x"]} for id_ in "12"]
    bare.write_text("\n".join(map(json.dumps, rows)))
    hidden = tmp_path / "hidden.json"
    hidden.write_text(json.dumps([{k: v for k, v in row.items() if k != "answer"} for row in hotpot_rows(2)]))
    study = {"encoder": str(folders["encoder"])}
    with pytest.raises(UserError, match="without passages"):
        evaluate(system, out, questions=str(bare), layout="flashrag", study=study)
    assert not out.exists()
    evaluate(system, out, questions=str(hidden), resamples=10, study=study)
    assert "study: 0 of 2 questions; the others have nothing that it can score" in (out / "report.md").read_text()


OWN = "generator without RE: "


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    """Serving folders, and six questions with scores; the baseline answers four of them right."""
    root, t5 = tmp_path_factory.mktemp("baseline"), checkpoints["t5"]
    write_serving(t5, root / "joint", max_tokens=96, temperature=0.5)
    write_serving(t5, root / "baseline", estimator=False, max_tokens=96, retriever_temperature=0.25, seed=9)
    write_serving(t5, root / "plain", estimator=False, max_tokens=96)
    write_serving(t5, root / "reranker", generator=None, max_tokens=96)
    rows = fid_rows(6)
    for row in rows:
        for place, item in enumerate(row["ctxs"]):
            item["score"] = place / 4
    file = root / "dev.json"
    file.write_text(json.dumps(rows))
    given = served(root).answer(list(read_questions("fid", str(file))))
    for row, answer in zip(rows[:4], given, strict=False):
        row["answers"] = [answer.text]
    file.write_text(json.dumps(rows))
    return root


def served(folder: Path) -> ReRag:
    return ReRag(None, folder / "baseline", contexts=2, device="cpu")


def measure(folder: Path, *more: str, serving: str = "joint", out: str = "report") -> Ended:
    return command(
        folder, "infer.py", "evaluate", "--system", "harness.systems.rerag.ReRag", "--system.serving", serving,
        "--system.contexts", "2", "--system.device", "cpu", "--questions", "dev.json", "--layout", "fid", "--out",
        out, "--resamples", "20", *more,
    )  # fmt: skip


def ablation(folder: Path, out: str = "report") -> dict[tuple[str, str], float]:
    return {(row, column): value for (table, row, column), value in cells(folder / out).items() if table == "ablation"}


@pytest.fixture(scope="module")
def measured(folder: Path) -> Ended:
    """An evaluation beside the baseline, in the folder `report`."""
    ended = measure(folder, "--study.baseline_serving", "baseline")
    assert ended.code == 0, ended.err
    return ended


def test_the_baselines_row_is_what_its_folder_answers(folder: Path, measured: Ended) -> None:
    questions = list(read_questions("fid", str(folder / "dev.json")))
    answers = served(folder).answer(questions)
    exact = [exact_match(answer.text, q.answers) for answer, q in zip(answers, questions, strict=True)]
    assert sum(exact) >= 4
    found = ablation(folder)
    assert found[OWN + "Baseline", "EM %, thorough"] == pytest.approx(100 * np.mean(exact), abs=1e-3)
    records = records_of(folder / "report")
    for record, answer in zip(records, answers, strict=True):
        assert record["settings"][OWN + "Baseline"]["thorough"] == answer.text
    assert report_of(folder / "report")["study"]["baseline"] == {"serving": "baseline", "temperature": 0.25}
    gain = found[f"Baseline - {OWN}Baseline", "EM %, thorough"]
    joint = found["Baseline", "EM %, thorough"]
    assert gain == pytest.approx(joint - 100 * np.mean(exact), abs=1e-3)
    assert gain < 0

    plain = measure(folder, out="plain-report")
    assert plain.code == 0, plain.err
    without = ablation(folder, "plain-report")
    assert without == {key: value for key, value in found.items() if OWN not in key[0]}  # the present rows stay


@pytest.mark.parametrize(
    ("more", "code", "part"),
    [
        (("--study.baseline_serving", "nowhere"), 66, "baseline_serving: nowhere is no serving folder"),
        (("--study.baseline_serving", "plain"), 2,
            "plain was trained with relevance not recorded, and Table 7's baseline with"),
        (("--study.baseline_serving", "joint"), 2, "joint was trained with an estimator"),
        (("--study.baseline_serving", "reranker"), 74, "reranker holds no generator"),
        (("--study.baseline_serving", "baseline", "--system.serving", "reranker"), 2,
            "with an estimator and a generator only: omit"),
        (("--study.baseline_serving", "baseline", "--system.serving", "plain"), 2,
            "with an estimator and a generator only: omit"),
    ],
)  # fmt: skip
def test_other_generators_are_refused(folder: Path, more: tuple[str, ...], code: int, part: str) -> None:
    refused(measure(folder, *more, out="refused"), code, part)
    assert not (folder / "refused").exists()
