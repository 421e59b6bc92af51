"""RE-RAG's protocols side by side over seeds, from the reports that scripts/rerag_protocols.sh leaves.

    python -m benchmarks.protocols reports/protocols [--baseline paper] [--skip 50]

Markdown: every seed's figures, their means, and differences to the baseline with 95% intervals, bootstrapped over questions
(a question's value is its mean over seeds, so the intervals speak of questions, the seeds' own rows of training's chance).
Shape legend: S seeds, N questions.
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
OPEN = "_open"  # end of the name of a file that holds questions without an answer among their passages
COLUMNS = ("R@1 %", "EM %, thorough", "EM %, fast")


def rows(report: Path) -> list[dict]:
    """The questions of one report, in their order."""
    return [json.loads(line) for line in (report / "questions.jsonl").read_text(encoding="utf-8").splitlines()]


def measures(questions: list[dict]) -> NDArray[np.float64]:
    """R@1 by has-answer and EM of both marginals per question, in per cent: (3, N)."""
    found = []
    for row in questions:
        best = max(row["candidates"], key=lambda candidate: candidate["relevance"])
        read = row["settings"][FULL]
        exact = [exact_match(read[marginal]["text"], row["gold"]) for marginal in ("thorough", "fast")]
        found.append([best["has_answer"], *exact])
    return 100 * np.array(found, dtype=float).T


def answerable_auroc(report: Path) -> float:
    """How well the report found the estimator to tell sets of contexts with an answer from sets without."""
    with (report / "answers.csv").open(encoding="utf-8", newline="") as file:
        found = [float(row["value"]) for row in csv.DictReader(file) if (row["table"], row["row"]) == ("auroc", "RE")]
    if not found:
        raise SystemExit(f"{report} says nothing of questions without an answer: measure a file that has both kinds.")
    return found[0]


def table(folder: Path, baseline: str, skip: int = 0) -> str:
    """The comparison as Markdown.

    Args:
        folder: Reports named rerag-PROTOCOL-SEED-FILE, each of the same questions.
        baseline: Protocol that the others are compared with.
        skip: First questions left out of R@1 and EM: those on which the runs chose their temperature.

    Raises:
        SystemExit: If the folder lacks reports or the baseline, or two reports are not of the same questions.
    """
    if not folder.is_dir():
        raise SystemExit(f"{folder} does not exist: run scripts/rerag_protocols.sh.")
    scored: dict[str, dict[int, NDArray[np.float64]]] = defaultdict(dict)
    refusing: dict[tuple[str, int], float] = {}
    asked: dict[str, list[str]] = {}
    for report in sorted(folder.iterdir()):
        named = REPORT.fullmatch(report.name)
        if named is None:
            continue
        questions, seed = rows(report), int(named["seed"])
        ids = [row["id"] for row in questions]
        if asked.setdefault(named["file"], ids) != ids:
            raise SystemExit(
                f"{report} is not of the same questions as the others of {named['file']}: measure it again."
            )
        if named["file"].endswith(OPEN):
            refusing[named["protocol"], seed] = answerable_auroc(report)
        else:
            if len([file for file in asked if not file.endswith(OPEN)]) > 1:
                raise SystemExit(f"{folder} holds reports of several files, {', '.join(asked)}: keep those of one.")
            scored[named["protocol"]][seed] = measures(questions[skip:])
    if baseline not in scored:
        raise SystemExit(
            f"{folder} holds no report of {baseline!r}, only of {sorted(scored)}: run scripts/rerag_protocols.sh."
        )
    lines = [
        f"# Protocols: {', '.join(f'{len(ids)} questions of {file}' for file, ids in asked.items())}; R@1 and EM of all but "
        f"the first {skip}",
        "",
        "| protocol, seed | " + " | ".join((*COLUMNS, "AUROC, answerable")) + " |",
        "| --- |" + " ---: |" * (len(COLUMNS) + 1),
    ]
    means = {protocol: np.mean(list(seeds.values()), axis=0) for protocol, seeds in scored.items()}
    for protocol, seeds in scored.items():
        for seed, values in seeds.items():
            told = f"{refusing[protocol, seed]:.3f}" if (protocol, seed) in refusing else ""
            lines.append(_row(f"{protocol}, {seed}", [*(f"{value:.1f}" for value in values.mean(axis=1)), told]))
        shown = [f"**{value:.1f}**" for value in means[protocol].mean(axis=1)]
        told_S = [refusing[protocol, seed] for seed in seeds if (protocol, seed) in refusing]
        shown.append(f"**{np.mean(told_S):.3f}**" if told_S else "")
        lines.append(_row(f"**{protocol}, mean of {len(seeds)}**", shown))
    for protocol in scored:
        if protocol != baseline and scored[protocol].keys() & scored[baseline].keys():
            both = sorted(scored[protocol].keys() & scored[baseline].keys())  # the seeds that both have
            gain = np.mean([scored[protocol][seed] - scored[baseline][seed] for seed in both], axis=0)
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
