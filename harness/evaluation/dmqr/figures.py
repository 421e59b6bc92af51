"""DMQR-RAG's Figures 2, 3 and 5: numbers of rewrites, with and without a choice, what each query of a question found.

Figure 5 stands in the page, for every question.
"""

import numpy as np

from common.records import Question
from harness.evaluation.dmqr.tables import Found, is_relevant
from harness.evaluation.page import QuestionCase
from harness.evaluation.tables import Cell, Cells, ReportTable
from harness.retrievers.multi_query import ORIGINAL, MultiQueryHits, QueryHits

CASE_COLUMNS = ("made by", "query", "found", "alone", "relevant, with their ranks")


def query_case(question: Question, hits: MultiQueryHits, by_gold: bool) -> QuestionCase:
    """One row per query of a question."""
    rows = []
    for place, search in enumerate(hits.searches):
        relevant = ", ".join(f"{title} ({rank})" for rank, title in _relevant(question, search, by_gold))
        rows.append(
            ("/".join(search.made_by), search.query, str(len(search.hits)), str(len(hits.alone(place))), relevant)
        )
    fallbacks = hits.rewrites.fallbacks if hits.rewrites else {}
    note = "; ".join(f"{name}: the question itself, because {why}" for name, why in fallbacks.items())
    return QuestionCase("What each query found (Figure 5)", CASE_COLUMNS, tuple(rows), note)


def _relevant(question: Question, search: QueryHits, by_gold: bool) -> list[tuple[int, str]]:
    """Rank and title of the relevant passages that a query found."""
    return [
        (rank, hit.passage.title or hit.passage.text[:60])
        for rank, hit in enumerate(search.hits, 1)
        if is_relevant(question, hit.passage, by_gold)
    ]


_REWRITES_NOTE = """\
Strategies: mean number that made a rewrite; two may make the same query. One that fell back to the question counts \
as none, and so does a choice of no strategy. Mean, and the shares \
of the questions: different
queries besides the question itself. Of the paper's four strategies, its adaptive selection takes
2.48 on average with Llama3-8B and 2.46 with GPT-4 (Figure 2, FreshQA); its accuracy gains 2.17 and 0.66 points by it
(Figure 3: here the rows DMQR-RAG and all strategies of the methods).
"""


def rewrites_table(found: Found) -> ReportTable:
    """How many different queries besides the question each method has (Figure 2).

    Args:
        found: Methods with all strategies of a rewriter, by name.
    """
    counts = {name: np.array([*map(rewrites_of, each)]) for name, each in found.items()}
    most = max(int(own_N.max()) for own_N in counts.values())
    rows: dict[str, Cells] = {}
    for name, own_N in counts.items():
        shares = [100 * float((own_N == number).mean()) for number in range(most + 1)]
        strategies = float(np.mean([*map(strategies_of, found[name])]))
        rows[name] = [*map(Cell, (strategies, float(own_N.mean()), *shares))]
    columns = ("strategies", "mean", *(f"{number} %" for number in range(most + 1)))
    return ReportTable("rewrites", "Number of rewrites (Figure 2)", columns, rows, note=_REWRITES_NOTE)


def rewrites_of(hits: MultiQueryHits) -> int:
    """Number of different queries of a question besides the question itself."""
    return sum(ORIGINAL not in search.made_by and search.query != hits.question for search in hits.searches)


def strategies_of(hits: MultiQueryHits) -> int:
    """Number of strategies that made a rewrite of a question; one that fell back to the question made none."""
    return len({*hits.rewrites.queries} - {*hits.rewrites.fallbacks}) if hits.rewrites else 0
