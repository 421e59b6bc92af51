"""Comparison of RE-RAG's loss protocols over seeds, from the reports of scripts/rerag_protocols.sh.

    python -m benchmarks.protocols reports/protocols [--baseline paper] [--skip 50]

Prints a Markdown table: each seed's scores, their means, and differences to the baseline with 95% bootstrap intervals.
These resample questions (values averaged over seeds) and exclude the variance between trainings, which the seeds' rows
show. Shape legend: S seeds, N questions.
"""

import argparse
import csv
import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import exact_match
from harness.evaluation.bootstrap import paired_intervals
from harness.evaluation.rerag.tables import FULL

REPORT = re.compile(r"rerag-(?P<protocol>\w+)-(?P<seed>\d+)-(?P<file>\w+)")
OPEN = "_open"  # suffix of files that contain questions without an answer in their passages
COLUMNS = ("R@1 %", "EM %, thorough", "EM %, fast")


def rows(report: Path) -> list[dict]:
    """The questions of one report, in order."""
    return [json.loads(line) for line in (report / "questions.jsonl").read_text(encoding="utf-8").splitlines()]


def measures(questions: list[dict]) -> NDArray[np.float64]:
    """R@1 by has-answer and EM of both marginals per question, in per cent: (3, N)."""
    scores = []
    for row in questions:
        best = max(row["candidates"], key=lambda candidate: candidate["relevance"])
        read = row["settings"][FULL]
        exact = [exact_match(read[marginal]["text"], row["answers"]) for marginal in ("thorough", "fast")]
        scores.append([best["has_answer"], *exact])
    return 100 * np.array(scores, dtype=float).T


def answerable_auroc(report: Path) -> float:
    """The estimator's AUROC for context sets with an answer against sets without, from the report."""
    with (report / "report.csv").open(encoding="utf-8", newline="") as file:
        found = [row["value"] for row in csv.DictReader(file) if (row["table"], row["row"]) == ("auroc", "RE")]
    values = [float(value) for value in found if value]  # empty: not measured
    if not values:
        raise SystemExit(f"{report} has no AUROC: evaluate a file with both answerable and unanswerable questions.")
    return values[0]


def table(folder: Path, baseline: str, skip: int = 0) -> str:
    """The comparison as Markdown.

    Args:
        folder: Reports named rerag-PROTOCOL-SEED-FILE, each of the same questions.
        baseline: Protocol that the others are compared with.
        skip: Number of first questions excluded from R@1 and EM: the temperature was chosen on them.

    Raises:
        SystemExit: If the folder lacks reports or the baseline, or reports have different questions.
    """
    if not folder.is_dir():
        raise SystemExit(f"{folder} does not exist: run scripts/rerag_protocols.sh.")
    scored: dict[str, dict[int, NDArray[np.float64]]] = defaultdict(dict)
    aurocs: dict[tuple[str, int], float] = {}
    question_ids: dict[str, list[str]] = {}
    for report in sorted(folder.iterdir()):
        named = REPORT.fullmatch(report.name)
        if named is None:
            continue
        questions, seed = rows(report), int(named["seed"])
        ids = [row["id"] for row in questions]
        if question_ids.setdefault(named["file"], ids) != ids:
            raise SystemExit(
                f"{report} has other questions than the other reports of {named['file']}: evaluate it again."
            )
        if named["file"].endswith(OPEN):
            aurocs[named["protocol"], seed] = answerable_auroc(report)
        else:
            if len([file for file in question_ids if not file.endswith(OPEN)]) > 1:
                raise SystemExit(f"{folder} holds reports of several files, {', '.join(question_ids)}: keep only one.")
            scored[named["protocol"]][seed] = measures(questions[skip:])
    if baseline not in scored:
        raise SystemExit(
            f"{folder} holds no report of {baseline!r}, only of {sorted(scored)}: run scripts/rerag_protocols.sh."
        )
    lines = [
        f"# Protocols: {', '.join(f'{len(ids)} questions of {file}' for file, ids in question_ids.items())}; R@1 and "
        f"EM without the first {skip}",
        "",
        "| protocol, seed | " + " | ".join((*COLUMNS, "AUROC, answerable")) + " |",
        "| --- |" + " ---: |" * (len(COLUMNS) + 1),
    ]
    means = {protocol: np.mean(list(seeds.values()), axis=0) for protocol, seeds in scored.items()}
    for protocol, seeds in scored.items():
        for seed, values in seeds.items():
            auroc = f"{aurocs[protocol, seed]:.3f}" if (protocol, seed) in aurocs else ""
            lines.append(_row(f"{protocol}, {seed}", [*(f"{value:.1f}" for value in values.mean(axis=1)), auroc]))
        cells = [f"**{value:.1f}**" for value in means[protocol].mean(axis=1)]
        auroc_S = [aurocs[protocol, seed] for seed in seeds if (protocol, seed) in aurocs]
        cells.append(f"**{np.mean(auroc_S):.3f}**" if auroc_S else "")
        lines.append(_row(f"**{protocol}, mean of {len(seeds)}**", cells))
    for protocol in scored:
        if protocol != baseline and scored[protocol].keys() & scored[baseline].keys():
            common_seeds = sorted(scored[protocol].keys() & scored[baseline].keys())
            gain = np.mean([scored[protocol][seed] - scored[baseline][seed] for seed in common_seeds], axis=0)
            cells = [f"{m:+.1f} [{low:+.1f}, {high:+.1f}]" for m, (low, high) in
                     zip(gain.mean(axis=1), paired_intervals(gain), strict=True)]  # fmt: skip
            lines.append(_row(f"{protocol} - {baseline}, points", [*cells, ""]))
    return "\n".join(lines) + "\n"


def _row(name: str, cells: list[str]) -> str:
    return f"| {name} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", type=Path)
    parser.add_argument("--baseline", default="paper")
    parser.add_argument("--skip", type=int, default=50)
    given = parser.parse_args()
    print(table(given.reports, given.baseline, given.skip), end="")
