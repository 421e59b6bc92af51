"""RE-RAG's Table 6: the estimator plugged into a language model that reads each context alone.

Shape legend: N questions.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from harness.evaluation import paper_figures
from harness.evaluation.answer_scores import percent_cells
from harness.evaluation.rerag.candidates import CandidateSet
from harness.evaluation.rerag.tables import RANKERS, Scoring
from harness.evaluation.tables import Table

COUNTS = (5, 10)  # contexts of Table 6


def llm_table(
    candidate_sets: Sequence[CandidateSet], scoring: Scoring, contexts: int, paper: paper_figures.Paper | None
) -> Table:
    """Table 6: EM of a language model's answers with the retriever's and with the estimator's contexts and weights.

    Args:
        candidate_sets: One per question, read by the language model.
        scoring: Normalization and bootstrap; the first marginal is used.
        contexts: Number of contexts read.
        paper: Adds this paper's published results.
    """
    counts = sorted({min(count, contexts) for count in COUNTS})
    exact: dict[str, list[NDArray[np.float64]]] = {}
    for ranker, name in reversed(RANKERS.items()):
        exact[f"LLM w/ {name}"] = [
            scoring.exact(candidate_sets, [e.read(ranker, ranker, count, scoring.marginals[0]) for e in candidate_sets])
            for count in counts
        ]
    without, with_re = exact.values()
    exact["RE - retriever"] = [one - other for one, other in zip(with_re, without, strict=True)]
    columns = tuple(f"EM %, top-{count}" for count in counts)
    return Table(
        "language model",
        f"RE plugged into a language model, {scoring.marginals[0]} (Table 6)",
        columns,
        {name: percent_cells(np.stack(values), scoring.bootstrap) for name, values in exact.items()},
        paper_figures.language_model(paper, counts),
        "Each ranker's first contexts with its own weights, one call per context. The paper's language model is "
        "gpt-3.5-turbo-0125, its retriever FiD-KD's, its temperature of sampling 0.8.",
        signed=frozenset(["RE - retriever"]),
    )
