"""Pools of contexts already read, small enough to work every figure of the answer tables out by hand."""

from collections.abc import Sequence

import numpy as np
import torch

from common.records import Passage, Question
from harness.evaluation.rerag.candidates import CandidateSet
from harness.evaluation.settings import Bootstrap
from harness.evaluation.tables import ReportTable
from models.rerag.marginal_reader import AnswerMatrix

FEW = Bootstrap(resamples=200)
Numbers = Sequence[float]
NAN = float("nan")


def made_pool(number: int, holds: str, retriever: Numbers, relevance: Numbers, written: Sequence[str], gold: str):
    """A pool of short texts, all of them read; each candidate is certain under its own context, e^-9 elsewhere."""
    passages = tuple(Passage.of(f"t{number}", f"{'yes' if mark == '1' else 'no'} {i}") for i, mark in enumerate(holds))
    candidates = tuple(dict.fromkeys(written))
    logp = torch.tensor([[0.0 if text == candidate else -9.0 for text in written] for candidate in candidates])
    matrix, knows = AnswerMatrix(tuple(written), candidates, logp), np.array([mark == "1" for mark in holds])
    scores, read = [np.array(each, float) for each in (retriever, relevance)], {i: i for i in range(len(holds))}
    return CandidateSet(Question(f"q{number}", "?", (gold,)), passages, *scores, knows, read, matrix)


POOLS = [
    # the estimator finds the last passage, which alone knows
    made_pool(0, "001", [3, 2, 1], [-2, -1, 4], ["x", "x", "gold"], "gold"),
    # both put the good one first; the retriever's weights let two wrong ones outvote it
    made_pool(1, "100", [1.0, 0.9, 0.9], [5, -1, -1], ["gold", "x", "x"], "gold"),
    # no answer anywhere, and the estimator knows
    made_pool(2, "000", [3, 2, 1], [-3, -3, -3], ["x", "y", "z"], "gold"),
    # an answer that the estimator ranks last
    made_pool(3, "100", [3, 2, 1], [-1, 2, 1], ["gold", "x", "x"], "gold"),
]


def values(table: ReportTable, row: str) -> list[float | None]:
    """A row's figures, rounded to four places."""
    return [None if cell is None else round(cell.value, 4) for cell in table.rows[row]]
