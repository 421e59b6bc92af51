"""How well estimators rank the gold passages of each question, beside what is not trained and another question.

    python -m scripts.reproduce_lm.ranking --system NAME SERVING=FILE [SERVING=FILE ...] [--system ...]

Each SERVING scores the passages of the questions of FILE, which is in FiD's layout.  Several of one system with the
same FILE are its seeds: a question counts with its mean.  Those with other files are joined, as for a cross-fit.  All
systems need the same files.

Prints Markdown: R@1, R@5 and MRR in percent, with 95% bootstrap intervals over the questions, R@1 less that of each
ranking that is not trained, and each system's verdict: `harness.evaluation.controls`.

Shape legend: N questions.
"""

import argparse
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from common.errors import UserError, exit_code
from common.other_questions import FEWEST, other_texts
from common.records import Question, Ranked
from datamodules.formats.reading import read_questions
from harness.evaluation.bootstrap import paired_intervals
from harness.evaluation.controls import FLOOR, OTHER, Rows, verdict
from harness.evaluation.settings import Bootstrap
from harness.evaluation.tables import markdown_table
from harness.retrievers.question_passages import shipped_rankings
from models.cross_encoder import RelevanceEstimator, load_scorer

COMMAND = "python -m scripts.reproduce_lm.ranking"
MEASURES = ("R@1", "R@5", "MRR")


def measured(questions: Sequence[Question], rankings: Sequence[Sequence[Ranked]]) -> NDArray[np.float64]:
    """The measures of each question, (3, N)."""
    rows = []
    for question, hits in zip(questions, rankings, strict=True):
        rank = next((rank for rank, hit in enumerate(hits) if hit.passage.id in question.support), None)
        rows.append((0.0, 0.0, 0.0) if rank is None else (float(rank < 1), float(rank < 5), 1 / (rank + 1)))
    return np.array(rows).T


@cache
def estimator(serving: str) -> RelevanceEstimator:
    """The estimator of a serving folder."""
    return load_scorer(serving)


def by_estimator(serving: str, questions: Sequence[Question], others: Mapping[str, str]) -> NDArray[np.float64]:
    """The measures of each question by an estimator, (3, N); it is asked with the other text where there is one."""
    pairs = [(others.get(one.text, one.text), passage) for one in questions for passage in one.passages]
    scored = iter(estimator(serving).scores(pairs))
    ranked = [[Ranked(passage, next(scored)) for passage in one.passages] for one in questions]
    return measured(questions, [sorted(hits, key=lambda hit: (-hit.score, hit.passage.id)) for hits in ranked])


def interval(values_N: NDArray[np.float64], bold: bool = False) -> str:
    """A mean and its interval, in percent."""
    low, high = 100 * paired_intervals(values_N[None])[0]
    mean = f"{100 * values_N.mean():+.1f}" if bold else f"{100 * values_N.mean():.1f}"
    mark = "**" if bold and low * high > 0 else ""
    return f"{mark}{mean}{mark} [{low:.1f}, {high:.1f}]"


def table(systems: dict[str, list[tuple[str, str]]]) -> list[str]:
    """The Markdown table of systems, each with its pairs of serving folder and file.

    Raises:
        UserError: If a system has other files than the first.
    """
    files = list(dict.fromkeys(file for _, file in next(iter(systems.values()))))
    questions = {file: list(read_questions("fid", file)) for file in files}
    pooled = [question for file in files for question in questions[file]]
    others = other_texts(pooled, len(pooled))
    known, other_of = [*others], {pooled[place].text: text for place, text in others.items()}
    rows = {name: measured(pooled, hits) for name, hits in shipped_rankings(pooled).items()}
    chance_N = np.array([np.mean([passage.id in one.support for passage in one.passages]) for one in pooled])
    baselines, verdicts = list(rows), []

    def of_system(pairs: Sequence[tuple[str, str]], texts: Mapping[str, str]) -> NDArray[np.float64]:
        seeds = {
            file: [by_estimator(serving, questions[file], texts) for serving, of in pairs if of == file]
            for file in files
        }
        return np.concatenate([np.mean(seeds[file], axis=0) for file in files], axis=1)

    for name, pairs in systems.items():
        if {file for _, file in pairs} != set(files):
            raise UserError(f"--system {name} has other files than the first system: give all of them {files}.")
        rows[name], rows[f"{name}, {OTHER}"] = of_system(pairs, {}), of_system(pairs, other_of)
        if len(known) >= FEWEST:
            own_N, other_N = rows[name][0, known], rows[f"{name}, {OTHER}"][0, known]
            untrained = {each: rows[each][0, known] for each in baselines}
            found = Rows("R@1", own_N, untrained, {OTHER: other_N, FLOOR: chance_N[known]})
            verdicts.append(f"- {name}: {verdict(found, Bootstrap(10_000, 0))[0]}")
    head = [
        f"{len(pooled)} questions, chance {100 * chance_N.mean():.1f}",
        *MEASURES,
        *(f"R@1 - {each}" for each in baselines),
    ]
    table = markdown_table(
        head,
        [
            [name, *map(interval, values), *(interval(values[0] - rows[each][0], bold=True) for each in baselines)]
            for name, values in rows.items()
        ],
    )
    return [*table, "", *verdicts]


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, prog=COMMAND)
    options.add_argument("--system", nargs="+", action="append", required=True, metavar=("NAME", "SERVING=FILE"))
    given = options.parse_args()
    systems: dict[str, list[tuple[str, str]]] = {}
    for name, *pairs in given.system:
        parts = [pair.rpartition("=") for pair in pairs]
        if not parts or not all(serving and file for serving, _, file in parts):
            raise UserError(f"--system {name}: give SERVING=FILE, a serving folder and a file of questions.")
        systems[name] = [(serving, file) for serving, _, file in parts]
    print("\n".join(table(systems)))


if __name__ == "__main__":
    raise SystemExit(exit_code(COMMAND, main))
