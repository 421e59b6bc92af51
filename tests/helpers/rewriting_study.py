"""A corpus with questions, rewrites and a reader for DMQR-RAG's study, and how its tables are read."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.records import Question
from harness.evaluation.dmqr.study import Study
from harness.evaluation.engine import MeasuredSystem, measure
from harness.evaluation.settings import Bootstrap, Settings
from harness.evaluation.tables import ReportTable
from harness.systems.dmqr import Dmqr
from tests.helpers.small_world import WORDS, corpus
from tests.helpers.word_scorer import WordScorer

STRATEGIES = ("kwr", "par", "cce")
CHANCE = random.Random(5)
CORPUS = corpus(150)


def question(number: int) -> Question:
    """Three words, one of which is its answer, and two gold passages."""
    text, answers = " ".join(CHANCE.sample(WORDS, 3)), (CHANCE.choice(WORDS),)
    return Question(f"q{number}", text, answers, tuple(CORPUS), tuple(each.id for each in CHANCE.sample(CORPUS, 2)))


ASKED = [question(number) for number in range(9)]
TABLE = {
    each.text: {
        name: [" ".join(CHANCE.sample(WORDS, 2)) for _ in range(CHANCE.choice((1, 1, 2)))]
        for name in STRATEGIES
        if CHANCE.random() < 0.8  # else it falls back
    }
    for each in ASKED
}


def settings(tmp_path: Path, **options: Any) -> Settings:
    """Of a study of the corpus's questions; `options` are further ones."""
    return Settings(
        "hotpotqa", "squad", (1, 5, 10), options.pop("paper", None), Bootstrap(50, 0), tmp_path / "p", **options
    )


def dmqr_of(retriever: Any, scorer: WordScorer | None, **options: Any) -> Dmqr:
    """A system that keeps four passages, by the scorer or by reciprocal ranks."""
    fusion = {"scorer": scorer} if scorer else {"fusion": "rrf"}
    return Dmqr(retriever, **{"k": 4, "per_query": 5, **fusion, **options})


def measured(system: Dmqr, tmp_path: Path, questions: Sequence[Question] = ASKED, **study: Any) -> MeasuredSystem:
    """What the study finds with the options in `study`."""
    return measure(system, questions, Study(**study), settings(tmp_path))


def table(found: MeasuredSystem, name: str) -> ReportTable:
    """A table of the study."""
    return next(each for each in found.findings.tables if each.name == name)


def value(found: MeasuredSystem, name: str, row: str, column: str) -> float:
    """The figure in a row and a column of a table."""
    of = table(found, name)
    cell = of.rows[row][of.columns.index(column)]
    assert cell is not None
    return cell.value
