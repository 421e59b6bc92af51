"""Questions of one corpus: what is left out, which passages are relevant, and that halves are whole."""

import json
import sys
from pathlib import Path

import pytest

from scripts.reproduce_lm import one_corpus


def written(rows: list[dict], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[dict]]:
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["one_corpus", "fid", str(tmp_path / "in.jsonl"), "--out", str(out)])
    one_corpus.main()
    return {file.stem: [json.loads(line) for line in file.read_text().splitlines()] for file in out.iterdir()}


def test_each_question_has_bm25s_first_of_all_passages_and_of_both_kinds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def rest(number: int) -> tuple[str, str]:
        return f"thing{number} is rare", f"lies in town{number}"

    rows = [
        {
            "question": f"where is thing{number}", "answers": [f"town{number}", "on"],
            "ctxs": [{"title": "", "text": f"thing{number} {text}"} for text in rest(number)],
        }
        for number in range(30)
    ]  # fmt: skip
    rows += [
        {"question": "Where is thing3?", "answers": ["town3"], "ctxs": []},  # asked before
        {"question": "is thing4 rare", "answers": ["yes", "no"], "ctxs": []},  # answers that say nothing
        {"question": "where is thing5 again", "answers": ["nowhere"], "ctxs": []},  # no passage holds it
    ]
    found = written(rows, tmp_path, monkeypatch)
    halves = [{row["question"] for row in found[f"half-{half}"]} for half in (0, 1)]
    assert halves[0] | halves[1] == {f"where is thing{number}" for number in range(30)}
    assert all(halves)
    assert not halves[0] & halves[1]
    for row in found["half-0"]:
        assert row["answers"] == [row["question"].replace("where is thing", "town")]  # "on" is too short
        assert len(row["ctxs"]) == 20
        scores = [each["score"] for each in row["ctxs"]]
        assert scores == sorted(scores, reverse=True)
        assert [each["hasanswer"] for each in row["ctxs"]] == [False, True] + 18 * [False]
    assert found["train-0"] == [{**row, "ctxs": row["ctxs"][:10]} for row in found["half-0"]]
    printed = capsys.readouterr().out
    assert "60 distinct passages, 32 questions" in printed
    assert "32 answers, 1 questions without an answer, 1 questions whose passages are all of one kind" in printed
    assert "30 questions, R@1 of BM25 0.0, of chance 5.0" in printed
