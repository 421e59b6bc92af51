"""The table that compares RE-RAG's protocols over seeds, from reports worked out by hand."""

import csv
import json
from pathlib import Path

import pytest

from benchmarks.protocols import table
from harness.evaluation.rerag.tables import FULL


def write_report(folder: Path, name: str, found: list[bool], right: list[bool], auroc: float | None = None) -> None:
    """A report of as many questions: whether the best candidate holds the answer, and whether it was read from it."""
    (folder / name).mkdir(parents=True)
    rows = [
        {
            "id": f"q{number}",
            "answers": ["yes"],
            "candidates": [{"relevance": 1.0, "has_answer": first}, {"relevance": 0.0, "has_answer": not first}],
            "settings": {FULL: {"thorough": {"text": "yes" if good else "no"}, "fast": {"text": "no"}}},
        }
        for number, (first, good) in enumerate(zip(found, right, strict=True))
    ]
    (folder / name / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with (folder / name / "report.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["table", "row", "column", "value"])
        if auroc is not None:
            writer.writerow(["auroc", "RE", "AUROC", auroc])


def test_seeds_means_and_differences(tmp_path: Path) -> None:
    yes, no = True, False
    for protocol, seed, right in (("paper", 0, [no, no, yes, no]), ("paper", 1, [no, no, no, no]),
                                  ("ours", 0, [no, yes, yes, yes]), ("ours", 1, [no, yes, yes, no]),
                                  ("ours", 2, [no, no, no, no])):  # fmt: skip
        write_report(tmp_path, f"rerag-{protocol}-{seed}-validation", [no, yes, yes, no], right)
        write_report(tmp_path, f"rerag-{protocol}-{seed}-validation_open", [yes], [yes], 0.5 + seed / 10)
    lines = table(tmp_path, "paper", skip=1).splitlines()
    assert "| paper, 0 | 66.7 | 33.3 | 0.0 | 0.500 |" in lines
    assert "| **paper, mean of 2** | **66.7** | **16.7** | **0.0** | **0.550** |" in lines
    assert "| **ours, mean of 3** | **66.7** | **55.6** | **0.0** | **0.600** |" in lines
    (difference,) = (line for line in lines if line.startswith("| ours - paper"))
    # over the two seeds that both have: 83.3 - 16.7
    assert difference.startswith("| ours - paper, points | +0.0 [+0.0, +0.0] | +66.7 [")


@pytest.mark.parametrize(
    ("name", "questions", "message"),
    [
        ("rerag-ours-0-validation", 2, "has other questions than"),
        ("rerag-ours-0-test", 3, "reports of several files"),
        ("rerag-ours-0-validation_open", 3, "has no AUROC"),
    ],
)
def test_what_does_not_compare_is_refused(tmp_path: Path, name: str, questions: int, message: str) -> None:
    write_report(tmp_path, "rerag-paper-0-validation", [True] * 3, [True] * 3)
    write_report(tmp_path, name, [True] * questions, [True] * questions)
    with pytest.raises(SystemExit, match=message):
        table(tmp_path, "paper")


def test_a_missing_folder_or_baseline_names_the_script(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(SystemExit, match=r"run scripts/rerag_protocols\.sh"):
            table(folder, "paper")
