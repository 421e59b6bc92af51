"""Means over seeds of a report's rewriters, with hand-worked values."""

import json
from pathlib import Path

import pytest

from benchmarks.rewriter_seeds import main, read_report, scores, table
from common.errors import UserError

# Two questions with gold passages a and b, and c.
ROWS = {
    "OQR": (["x", "y"], ["c", "y"]),
    "imitation 0": (["a", "x"], ["x", "y"]),
    "imitation 1": (["x", "a"], ["y", "x"]),
    "dpo 0": (["a", "b"], ["x", "c"]),
    "dpo 1": (["a", "x"], ["c", "x"]),
    "dpo 1, kwr": (["x", "y"], ["x", "y"]),
}


@pytest.fixture
def report(tmp_path: Path) -> Path:
    gold = [[{"id": "a"}, {"id": "b"}], [{"id": "c"}]]
    records = [
        {"gold": gold[number], "rows": {name: {"passages": row[number]} for name, row in ROWS.items()}}
        for number in range(2)
    ]
    records.append({"gold": [], "rows": records[0]["rows"]})  # a question without gold passages does not count
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    return tmp_path


def test_scores_of_one_question() -> None:
    assert scores(["a", "x", "b"], {"a", "b"}, (1, 3)) == [100, 100, 50, 100, pytest.approx(200 / 3), 100]
    assert scores(["x"], {"a"}, (1,)) == [0, 0, 0]


def test_seeds_and_differences(report: Path) -> None:
    text = table([report], "imitation", (2,))
    assert "2 questions" in text
    # H@2: both seeds of imitation find a passage of the first question only; dpo finds one of each. P@2: 25; 75 and 50;
    # recall@2: 25; 100 and 75.
    assert "| imitation | 2 | 50.00 (50.0 to 50.0) | 25.00 (25.0 to 25.0) | 25.00 (25.0 to 25.0) |" in text
    assert "| dpo | 2 | 100.00 (100.0 to 100.0) | 62.50 (50.0 to 75.0) | 87.50 (75.0 to 100.0) |" in text
    # Per question, P@2: dpo - imitation is 25 (mean of 50 and 0) and 50 (of 50 and 50).
    assert "| dpo | 2 | +50.00 [+0.00, +100.00] | +37.50 [+25.00, +50.00] | +62.50 [+25.00, +100.00] |" in text
    assert "| OQR | 1 | 50.00 | 25.00 | 50.00 |" in text
    assert "kwr" not in text


def test_questions_of_several_reports_count_alike(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [json.loads(line) for line in (report / "questions.jsonl").read_text().splitlines()]
    other = report / "other"
    other.mkdir()
    (other / "questions.jsonl").write_text(json.dumps(records[1]))
    main([str(report), str(other), "--ks", "2"])
    text = capsys.readouterr().out
    assert text.startswith("3 questions")
    # the second question twice: P@2 of dpo 50 at both seeds, of the first question 100 and 50
    assert "| dpo | 2 | 100.00 (100.0 to 100.0) | 58.33 (50.0 to 66.7) |" in text
    assert "| imitation | 2 | 33.33 (33.3 to 33.3) | 16.67 (16.7 to 16.7) |" in text
    del records[1]["rows"]["dpo 1"]
    (other / "questions.jsonl").write_text(json.dumps(records[1]))
    with pytest.raises(UserError, match="have different rows, such as 'dpo 1'"):
        table([report, other], "imitation", (2,))
    with pytest.raises(UserError, match="given twice"):
        table([report, other / ".."], "imitation", (2,))


def test_single_queries(report: Path) -> None:
    assert [*read_report(report, (2,), queries=True)["dpo, kwr"]] == ["1"]


@pytest.mark.parametrize(
    ("baseline", "ks", "message"),
    [("sft", (2,), "has no row of 'sft'; allowed: OQR, imitation, dpo."), ("dpo", (5,), "has 2 passages of OQR")],
)
def test_refuses(report: Path, baseline: str, ks: tuple[int, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        table([report], baseline, ks)


def test_refuses_another_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no report"):
        table([tmp_path], "imitation", (5,))
