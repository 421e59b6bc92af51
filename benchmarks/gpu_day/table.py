"""One table of all that a folder holds: `python -m benchmarks.gpu_day table --out FOLDER` writes table.md there."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from common.files import write_text

STEPS = "steps.jsonl"  # {"step", "exit", "seconds", "limit"} of each, by scripts/gpu_day.sh
NOT_SHOWN = "FAISS on a GPU, BM25, W&B, Hugging Face data sets, several GPUs, published weights"
HEAD = ("what", "unit", "ours", "beside", "theirs", "ours / theirs")


def line(*cells: str) -> str:
    """A row of the table."""
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def of_tests(step: str, found: dict[str, Any]) -> list[str]:
    """A row of the counts of outcomes, and one of each test that failed."""
    outcomes, why = found["outcomes"], found["why"]
    counts = Counter(outcomes.values())
    others = f"{counts['failed']} failed, {counts['skipped']} skipped"
    failed = [(name, why.get(name, "").partition("\n")[0]) for name in outcomes if outcomes[name] == "failed"]
    rows = [line(step, "tests", f"{counts['passed']} passed", "", "", others)]
    return rows + [line(f"failed: {name}", "", "", "", "", reason) for name, reason in failed]


def of_rows(found: dict[str, Any]) -> list[str]:
    """A row of each value of ours with each value beside it."""
    rows = []
    for each in found["rows"]:
        what, unit, value = each["what"], each["measure"], each["ours"]
        ours = "no room" if value is None else f"{value:,.4g}"
        beside = [(name, f"{x:,.4g}", f"{value / x:.2f}" if value and x else "") for name, x in each["beside"].items()]
        beside += [(name, "no room", "") for name in each.get("no_room", {}) if name != "ours"]
        rows += [line(what, unit, ours, *cells) for cells in beside or [("", "", "")]]
    return rows


def write_table(folder: Path) -> str:
    """Write table.md from the folder's results; returns its text."""
    lines = [line(*HEAD), line(*["---"] * len(HEAD))]
    steps = [json.loads(each) for each in (folder / STEPS).read_text().splitlines()]
    for step in steps:
        file = folder / f"{step['step']}.json"
        found = json.loads(file.read_text()) if file.is_file() else {"rows": []}
        lines += of_tests(step["step"], found) if "outcomes" in found else of_rows(found)
    lines += ["", line("step", "exit code", "seconds", "limit"), line(*["---"] * 4)]
    lines += [line(*(str(step[key]) for key in ("step", "exit", "seconds", "limit"))) for step in steps]
    lines += ["", "Exit code 124: the step took longer than its limit.", f"Not shown: {NOT_SHOWN}."]
    text = "\n".join(lines) + "\n"
    write_text(folder / "table.md", text)
    return text
