"""Means over seeds of several reports, with hand-worked values, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.seeds import table
from common.errors import UserError

GOLD = (["a", "b"], ["c"])


def report(folder: Path, fields: list[dict[str, Any]], ids: tuple[str, ...] = ("q1", "q2")) -> Path:
    """A report of as many questions as ids, of which one more has no gold passage."""
    records = [
        {"id": id_, "gold": [{"id": each} for each in gold], **own}
        for id_, gold, own in zip(ids, GOLD, fields, strict=False)
    ]
    records.append({**records[0], "id": f"{ids[0]} without gold", "gold": [], "EM": None})
    folder.mkdir()
    (folder / "questions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    return folder


def rankings(rows: dict[str, tuple[str, str]]) -> list[dict[str, Any]]:
    """Rows of DMQR-RAG's study of both questions, a letter a passage."""
    return [{"rows": {name: {"passages": [*row[place]]} for name, row in rows.items()}} for place in (0, 1)]


def test_seeds_at_the_end_of_rows_and_reports_over_other_questions(tmp_path: Path) -> None:
    rows = {"OQR": ("xy", "cy"), "imitation 0": ("ax", "xy"), "imitation 1": ("xa", "yx")}
    rows |= {"lora 0": ("ab", "xc"), "lora 1": ("ax", "cx")}
    first = report(tmp_path / "first", rankings(rows))
    measures = ["hit@2", "precision@2", "recall@2"]
    shown = table({"words": [first]}, measures, "words: imitation")
    assert "| words: imitation | 2 | 50.00 (50.00 to 50.00) |  | 25.00 (25.00 to 25.00) |  | 25.00" in shown
    # precision, by question: lora - imitation is 25 (mean of 50 and 0) and 50 (of 50 and 50)
    assert (
        "| words: lora | 2 | 100.00 (100.00 to 100.00) | +50.00 [+0.00, +100.00] | 62.50 (50.00 to 75.00) | "
        "+37.50 [+25.00, +50.00] | 87.50 (75.00 to 100.00) | +62.50 [+25.00, +100.00] |" in shown
    )
    assert "| words: OQR | 1 | 50.00 | +0.00 [" in shown
    other = report(tmp_path / "other", rankings(rows)[:1], ids=("q3",))
    joined = table({"words": [first, other]}, ["precision@2"], "words: imitation")
    assert "| words: lora | 2 | 66.67 (50.00 to 83.33) |" in joined  # the first question twice
    del rows["lora 1"]
    fewer = report(tmp_path / "fewer", rankings(rows)[:1], ids=("q4",))
    with pytest.raises(UserError, match="do not all have the row 'lora 1'"):
        table({"words": [first, fewer]}, measures)
    with pytest.raises(UserError, match="has a report twice"):
        table({"words": [first, fewer / ".." / "first"]}, measures)


def test_systems_by_their_own_measures(tmp_path: Path) -> None:
    paper = report(tmp_path / "paper", [{"EM": 0.0}, {"EM": 1.0}])
    ours = [report(tmp_path / f"ours-{seed}", [{"EM": 1.0}, {"EM": right}]) for seed, right in ((0, 1.0), (1, 0.0))]
    shown = table({"paper": [paper], "ours": ours}, ["EM"])
    assert "| paper | 1 | 50.00 |  |" in shown
    # seed 0, which both have: 100 - 0 and 100 - 100; the question without EM does not count
    assert "| ours | 2 | 75.00 (50.00 to 100.00) | +50.00 [+0.00, +100.00] |" in shown
