"""Rewriters trained at several seeds, compared in reports of DMQR-RAG's study.

It prints means over the seeds, and differences to a baseline.

    python infer.py evaluate --config FILE --questions FILE --out reports/NAME \\
        --study.rewriters '{imitation 0: CONFIG, imitation 1: CONFIG, dpo 0: CONFIG, dpo 1: CONFIG}'
    python -m benchmarks.rewriter_seeds reports/NAME --baseline imitation --ks 5 10

A rewriter's name ends in its seed. Several reports, of other questions with the same rows, are joined: every question
counts alike. Prints Markdown: for each system H@k and P@k by gold passage and recall@k, with the lowest and the highest
seed, and the difference to the baseline with a 95% bootstrap interval over the questions, of which each counts with its
mean over the seeds. Rows of single queries (`NAME SEED, kwr`) are systems of their own with --queries, and rows without
a seed, such as OQR, have one value.

Shape legend: N questions, S seeds, C columns.
"""

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.errors import UserError, exit_code
from harness.evaluation.bootstrap import paired_intervals
from harness.evaluation.tables import markdown_table

COMMAND = "python -m benchmarks.rewriter_seeds"
SEEDED = re.compile(r"(?P<system>[^,]+) (?P<seed>\d+)(?P<query>, .+)?")


def scores(ranked: Sequence[str], gold: set[str], ks: Sequence[int]) -> list[float]:
    """H@k, P@k and recall@k of one question for each k, in percent."""
    values = []
    for k in ks:
        found = len(gold.intersection(ranked[:k]))
        values += [100.0 * (found > 0), 100.0 * found / k, 100.0 * found / len(gold)]
    return values


def read_report(folder: Path, ks: Sequence[int], queries: bool) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Scores (N, C) by system and seed; a row without a seed has the seed "".

    Raises:
        UserError: If there is no such report, or its rows are too short for the greatest k.
    """
    file = folder / "questions.jsonl"
    if not file.is_file():
        raise UserError(f"{folder} is no report: give the folder that python infer.py evaluate wrote.")
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    records = [each for each in records if each.get("gold")]
    if not records or "rows" not in records[0]:
        raise UserError(
            f"{folder} has no question with gold passages and rows of DMQR-RAG's study: evaluate its config."
        )
    systems: dict[str, dict[str, NDArray[np.float64]]] = defaultdict(dict)
    for name in records[0]["rows"]:
        ranked = [each["rows"][name]["passages"] for each in records]
        longest = max(map(len, ranked))
        if longest < max(ks):
            raise UserError(f"{folder} has {longest} passages of {name}; k may be at most that, got {max(ks)}.")
        values_NC = np.array([
            scores(own, {gold["id"] for gold in each["gold"]}, ks) for own, each in zip(ranked, records, strict=True)
        ])  # fmt: skip
        seeded = SEEDED.fullmatch(name)
        if seeded and seeded["query"] and not queries:
            continue
        system, seed = (seeded["system"] + (seeded["query"] or ""), seeded["seed"]) if seeded else (name, "")
        systems[system][seed] = values_NC
    return systems


def read_reports(
    folders: Sequence[Path], ks: Sequence[int], queries: bool
) -> dict[str, dict[str, NDArray[np.float64]]]:
    """As `read_report`, with the questions of all reports, one after the other.

    Raises:
        UserError: As there, or if a report is given twice or has other rows than the first one.
    """
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise UserError("A report is given twice, so that its questions would count twice: name each once.")
    first, *others = (read_report(folder, ks, queries) for folder in folders)
    for folder, other in zip(folders[1:], others, strict=True):
        rows, expected = ({(name, seed) for name in each for seed in each[name]} for each in (other, first))
        if different := rows ^ expected:
            name, seed = min(different)
            raise UserError(
                f"{folder} and {folders[0]} have different rows, such as {f'{name} {seed}'.strip()!r}: evaluate both "
                "with the same study.rewriters and study.rows."
            )
    return {
        name: {seed: np.concatenate([each[name][seed] for each in (first, *others)]) for seed in seeds}
        for name, seeds in first.items()
    }


def table(folders: Sequence[Path], baseline: str, ks: Sequence[int], queries: bool = False) -> str:
    """The table as Markdown.

    Raises:
        UserError: If the reports have no row of the baseline or different rows, or one is none of the study's or given
            twice.
    """
    systems = read_reports(folders, ks, queries)
    if baseline not in systems:
        raise UserError(f"{folders[0]} has no row of {baseline!r}; allowed: {', '.join(systems)}.")
    columns = [f"{measure}@{k}" for k in ks for measure in ("H", "P", "recall")]
    questions = len(next(iter(systems[baseline].values())))
    lines = [f"{questions} questions, percent, mean over the seeds (lowest to highest):", ""]
    rows = []
    for name, seeds in systems.items():
        means_SC = np.array([values_NC.mean(axis=0) for values_NC in seeds.values()])
        ranges = zip(means_SC.mean(axis=0), means_SC.min(axis=0), means_SC.max(axis=0), strict=True)
        cells = [
            f"{mean:.2f} ({low:.1f} to {high:.1f})" if len(seeds) > 1 else f"{mean:.2f}" for mean, low, high in ranges
        ]
        rows.append([name, str(len(seeds)), *cells])
    lines += [*markdown_table(["system", "seeds", *columns], rows), "", f"Difference to {baseline}, points:", ""]
    rows = []
    for name, seeds in systems.items():
        if name != baseline:
            common = sorted(seeds.keys() & systems[baseline].keys())
            if common:  # the same seeds: a run of feedback starts from the imitation of its seed
                pairs = [seeds[seed] - systems[baseline][seed] for seed in common]
                gain_CN = np.mean(pairs, axis=0).T
            else:
                gain_CN = (np.mean([*seeds.values()], axis=0) - np.mean([*systems[baseline].values()], axis=0)).T
            intervals = paired_intervals(gain_CN)
            cells = [
                f"{mean:+.2f} [{low:+.2f}, {high:+.2f}]"
                for mean, (low, high) in zip(gain_CN.mean(axis=1), intervals, strict=True)
            ]
            rows.append([name, str(len(common) or len(seeds)), *cells])
    return "\n".join([*lines, *markdown_table(["system", "seeds", *columns], rows)]) + "\n"


def main(args: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog=COMMAND
    )
    options.add_argument("reports", type=Path, nargs="+", help="folders that infer.py evaluate wrote")
    options.add_argument("--baseline", default="imitation")
    options.add_argument("--ks", type=int, nargs="+", default=[5, 10])
    options.add_argument("--queries", action="store_true", help="rows of single queries, too")
    given = options.parse_args(args)
    print(table(given.reports, given.baseline, given.ks, given.queries), end="")


if __name__ == "__main__":
    raise SystemExit(exit_code(COMMAND, main))
