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


def scored(folder: Path, encoder: Path, rows: list[dict], *more: str, out: str = "scored.jsonl") -> Ended:
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "file.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    return done(folder, "infer.py", "score", "--questions", "file.jsonl.gz", "--out", out, "--device", "cpu",
                   "--encoder", str(encoder), *more)  # fmt: skip


def test_every_passage_gets_its_cosine_and_all_else_stays(
    tmp_path: Path, checkpoints: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(score, "QUESTIONS_AT_ONCE", 4)  # nine questions: three batches
    rows = fid_rows(9)
    rows[0]["ctxs"][1] |= {"score": "7.5", "original_retrieval_index": 3, "title": None}
    rows[1]["ctxs"].append(dict(rows[1]["ctxs"][0]))  # a passage that is listed twice
    rows[2] |= {"ctxs": [], "note": "Gödel \ud800"}
    ended = scored(tmp_path, checkpoints["bert"], rows)
    passages = sum(len(row["ctxs"]) for row in rows)
    assert f"scored.jsonl: {passages} passages of 9 questions scored by the cosine of " in ended.err
    assert "scores of 1 questions were replaced" in ended.err
    first = (tmp_path / "scored.jsonl").read_bytes()
    own = ["--questions", "scored.jsonl", "--encoder", str(checkpoints["bert"]), "--device", "cpu"]
    done(tmp_path, "infer.py", "score", *own, "--out", "scored.jsonl")  # replaced by the same
    assert (tmp_path / "scored.jsonl").read_bytes() == first
    written = [json.loads(line) for line in (tmp_path / "scored.jsonl").read_text().splitlines()]
    for row, new in zip(rows, written, strict=True):
        assert new.pop("scored_by") == str(checkpoints["bert"])
        for item in (*row["ctxs"], *new["ctxs"]):
            item.pop("score", None)
        assert new == row
    before = list(read_questions("fid", str(tmp_path / "file.jsonl.gz")))
    after = list(read_questions("fid", str(tmp_path / "scored.jsonl")))
    encoder = SentenceEncoder(str(checkpoints["bert"]), "cpu")
    expected = cosine_rankings([q for q in before if q.passages], encoder, Memo())
    found = [question for question in after if question.passages]
    for question, given in zip(found, expected, strict=True):
        assert question.ranking == tuple(hit.passage for hit in given)  # what the study ranks by itself
        np.testing.assert_allclose(sorted(question.given_scores, reverse=True), [hit.score for hit in given], atol=1e-5)
    assert [q.support for q in after] == [q.support for q in before]


def test_rows_and_passages_that_are_empty(tmp_path: Path, checkpoints: dict[str, Path]) -> None:
    rows = fid_rows(3)
    rows[0]["question"] = " "
    rows[1]["ctxs"] = [{"title": "", "text": None}, *rows[1]["ctxs"]]
    ended = scored(tmp_path, checkpoints["bert"], rows)
    assert "a row whose field 'question' is empty: 1, left out; the first: file.jsonl.gz, line 1." in ended.err
    written = [json.loads(line) for line in (tmp_path / "scored.jsonl").read_text().splitlines()]
    assert [row["question"] for row in written] == [row["question"] for row in rows[1:]]
    assert [item["score"] is None for item in written[0]["ctxs"]] == [True] + [False] * (len(written[0]["ctxs"]) - 1)


def test_rows_that_share_a_line_and_rows_of_several_lines(tmp_path: Path, checkpoints: dict[str, Path]) -> None:
    rows = fid_rows(3)
    rows[0]["question"] = " "
    rows[1]["ctxs"].append(None)
    (tmp_path / "a.json").write_text("".join(map(json.dumps, rows)))
    (tmp_path / "b.json").write_text("\n".join(json.dumps(row, indent=1) for row in rows))
    for name in ("a", "b"):
        options = ["--questions", f"{name}.json", "--out", f"{name}.jsonl", "--encoder", str(checkpoints["bert"])]
        done(tmp_path, "infer.py", "score", *options, "--device", "cpu")
        written = [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
        assert [row["question"] for row in written] == [row["question"] for row in rows[1:]]
        assert written[0]["ctxs"][-1] is None
        assert all(type(item["score"]) is float for row in written for item in filter(None, row["ctxs"]))
