"""`infer.py score`: the scores that it writes are a retriever's to training, study and system.

Nothing else changes.
"""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from datamodules.formats.reading import read_questions
from harness.commands import score
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.retrievers.question_passages import cosine_rankings
from harness.runtime.memo import Memo
from tests.helpers.commands import Ended, done
from tests.helpers.rerag_data import fid_rows


def score_file(folder: Path, encoder: Path, file: str, out: str = "scored.jsonl") -> Ended:
    typed = ("--questions", file, "--out", out, "--encoder", str(encoder), "--device", "cpu")
    return done(folder, "infer.py", "score", *typed)


def written(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "scored.jsonl").read_text().splitlines()]


def test_every_passage_gets_its_cosine_and_all_else_stays(
    tmp_path: Path, checkpoints: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(score, "QUESTIONS_AT_ONCE", 4)  # nine questions: three batches
    rows = fid_rows(9)
    rows[0]["ctxs"][1] |= {"score": "7.5", "original_retrieval_index": 3, "title": None}
    rows[1]["ctxs"].append(dict(rows[1]["ctxs"][0]))  # a passage that is listed twice
    rows[2] |= {"ctxs": [], "note": "Gödel \ud800"}
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "file.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    ended = score_file(tmp_path, checkpoints["bert"], "file.jsonl.gz")
    passages = sum(len(row["ctxs"]) for row in rows)
    assert f"scored.jsonl: {passages} passages of 9 questions scored by the cosine of " in ended.err
    assert "scores of 1 questions were replaced" in ended.err
    first = (tmp_path / "scored.jsonl").read_bytes()
    score_file(tmp_path, checkpoints["bert"], "scored.jsonl")  # replaced by the same
    assert (tmp_path / "scored.jsonl").read_bytes() == first
    for row, new in zip(rows, written(tmp_path), strict=True):
        assert new.pop("scored_by") == str(checkpoints["bert"])
        for item in (*row["ctxs"], *new["ctxs"]):
            item.pop("score", None)
        assert new == row
    before, after = (list(read_questions("fid", str(tmp_path / name))) for name in ("file.jsonl.gz", "scored.jsonl"))
    expected = cosine_rankings(
        [q for q in before if q.passages], SentenceEncoder(str(checkpoints["bert"]), "cpu"), Memo()
    )
    for question, given in zip([question for question in after if question.passages], expected, strict=True):
        assert question.ranking == tuple(hit.passage for hit in given)  # what the study ranks by itself
        np.testing.assert_allclose(sorted(question.given_scores, reverse=True), [hit.score for hit in given], atol=1e-5)
    assert [q.support for q in after] == [q.support for q in before]


def test_empty_rows_and_passages_rows_that_share_a_line_and_rows_of_several_lines(
    tmp_path: Path, checkpoints: dict[str, Path]
) -> None:
    rows = fid_rows(3)
    rows[0]["question"] = " "
    rows[1]["ctxs"] = [{"title": "", "text": None}, *rows[1]["ctxs"], None]
    for text in ("".join(map(json.dumps, rows)), "\n".join(json.dumps(row, indent=1) for row in rows)):
        (tmp_path / "file.json").write_text(text)
        ended = score_file(tmp_path, checkpoints["bert"], "file.json")
        assert "a row whose field 'question' is empty: 1, left out; the first: file.json, line 1." in ended.err
        found = written(tmp_path)
        assert [row["question"] for row in found] == [row["question"] for row in rows[1:]]
        assert (found[0]["ctxs"][0]["score"], found[0]["ctxs"][-1]) == (None, None)
        assert all(type(item["score"]) is float for row in found for item in row["ctxs"][1:] if item)
