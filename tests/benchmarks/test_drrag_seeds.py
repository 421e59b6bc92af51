"""Means over seeds of several reports of DR-RAG's study, with hand-worked values, and what is refused."""

import json
from pathlib import Path

import pytest

from benchmarks.drrag_seeds import main, table
from common.errors import UserError

# Found gold passages of two questions with two gold passages each, at k = 2, by classifier.
FOUND = {"one": {"SM": (1, 0), "ranked": (2, 0)}, "two": {"SM": (1, 0), "ranked": (2, 1)}}


def report(folder: Path, classifier: str, ids: tuple[str, str] = ("q1", "q2"), digest: str | None = None) -> Path:
    """A report of a classifier."""
    folder.mkdir()
    records = [
        {
            "id": id_, "gold": [{"id": "a"}, {"id": "b"}],
            "rows": {
                name: {"2": {"documents": ["x"] * (2 - place), "found": ["t"] * found[place],
                    "missed": ["t"] * (2 - found[place])}}
                for name, found in FOUND[classifier].items()
            },
        }
        for place, id_ in enumerate(ids)
    ]  # fmt: skip
    records.append({"id": "without", "gold": [], "rows": records[0]["rows"]})  # without gold passages it does not count
    (folder / "questions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    (folder / "report.json").write_text(json.dumps({"study": {"classifier": {"sha256": digest or classifier}}}))
    return folder


def test_means_over_seeds_and_differences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(report(tmp_path / name, name)) for name in FOUND])
    shown = capsys.readouterr().out
    assert "2 questions, 2 classifiers" in shown
    assert "| SM | 2 | 25.00 (25.00 to 25.00) | 1.50 |  |" in shown
    # ranked: (100 + 0) / 2 and (100 + 50) / 2; per question it gains 50, and 0 and 50
    assert "| ranked | 2 | 62.50 (50.00 to 75.00) | 1.50 | +37.50 [+25.00, +50.00] |" in shown


def test_reports_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    first = report(tmp_path / "first", "one")
    with pytest.raises(UserError, match="other questions than"):
        table([first, report(tmp_path / "other", "two", ids=("q1", "q3"))])
    with pytest.raises(UserError, match="are of the same classifier"):
        table([first, report(tmp_path / "again", "two", digest="one")])
    other_k = report(tmp_path / "k", "two") / "questions.jsonl"
    other_k.write_text(other_k.read_text().replace('"2": ', '"3": '))
    with pytest.raises(UserError, match=r"has k = 3, .*first has k = 2"):
        table([first, other_k.parent])
    with pytest.raises(UserError, match="no row 'QDC'; allowed: SM, ranked"):
        table([first], "QDC")
    with pytest.raises(UserError, match="is no report"):
        table([tmp_path])
    (first / "report.json").write_text(json.dumps({"study": {}}))
    with pytest.raises(UserError, match="of DR-RAG's study"):
        table([first])
