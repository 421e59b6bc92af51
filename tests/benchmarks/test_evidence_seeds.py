"""Means over seeds of several systems' reports, with hand-worked values."""

import json
from pathlib import Path

import pytest

from benchmarks.evidence_seeds import main, table
from common.errors import UserError

GOLD = (["a", "b"], ["c", "d"])
FOUND = {  # of the two questions
    "binary-0": (["a", "x"], ["c", "y"]),  # recall 50 and 50, F1 the same
    "binary-1": (["b", "a"], ["y"]),  # recall 100 and 0
    "listwise-0": (["a", "b"], ["d", "c"]),
    "listwise-1": (["a", "b", "x"], ["c"]),  # recall 100 and 50, F1 80 and 66.7
}


@pytest.fixture
def reports(tmp_path: Path) -> dict[str, Path]:
    for name, found in FOUND.items():
        records = [
            {
                "id": str(number),
                "gold": [{"id": each} for each in GOLD[number]],
                "evidence": [{"id": each} for each in found[number]],
            }
            for number in range(2)
        ]
        records.append({"id": "no gold", "gold": [], "evidence": [{"id": "x"}]})  # does not count
        (tmp_path / name).mkdir()
        (tmp_path / name / "questions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    return {name: tmp_path / name for name in FOUND}


def test_seeds_and_differences(reports: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    systems = [
        option
        for name in ("binary", "listwise")
        for option in ("--system", name, *(str(reports[f"{name}-{seed}"]) for seed in (0, 1)))
    ]
    main(systems)
    text = capsys.readouterr().out
    assert text.startswith("2 questions; mean over the seeds (lowest to highest), and the difference to binary.")
    assert "| binary | 2 | 50.0 (50.0 to 50.0) | 25.0 (0.0 to 50.0) | 50.0 (50.0 to 50.0) |" in text
    # recall, by question: 100 - 75 and 75 - 25; EM: 50 - 50 and 50 - 0; F1: 90 - 75 and 83.3 - 25
    assert (
        "| listwise | 2 | 87.5 (75.0 to 100.0) +37.5 [+25.0, +50.0] | 50.0 (0.0 to 100.0) +25.0 [+0.0, +50.0] | "
        "86.7 (73.3 to 100.0) +36.7 [+15.0, +58.3] |"
    ) in text


def test_refuses(reports: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere is no report"):
        table({"binary": [tmp_path / "nowhere"]})
    file = reports["listwise-1"] / "questions.jsonl"
    file.write_text(file.read_text().replace('"id": "0"', '"id": "other"'))
    with pytest.raises(UserError, match="listwise-1 has other questions than the first report"):
        table({"binary": [reports["binary-0"]], "listwise": [reports["listwise-1"]]})
    file.write_text(json.dumps({"id": "0", "gold": [], "evidence": []}) + "\n")
    with pytest.raises(UserError, match="no question with gold passages"):
        table({"listwise": [reports["listwise-1"]]})
    with pytest.raises(UserError, match="--system binary names no report"):
        main(["--system", "binary"])
    with pytest.raises(UserError, match="--system binary is given twice"):
        main(["--system", "binary", "a", "--system", "binary", "b"])
