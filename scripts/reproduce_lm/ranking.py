"""How well estimators rank the gold passage of each question, beside BM25 and MiniLM's cosine, with paired intervals.

    python -m scripts.reproduce_lm.ranking --system NAME SERVING=FILE [SERVING=FILE ...] [--system ...]

Each SERVING scores the passages of the questions of FILE, which is in FiD's layout.  Several of one system with the
same FILE are its seeds: a question counts with its mean.  Those with other files are joined, as for a cross-fit.  All
systems need the same files.

Prints Markdown: R@1, R@5 and MRR in percent, with 95% bootstrap intervals over the questions, and R@1 less that of each
baseline.

Shape legend: N questions.
"""

import argparse
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from common.errors import UserError, exit_code
from common.records import Question
from datamodules.formats.reading import read_questions
from harness.evaluation.bootstrap import paired_intervals
from harness.retrievers.question_passages import bm25_of_shipped
from harness.evaluation.tables import markdown_table
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.retrievers.question_passages import cosines
from models.cross_encoder import load_scorer
from models.pretrained import MINILM
from trainers.rerag_validation import first_hit

COMMAND = "python -m scripts.reproduce_lm.ranking"
MEASURES = ("R@1", "R@5", "MRR")


def measured(questions: Sequence[Question], scores: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """The measures of each question, (3, N)."""
    rows = []
    for question, scored in zip(questions, scores, strict=True):
        rank = first_hit(scored, [passage.id in question.support for passage in question.passages])
        rows.append((0.0, 0.0, 0.0) if rank is None else (float(rank < 1), float(rank < 5), 1 / (rank + 1)))
    return np.array(rows).T


def by_estimator(serving: str, questions: Sequence[Question]) -> NDArray[np.float64]:
    """The measures of each question by an estimator, (3, N)."""
    scorer = load_scorer(serving)
    scored = iter(scorer.scores([(question.text, passage) for question in questions for passage in question.passages]))
    return measured(questions, [[next(scored) for _ in question.passages] for question in questions])


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
    lexical = [[scores[p.id] for p in q.passages] for q, scores in zip(pooled, bm25_of_shipped(pooled), strict=True)]
    rows = {
        "BM25": measured(pooled, lexical),
        "MiniLM's cosine": measured(pooled, [each.tolist() for each in cosines(pooled, SentenceEncoder(MINILM))]),
    }
    baselines = list(rows)
    for name, pairs in systems.items():
        if {file for _, file in pairs} != set(files):
            raise UserError(f"--system {name} has other files than the first system: give all of them {files}.")
        seeds = {
            file: [by_estimator(serving, questions[file]) for serving, of in pairs if of == file] for file in files
        }
        rows[name] = np.concatenate([np.mean(seeds[file], axis=0) for file in files], axis=1)
    head = [f"{len(pooled)} questions", *MEASURES, *(f"R@1 - {each}" for each in baselines)]
    return markdown_table(
        head,
        [
            [name, *map(interval, values), *(interval(values[0] - rows[each][0], bold=True) for each in baselines)]
            for name, values in rows.items()
        ],
    )


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
