"""`infer.py evaluate` on files that give retriever scores.

For all questions, for some, and for some of a question's passages.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from common.answer_metrics import has_answer
from datamodules.formats.reading import read_questions
from harness.evaluation.rerag.candidates import has_answer_labels
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.retrievers.question_passages import cosine_rankings, given_ranking
from harness.runtime.memo import Memo
from models.rerag.temperature import fit_temperature
from tests.helpers.commands import Ended, command, done, refused
from tests.helpers.reports import cells, questions, report
from tests.helpers.rerag_data import fid_rows
from tests.helpers.rerag_world import write_serving

Rows = list[dict]
SYSTEM = ("--system", "harness.systems.rerag.ReRag", "--system.serving", "serving", "--system.contexts", "2",
    "--system.device", "cpu", "--layout", "fid")  # fmt: skip
FITTED = ("--study.temperatures", "temperatures.json")


def with_scores(rows: Rows) -> Rows:
    """The rows with a score of every passage, some as strings: the last passage of a question is the best one."""
    for row in rows:
        for place, item in enumerate(row["ctxs"]):
            score = 10 * (place + 1 + len(row["question"]) % 3 / 10)
            item["score"] = str(score) if place % 2 else score
    return rows


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    """A folder with a tiny reranker, `serving`."""
    return write_serving(
        checkpoints["t5"], tmp_path_factory.mktemp("given") / "serving", generator=None, max_tokens=96
    ).parent


def tune(place: Path, rows: Rows, *more: str) -> None:
    """Fit the temperatures on training questions."""
    (place / "train.json").write_text(json.dumps(rows))
    done(place, "infer.py", "tune", *SYSTEM, "--questions", "train.json", "--out", "temperatures.json", *more)


def evaluate(place: Path, rows: Rows, *more: str, encoder: str | Path = "no/such/encoder") -> Ended:
    (place / "dev.json").write_text(json.dumps(rows))
    typed = ("--questions", "dev.json", "--out", "report", "--resamples", "20", "--study.encoder", str(encoder))
    return command(place, "infer.py", "evaluate", *SYSTEM, *typed, *more)


def test_given_scores_rank_and_no_encoder_is_loaded(place: Path) -> None:
    rows = with_scores(fid_rows(8))
    tune(place, with_scores(fid_rows(20, seed=1)))
    ended = evaluate(place, rows, *FITTED)
    assert ended.code == 0, ended.err
    figures = cells(place / "report")
    tables = {"controls", "answers", "evidence", "costs", "recall", "detection", "judged"}
    assert {table for table, *_ in figures} == tables  # those of a reranker without a generator
    best = [has_answer(row["ctxs"][-1]["text"], row["answers"]) for row in rows]
    assert figures["recall", "retriever", "R@1 %"] == pytest.approx(100 * np.mean(best), abs=1e-3)
    training = list(read_questions("fid", str(place / "train.json")))
    labels = [has_answer_labels(q, q.passages) for q in training]
    temperature = fit_temperature([np.array(q.given_scores) for q in training], labels)
    for row, found in zip(rows, [record["candidates"] for record in questions(place / "report")], strict=True):
        assert [hit["title"] for hit in found] == [item["title"] for item in reversed(row["ctxs"])]
        scores = [float(item["score"]) / temperature for item in reversed(row["ctxs"])]
        assert [hit["retriever"] for hit in found] == pytest.approx(scores, rel=1e-4)
        assert {hit["written"] for hit in found} == {None}
    assert report(place / "report")["study"]["temperatures"] == {"given": pytest.approx(temperature)}


def test_questions_with_an_unscored_passage_are_ranked_by_cosine(place: Path, checkpoints: dict[str, Path]) -> None:
    rows = with_scores(fid_rows(8))
    for row in rows[:2]:
        del row["ctxs"][0]["score"]  # as the gold passage of nq-open-20_total_documents
    for item in rows[2]["ctxs"]:
        del item["score"]
    tune(place, with_scores(fid_rows(20, seed=1)), "--tuning.encoder", str(checkpoints["bert"]))
    ended = evaluate(place, rows, *FITTED, encoder=checkpoints["bert"])
    assert ended.code == 0, ended.err
    assert "2 questions have scores for some of their passages only, which are not used" in ended.out
    asked, training = (list(read_questions("fid", str(place / name))) for name in ("dev.json", "train.json"))
    encoder = SentenceEncoder(str(checkpoints["bert"]), "cpu")
    by_cosine = cosine_rankings(asked, encoder, Memo())
    temperatures = report(place / "report")["study"]["temperatures"]
    for source, found in (
        ("given", [given_ranking(question) for question in training]),
        ("cosine", cosine_rankings(training, encoder, Memo())),
    ):
        labels = [has_answer_labels(q, [h.passage for h in hits]) for q, hits in zip(training, found, strict=True)]
        fitted = fit_temperature([np.array([h.score for h in hits]) for hits in found], labels)
        assert temperatures[source] == pytest.approx(fitted)
    assert temperatures["given"] > 5 * temperatures["cosine"]  # each on its own scale
    for number, found in enumerate([record["candidates"] for record in questions(place / "report")]):
        cosine = np.array([h.score for h in by_cosine[number]]) / temperatures["cosine"]
        is_cosine = [hit["retriever"] for hit in found] == pytest.approx(cosine.tolist(), rel=1e-4)
        assert is_cosine == (number < 3)


def test_temperatures_are_of_the_scores_that_the_questions_have(place: Path, checkpoints: dict[str, Path]) -> None:
    tune(place, fid_rows(20, seed=1), "--tuning.encoder", str(checkpoints["bert"]))
    ended = evaluate(place, fid_rows(4), *FITTED, encoder=checkpoints["bert"])
    assert ended.code == 0, ended.err
    assert list(report(place / "report")["study"]["temperatures"]) == ["cosine"]
    ended = evaluate(place, with_scores(fid_rows(4)), *FITTED, "--out", "refused")
    refused(ended, 66, "has temperatures for cosine scores, none for given scores")
    assert not (place / "refused").exists()
    ended = evaluate(place, [row | {"answers": []} for row in fid_rows(2)], encoder=checkpoints["bert"])
    assert "study: 0 of 2 questions; the others have nothing that it can score" in ended.out
