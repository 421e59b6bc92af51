"""`infer.py evaluate` on files that give retriever scores.

For all questions, for some, and for some of a question's passages.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from common.answer_metrics import has_answer
from datamodules.formats.reading import read_questions
from harness.evaluation.rerag.candidates import has_answer_labels
from harness.evaluation.serialization import digest
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.retrievers.question_passages import cosine_rankings, given_ranking
from harness.runtime.memo import Memo
from models.rerag.temperature import fit_temperature
from tests.helpers.commands import Ended, command, refused
from tests.helpers.reports import cells, report
from tests.helpers.reports import questions as questions_of
from tests.helpers.rerag_data import fid_rows
from tests.helpers.rerag_world import write_serving

Rows = list[dict]


def with_scores(rows: Rows, scale: float = 10.0) -> Rows:
    """The rows with a score of every passage, some as strings: the last passage of a question is the best one."""
    for row in rows:
        for place, item in enumerate(row["ctxs"]):
            score = scale * (place + 1 + len(row["question"]) % 3 / 10)
            item["score"] = str(score) if place % 2 else score
    return rows


@pytest.fixture
def study(tmp_path: Path, checkpoints: dict[str, Path]) -> Callable[..., Ended]:
    """Runs the command on rows, with a tiny reranker and an encoder."""
    write_serving(checkpoints["t5"], tmp_path / "serving", generator=None, max_tokens=96)

    system = ("--system", "harness.systems.rerag.ReRag", "--system.serving", "serving", "--system.contexts",
              "2", "--system.device", "cpu")  # fmt: skip

    def run(
        rows: Rows,
        *more: str,
        encoder: str = str(checkpoints["bert"]),
        training: Rows | None = None,
        cosine: bool = True,
    ) -> Ended:
        (tmp_path / "dev.json").write_text(json.dumps(rows))
        if training is not None:
            (tmp_path / "train.json").write_text(json.dumps(training))
            fitted = command(
                tmp_path, "infer.py", "tune", *system, "--questions", "train.json", "--layout", "fid", "--out",
                "temperatures.json", *(("--tuning.encoder", encoder) if cosine else ()),
            )  # fmt: skip
            if fitted.code:
                return fitted
            more = (*more, "--study.temperatures", "temperatures.json")
        return command(
            tmp_path, "infer.py", "evaluate", *system, "--questions", "dev.json", "--layout", "fid", "--out", "report",
            "--resamples", "20", "--study.encoder", encoder, *more,
        )  # fmt: skip

    return run


def test_given_scores_rank_and_no_encoder_is_loaded(study: Callable[..., Ended], tmp_path: Path) -> None:
    rows = with_scores(fid_rows(8))
    ended = study(rows, encoder="no/such/encoder", training=with_scores(fid_rows(20, seed=1)), cosine=False)
    assert ended.code == 0, ended.err
    best = [has_answer(row["ctxs"][-1]["text"], row["answers"]) for row in rows]
    assert cells(tmp_path / "report")["recall", "retriever", "R@1 %"] == pytest.approx(100 * np.mean(best), abs=1e-3)
    questions = list(read_questions("fid", str(tmp_path / "train.json")))
    labels = [has_answer_labels(q, q.passages) for q in questions]
    temperature = fit_temperature([np.array(q.given_scores) for q in questions], labels)
    for row, found in zip(rows, [record["candidates"] for record in questions_of(tmp_path / "report")], strict=True):
        assert [hit["title"] for hit in found] == [item["title"] for item in reversed(row["ctxs"])]
        scores = [float(item["score"]) / temperature for item in reversed(row["ctxs"])]
        assert [hit["retriever"] for hit in found] == pytest.approx(scores, rel=1e-4)
    settings = report(tmp_path / "report")["study"]
    assert settings["temperatures"]["given"] == pytest.approx(temperature)


def test_questions_with_an_unscored_passage_are_ranked_by_cosine(
    study: Callable[..., Ended], tmp_path: Path, checkpoints: dict[str, Path]
) -> None:
    rows = with_scores(fid_rows(8))
    for row in rows[:2]:
        del row["ctxs"][0]["score"]  # as the gold passage of nq-open-20_total_documents
    for item in rows[2]["ctxs"]:
        del item["score"]
    ended = study(rows, training=with_scores(fid_rows(20, seed=1)))
    assert ended.code == 0, ended.err
    assert "2 questions have scores for some of their passages only, which are not used" in ended.out
    questions, training = (list(read_questions("fid", str(tmp_path / name))) for name in ("dev.json", "train.json"))
    encoder = SentenceEncoder(str(checkpoints["bert"]), "cpu")
    by_cosine = cosine_rankings(questions, encoder, Memo())
    temperatures = report(tmp_path / "report")["study"]["temperatures"]
    for source in ("given", "cosine"):
        given = [given_ranking(question) for question in training]
        found = given if source == "given" else cosine_rankings(training, encoder, Memo())
        labels = [has_answer_labels(q, [h.passage for h in hits]) for q, hits in zip(training, found, strict=True)]
        assert temperatures[source] == pytest.approx(
            fit_temperature([np.array([h.score for h in hits]) for hits in found], labels)
        )
    assert temperatures["given"] > 5 * temperatures["cosine"]  # each on its own scale
    for place, found in enumerate([record["candidates"] for record in questions_of(tmp_path / "report")]):
        cosine = np.array([h.score for h in by_cosine[place]]) / temperatures["cosine"]
        is_cosine = [hit["retriever"] for hit in found] == pytest.approx(cosine.tolist(), rel=1e-4)
        assert is_cosine == (place < 3)


def test_without_given_scores_the_cosine_ranks_all(study: Callable[..., Ended], tmp_path: Path) -> None:
    ended = study(
        fid_rows(4), training=with_scores(fid_rows(20, seed=1))
    )  # those of training are not of this retriever
    assert ended.code == 0, ended.err
    settings = report(tmp_path / "report")["study"]
    assert list(settings["temperatures"]) == ["cosine"]


def test_a_temperature_needs_training_questions_with_such_scores(study: Callable[..., Ended], tmp_path: Path) -> None:
    ended = study(with_scores(fid_rows(4)), training=fid_rows(20, seed=1))
    refused(ended, 66, "has temperatures for cosine scores, none for given scores")
    assert not (tmp_path / "report").exists()


def test_results_saved_under_other_scores_are_not_reused(tmp_path: Path) -> None:
    def digest_of(rows: Rows) -> str:
        (tmp_path / "file.json").write_text(json.dumps(rows))
        return digest(read_questions("fid", str(tmp_path / "file.json")))

    assert (
        len({digest_of(fid_rows(3)), digest_of(with_scores(fid_rows(3))), digest_of(with_scores(fid_rows(3), 5))}) == 3
    )


def test_a_bad_score_is_one_line(study: Callable[..., Ended]) -> None:
    rows = with_scores(fid_rows(4))
    rows[2]["ctxs"][1]["score"] = "high"
    refused(study(rows), 65, "dev.json, row 3", "field 'score' is \"high\", not a finite number")
