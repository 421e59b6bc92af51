"""Compares systems that were trained at several seeds, by recall, EM and F1 of the passages that they returned.

    python -m benchmarks.evidence_seeds --system binary reports/binary-0 reports/binary-1 \
        --system listwise reports/listwise-0 reports/listwise-1

Each REPORT is a folder of `infer.py evaluate`, all over the same questions. Prints Markdown: for each system recall, EM
and F1 of all passages that it returned, in percent, mean over the seeds with the lowest and the highest, and the
difference to the first system with a 95% bootstrap interval over the questions, of which each counts with its mean over
the seeds.

Shape legend: N questions, S seeds, C columns.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.errors import UserError, exit_code
from common.records import Passage, Question, Ranked
from harness.evaluation.bootstrap import paired_intervals
from harness.evaluation.retrieval_scores import retrieval_scores
from harness.evaluation.tables import markdown_table

COMMAND = "python -m benchmarks.evidence_seeds"
COLUMNS = ("recall", "EM", "F1")


def read_report(folder: Path) -> tuple[list[str], NDArray[np.float64]]:
    """Ids of the questions with gold passages, and their scores in percent, (C, N).

    Raises:
        UserError: If it is no report, or no question has gold passages.
    """
    file = folder / "questions.jsonl"
    if not file.is_file():
        raise UserError(f"{folder} is no report: give a folder that python infer.py evaluate wrote.")
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    records = [each for each in records if each.get("gold") and "evidence" in each]
    if not records:
        raise UserError(f"{folder} has no question with gold passages and evidence: evaluate a file that names them.")
    questions = [Question(each["id"], "?", support=tuple(gold["id"] for gold in each["gold"])) for each in records]
    evidence = [[Ranked(Passage(hit["id"], ""), 0.0) for hit in each["evidence"]] for each in records]
    most = max(1, *map(len, evidence))
    scores = retrieval_scores(questions, evidence, (most,))
    return [each["id"] for each in records], 100 * np.array([scores[f"recall@{most}"], scores["EM"], scores["F1"]])


def table(systems: dict[str, Sequence[Path]]) -> str:
    """The table as Markdown.

    Args:
        systems: Report folders by the system's name, in the order of the seeds; differences are to the first one.

    Raises:
        UserError: If a folder is no such report, or reports have other questions.
    """
    asked: list[str] = []
    measured: dict[str, NDArray[np.float64]] = {}
    for name, folders in systems.items():
        of_seeds = []
        for folder in folders:
            ids, scores_CN = read_report(folder)
            asked = asked or ids
            if ids != asked:
                raise UserError(f"{folder} has other questions than the first report: evaluate all on the same file.")
            of_seeds.append(scores_CN)
        measured[name] = np.array(of_seeds)  # (S, C, N)
    baseline, *_ = measured
    rows = []
    for name, scores_SCN in measured.items():
        means_SC = scores_SCN.mean(axis=2)
        gain_CN = scores_SCN.mean(axis=0) - measured[baseline].mean(axis=0)
        cells = []
        for means_S, gain_N, (low, high) in zip(means_SC.T, gain_CN, paired_intervals(gain_CN), strict=True):
            level = f"{means_S.mean():.1f} ({means_S.min():.1f} to {means_S.max():.1f})"
            gain = "" if name == baseline else f" {gain_N.mean():+.1f} [{low:+.1f}, {high:+.1f}]"
            cells.append(level + gain)
        rows.append([name, str(len(scores_SCN)), *cells])
    title = f"{len(asked)} questions; mean over the seeds (lowest to highest), and the difference to {baseline}."
    return "\n".join([title, "", *markdown_table(["system", "seeds", *(f"{each} %" for each in COLUMNS)], rows)]) + "\n"


def main(args: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog=COMMAND
    )
    options.add_argument("--system", nargs="+", action="append", required=True, metavar=("NAME", "REPORT"))
    given = options.parse_args(args).system
    for name, *folders in given:
        if [each[0] for each in given].count(name) > 1:
            raise UserError(f"--system {name} is given twice: name all of its reports behind one --system {name}.")
        if not folders:
            raise UserError(f"--system {name} names no report: type --system {name} REPORT REPORT.")
    print(table({name: [Path(folder) for folder in folders] for name, *folders in given}), end="")


if __name__ == "__main__":
    raise SystemExit(exit_code(COMMAND, main))
