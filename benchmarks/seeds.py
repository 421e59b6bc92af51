"""Systems that were trained at several seeds in one table: means over the seeds, and paired differences.

    python -m benchmarks.seeds --system drrag reports/hotpotqa-0 reports/hotpotqa-1 reports/hotpotqa-2 \
        --measures recall@3 recall@4 passages@4 --baseline 'drrag: SM'
    python -m benchmarks.seeds --system words reports/world-17 reports/world-18 --baseline 'words: imitation'

Each REPORT is a folder of `infer.py evaluate`. Reports of one system over the same questions are its seeds; those over
other questions are joined, so that every question counts alike. A study's rows (DR-RAG's selections, DMQR-RAG's
rewriters) are systems `NAME: ROW`; a row whose name ends in a number, such as `lora 1`, is of that seed. A system's
measures are the fields of `questions.jsonl`, such as EM, MRR or recall_of_gold; those of rows are recall@k, hit@k and
precision@k by gold passages, and passages@k, how many were chosen.

Prints Markdown: each measure in percent, mean over the seeds with the lowest and the highest, and the difference to the
baseline with a 95% bootstrap interval over the questions, of which each counts with its mean over the seeds that both
have.

Shape legend: N questions, M measures, S seeds.
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

COMMAND = "python -m benchmarks.seeds"
OF_ROWS = re.compile(r"(?:recall|hit|precision|passages)@[1-9]\d*")
SEEDED = re.compile(r"(?P<system>[^,]+) (?P<seed>\d+)(?P<query>, .+)?")

Seed = tuple[int, str]  # place of the report among those over the same questions; number at the end of the row's name
Systems = dict[str, dict[Seed, NDArray[np.float64]]]  # (N, M) by system and seed


def row_value(record: dict, row: str, measure: str) -> float:
    """A measure of one question's row; NaN without gold passages.

    Raises:
        UserError: If the row was not measured at this k.
    """
    name, _, at = measure.partition("@")
    chosen, k = record["rows"][row], int(at)
    if "passages" in chosen:  # a ranking, cut at k
        ranked = chosen["passages"]
        if len(ranked) < k and name != "passages":
            raise UserError(f"{row} has {len(ranked)} passages; k may be at most that, got {k}.")
    elif at in chosen:  # a selection of its own for each k
        ranked = chosen[at]["documents"]
    else:
        raise UserError(f"{row} was not measured at k = {k}, only at {', '.join(chosen)}: evaluate it with --study.ks.")
    gold = {each["id"] for each in record["gold"]}
    if not gold:
        return np.nan
    found = len(gold.intersection(ranked[:k]))
    return {"recall": found / len(gold), "hit": float(found > 0), "precision": found / k, "passages": len(ranked[:k])}[
        name
    ]


def read_report(folder: Path, measures: Sequence[str]) -> tuple[list[str], dict[str, NDArray[np.float64]]]:
    """Ids of the questions, and the values (N, M) of the system, as row "", and of each row of its study.

    Raises:
        UserError: If it is no report, or has neither rows nor the measures.
    """
    file = folder / "questions.jsonl"
    if not file.is_file():
        raise UserError(f"{folder} is no report: give a folder that python infer.py evaluate wrote.")
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    rows = {}
    if all(map(OF_ROWS.fullmatch, measures)):
        rows = {
            row: np.array([[row_value(record, row, each) for each in measures] for record in records])
            for row in records[0].get("rows", {})
        }
    if set(measures) <= records[0].keys():  # None, a question without the measure, is NaN
        rows[""] = np.array([[record[each] for each in measures] for record in records], dtype=np.float64)
    if not rows:
        fields = ", ".join(name for name, value in records[0].items() if isinstance(value, float))
        raise UserError(f"{folder} does not have all of {', '.join(measures)}; allowed: {fields}.")
    return [record["id"] for record in records], rows


def read_system(name: str, folders: Sequence[Path], measures: Sequence[str]) -> tuple[list[str], Systems]:
    """Ids of the questions of a system's reports, and its values and those of its rows, by seed.

    Raises:
        UserError: If a report is given twice, or reports differ in their rows or in how many seeds they have.
    """
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise UserError(f"--system {name} has a report twice, so that its questions would count twice: name each once.")
    parts: dict[tuple[str, ...], dict[tuple[int, str], NDArray[np.float64]]] = defaultdict(dict)
    for folder in folders:
        ids, rows = read_report(folder, measures)
        of_questions = parts[tuple(ids)]
        place = 1 + max((seed for seed, _ in of_questions), default=-1)
        of_questions |= {(place, row): values_NM for row, values_NM in rows.items()}
    first, *others = parts.values()
    for other in others:
        if different := first.keys() ^ other.keys():
            place, row = min(different)
            raise UserError(
                f"The reports of {name} do not all have the row {row!r} at {place + 1} seeds: evaluate all questions "
                "at every seed, with the same options --study."
            )
    systems: Systems = defaultdict(dict)
    for place, row in first:
        seeded = SEEDED.fullmatch(row)
        shown, seed = (seeded["system"] + (seeded["query"] or ""), seeded["seed"]) if seeded else (row, "")
        shown = f"{name}: {shown}" if shown else name
        systems[shown][place, seed] = np.concatenate([each[place, row] for each in parts.values()])
    return [id_ for ids in parts for id_ in ids], systems


def table(named: dict[str, Sequence[Path]], measures: Sequence[str], baseline: str | None = None) -> str:
    """The table as Markdown.

    Args:
        named: Report folders by the system's name.
        measures: Its columns.
        baseline: System or row that the others are compared with; None: the first one.

    Raises:
        UserError: If a folder is no such report, systems have other questions, or none is the baseline.
    """
    asked: list[str] | None = None
    systems: Systems = {}
    for name, folders in named.items():
        ids, rows = read_system(name, folders, measures)
        asked = asked or ids
        if ids != asked:
            raise UserError(f"{name} has other questions than {next(iter(named))}: evaluate all on the same files.")
        systems |= rows
    baseline = baseline or next(iter(systems))
    if baseline not in systems:
        raise UserError(f"No report has the row {baseline!r}; allowed: {', '.join(systems)}.")
    known_NM = np.logical_and.reduce([~np.isnan(each) for seeds in systems.values() for each in seeds.values()])
    if not known_NM.any(axis=0).all():
        raise UserError("A measure has no question for which all systems have a value: evaluate a file that has it.")
    lines = []
    for name, seeds in systems.items():
        reference = systems[baseline]
        common = sorted(seeds.keys() & reference.keys())
        if common:  # the same seeds: a training starts from the model of its seed
            gain_NM = np.mean([seeds[seed] - reference[seed] for seed in common], axis=0)
        else:
            gain_NM = np.mean([*seeds.values()], axis=0) - np.mean([*reference.values()], axis=0)
        cells = []
        for place, measure in enumerate(measures):
            kept, scale = known_NM[:, place], 1.0 if measure.startswith("passages@") else 100.0
            means_S = scale * np.array([values_NM[kept, place].mean() for values_NM in seeds.values()])
            gain_N = scale * gain_NM[kept, place]
            ((low, high),) = paired_intervals(gain_N[None])
            spread = f" ({means_S.min():.2f} to {means_S.max():.2f})" if len(seeds) > 1 else ""
            gain = f"{gain_N.mean():+.2f} [{low:+.2f}, {high:+.2f}]" if name != baseline else ""
            cells += [f"{means_S.mean():.2f}{spread}", gain]
        lines.append([name, str(len(seeds)), *cells])
    title = f"{len(known_NM)} questions; mean over the seeds (lowest to highest), and the difference to {baseline}."
    columns = [column for each in measures for column in (each, "difference")]
    return "\n".join([title, "", *markdown_table(["system", "seeds", *columns], lines)]) + "\n"


def main(args: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog=COMMAND
    )
    options.add_argument("--system", nargs="+", action="append", required=True, metavar=("NAME", "REPORT"))
    options.add_argument("--measures", nargs="+", default=["recall@5", "recall@10"])
    options.add_argument("--baseline", help="system or row; the first one when omitted")
    given = options.parse_args(args)
    for name, *folders in given.system:
        if [each[0] for each in given.system].count(name) > 1:
            raise UserError(f"--system {name} is given twice: name all of its reports behind one --system {name}.")
        if not folders:
            raise UserError(f"--system {name} names no report: type --system {name} REPORT REPORT.")
    named: dict[str, Sequence[Path]] = {name: [*map(Path, folders)] for name, *folders in given.system}
    print(table(named, given.measures, given.baseline), end="")


if __name__ == "__main__":
    raise SystemExit(exit_code(COMMAND, main))
