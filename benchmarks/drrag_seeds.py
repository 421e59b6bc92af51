"""Classifiers of DR-RAG trained at several seeds.

One report of `infer.py evaluate` for each, over the same questions, in one table.

    python -m benchmarks.drrag_seeds reports/hotpotqa-0 reports/hotpotqa-1 reports/hotpotqa-2

Prints Markdown: for each row and k the recall of gold passages, mean over the seeds with the lowest and the highest,
the documents, and the difference to the baseline with a 95% bootstrap interval over the questions, of which each counts
with its mean over the seeds.

Shape legend: N questions, S seeds.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import UserError, exit_code
from harness.evaluation.bootstrap import paired_intervals
from harness.evaluation.tables import markdown_table

COMMAND = "python -m benchmarks.drrag_seeds"

Rows = dict[str, dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]]  # row, k: recall % (N,), documents (N,)


def read_report(folder: Path) -> tuple[list[str], str | None, Rows]:
    """Ids of the questions, digest of the classifier, and the rows of one report.

    Raises:
        UserError: If it is no report of DR-RAG's study.
    """
    files = folder / "questions.jsonl", folder / "report.json"
    if not all(file.is_file() for file in files):
        raise UserError(f"{folder} is no report: give a folder that python infer.py evaluate wrote.")
    records = [json.loads(line) for line in files[0].read_text(encoding="utf-8").splitlines()]
    records = [each for each in records if each.get("gold") and each.get("rows")]
    study = json.loads(files[1].read_text(encoding="utf-8")).get("study") or {}
    if not records or "classifier" not in study:
        raise UserError(f"{folder} has no question with gold passages and rows of DR-RAG's study: evaluate its config.")
    rows = {
        name: {k: _measured([each["rows"][name][k] for each in records]) for k in by_k}
        for name, by_k in records[0]["rows"].items()
    }
    return [each["id"] for each in records], (study["classifier"] or {}).get("sha256"), rows


def _measured(chosen: Sequence[dict[str, Any]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Recall in percent and number of documents of each question, (N,)."""
    recall = [100.0 * len(each["found"]) / (len(each["found"]) + len(each["missed"])) for each in chosen]
    return np.array(recall), np.array([float(len(each["documents"])) for each in chosen])


def table(folders: Sequence[Path], baseline: str = "SM") -> str:
    """The table as Markdown.

    Raises:
        UserError: If a folder is no such report, reports have other questions, other k or the same classifier, or a row
            is missing.
    """
    reports = [read_report(folder) for folder in folders]
    asked, _, first = reports[0]
    digests: dict[str | None, Path] = {}
    for folder, (ids, digest, rows) in zip(folders, reports, strict=True):
        if ids != asked:
            raise UserError(f"{folder} has other questions than {folders[0]}: give reports on the same file.")
        if digest in digests:
            raise UserError(
                f"{folder} and {digests[digest]} are of the same classifier: give a report for each training."
            )
        digests[digest] = folder
        if baseline not in rows:
            raise UserError(f"{folder} has no row {baseline!r}; allowed: {', '.join(rows)}.")
        if list(rows[baseline]) != list(first[baseline]):
            ks = [", ".join(each[baseline]) for each in (rows, first)]
            raise UserError(
                f"{folder} has k = {ks[0]}, {folders[0]} has k = {ks[1]}: evaluate both with the same --study.ks."
            )
    header = ["row", "k", "recall %", "documents", f"difference to {baseline}"]
    lines = []
    for name in first:
        if any(name not in rows for _, _, rows in reports):
            continue
        for k in first[name]:
            recall_SN = np.array([rows[name][k][0] for _, _, rows in reports])
            baseline_SN = np.array([rows[baseline][k][0] for _, _, rows in reports])
            documents = float(np.mean([rows[name][k][1] for _, _, rows in reports]))
            gain_N = (recall_SN - baseline_SN).mean(axis=0)
            ((low, high),) = paired_intervals(gain_N[None])
            means_S = recall_SN.mean(axis=1)
            level = f"{means_S.mean():.2f} ({means_S.min():.2f} to {means_S.max():.2f})"
            gain = "" if name == baseline else f"{gain_N.mean():+.2f} [{low:+.2f}, {high:+.2f}]"
            lines.append([name, k, level, f"{documents:.2f}", gain])
    title = (
        f"{len(asked)} questions, {len(folders)} classifiers; recall: mean over the classifiers (lowest to highest)."
    )
    return "\n".join([title, "", *markdown_table(header, lines)]) + "\n"


def main(args: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog=COMMAND
    )
    options.add_argument("reports", type=Path, nargs="+")
    options.add_argument("--baseline", default="SM")
    given = options.parse_args(args)
    print(table(given.reports, given.baseline), end="")


if __name__ == "__main__":
    raise SystemExit(exit_code(COMMAND, main))
