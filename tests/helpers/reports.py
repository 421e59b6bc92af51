"""Reading a report folder of `infer.py evaluate`: its table cells, its JSON and its questions."""

import csv
import json
import math
from pathlib import Path
from typing import Any

Key = tuple[str, str, str]  # table, row, column


def _rows(out: Path) -> list[dict[str, str]]:
    with (out / "report.csv").open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def _key(row: dict[str, str]) -> Key:
    return row["table"], row["row"], row["column"]


def cells(out: Path, source: str = "ours") -> dict[Key, float]:
    """The values of report.csv; NaN where something was not measured."""
    return {_key(row): float(row["value"] or "nan") for row in _rows(out) if row["source"] == source}


def reasons(out: Path) -> dict[Key, str]:
    """Why cells of report.csv have no value."""
    return {_key(row): row["note"].partition(": ")[2] for row in _rows(out) if row["note"]}


def measured_cells(out: Path) -> dict[Key, float]:
    """The values of report.csv without those that the clock gives, and without cells that were not measured."""
    return {key: value for key, value in cells(out).items() if not math.isnan(value) and not _of_the_clock(*key)}


def _of_the_clock(table: str, row: str, column: str) -> bool:
    return row.startswith("seconds") or column in ("time", "seconds") or column.startswith("s, ")


def questions(out: Path) -> list[dict[str, Any]]:
    """The records of questions.jsonl."""
    return [json.loads(line) for line in (out / "questions.jsonl").read_text(encoding="utf-8").splitlines()]


def timeless(record: dict[str, Any]) -> dict[str, Any]:
    """A question's record without measured times."""
    costs = {name: value for name, value in record["costs"].items() if "seconds" not in name}
    return {**record, "costs": costs}


def report(out: Path) -> dict[str, Any]:
    """report.json."""
    return json.loads((out / "report.json").read_text(encoding="utf-8"))
