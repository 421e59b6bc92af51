"""DMQR-RAG's Figures 2, 3 and 5: numbers of rewrites, the choice of strategies, what each query of a question found.

Figure 5 stands in the page for every question, in the report for two.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from common.records import Question
from harness.evaluation.answer_scores import row_cells
from harness.evaluation.dmqr.methods import ALL_STRATEGIES, MethodHits
from harness.evaluation.dmqr.tables import Scored, is_relevant
from harness.evaluation.page import QuestionCase
from harness.evaluation.settings import Bootstrap
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


def chosen_cases(
    questions: Sequence[Question], cases: Sequence[QuestionCase], own_N: NDArray[np.float64], oqr_N: NDArray[np.float64]
) -> str:
    """A complex and a simple question in words.

    The longest and the shortest (words) that the system hits and OQR misses; of all where there is no such question.

    Args:
        questions: All of them.
        cases: Of `query_case`, one per question.
        own_N: The system's hits, 0 or 1.
        oqr_N: Those of OQR.
    """
    gained = [number for number in range(len(questions)) if own_N[number] > oqr_N[number]] or [*range(len(questions))]
    gained.sort(key=lambda number: len(questions[number].text.split()))
    told = {"complex": gained[-1], "simple": gained[0]}
    return "\n\n".join(
        f"A {kind} query (Figure 5): {questions[number].id}. {_told(cases[number])}"
        for kind, number in (told if len(gained) > 1 else {"complex": gained[0]}).items()
    )


def _told(case: QuestionCase) -> str:
    return " ".join(
        f'{made_by}: "{query}" found {found} passages, {alone} of them alone; relevant: {relevant or "none"}.'
        for made_by, query, found, alone, relevant in case.rows
    )


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
2.48 on average with Llama3-8B and 2.46 with GPT-4 (Figure 2, FreshQA).
"""


def rewrites_table(found: Mapping[str, MethodHits]) -> ReportTable:
    """How many different queries besides the question each method has (Figure 2).

    Args:
        found: Methods with all strategies of a rewriter, by name.
    """
    counts = {name: [*map(rewrites_of, each.hits)] for name, each in found.items()}
    most = max(max(own) for own in counts.values())
    rows: dict[str, Cells] = {}
    for name, own in counts.items():
        times = Counter(own)
        asked = Cell(float(np.mean([*map(strategies_of, found[name].hits)])))
        rows[name] = [
            asked,
            Cell(float(np.mean(own))),
            *(Cell(100 * times[number] / len(own)) for number in range(most + 1)),
        ]
    columns = ("strategies", "mean", *(f"{number} %" for number in range(most + 1)))
    return ReportTable("rewrites", "Number of rewrites (Figure 2)", columns, rows, note=_REWRITES_NOTE)


def rewrites_of(hits: MultiQueryHits) -> int:
    """Number of different queries of a question besides the question itself."""
    return sum(ORIGINAL not in search.made_by and search.query != hits.question for search in hits.searches)


def strategies_of(hits: MultiQueryHits) -> int:
    """Number of strategies that made a rewrite of a question; one that fell back to the question made none."""
    return len({*hits.rewrites.queries} - {*hits.rewrites.fallbacks}) if hits.rewrites else 0


CHOSEN, DIFFERENCE = "with choice", "difference"
_CHOICE_NOTE = """\
Per question, {fewer:.0f}% fewer rewrites are made with the choice, and {searches:.0f}% fewer different queries \
besides the question search. Rewrites: strategies that
made one; one that fell back to the question counts as none, and so does a choice of no strategy. The paper \
(FreshQA): 4 without the choice, with it 2.48 by Llama3-8B and 2.46 by GPT-4; accuracy gains
2.17 and 0.66 points.
"""


def choice_table(
    found: Mapping[str, MethodHits],
    scored: Mapping[str, Scored],
    own: str,
    columns: Sequence[str],
    bootstrap: Bootstrap,
) -> ReportTable:
    """Rewrites and metrics with and without the choice, and their paired differences (Figure 3).

    Args:
        found: By row, with those of the system and of ALL_STRATEGIES.
        scored: By row.
        own: The system's row.
        columns: Names of the values, undefined ones included.
        bootstrap: For the intervals.
    """
    counts = {
        row: [float(np.mean([count(hits) for hits in found[row].hits])) for count in (strategies_of, rewrites_of)]
        for row in (own, ALL_STRATEGIES)
    }
    whole, all_of = scored[own], scored[ALL_STRATEGIES]
    known = [name for name in columns if whole.knows(name) and all_of.knows(name)]
    values = {
        CHOSEN: [whole[name] for name in known],
        ALL_STRATEGIES: [all_of[name] for name in known],
        DIFFERENCE: [whole[name] - all_of[name] for name in known],
    }
    changes = [with_choice - without for with_choice, without in zip(*counts.values(), strict=True)]
    numbers = {CHOSEN: counts[own], ALL_STRATEGIES: counts[ALL_STRATEGIES], DIFFERENCE: changes}
    rows = {row: [*map(Cell, numbers[row]), *cells] for row, cells in row_cells(values, bootstrap).items()}
    fewer, searches = (
        -100 * change / every if every else 0.0 for change, every in zip(changes, counts[ALL_STRATEGIES], strict=True)
    )
    return ReportTable(
        "choice", "With and without the choice of strategies (Figure 3)",
        ("rewrites", "different queries", *(f"{name} %" for name in known)), rows,
        note=_CHOICE_NOTE.format(fewer=fewer, searches=searches), signed=frozenset({DIFFERENCE}),
    )  # fmt: skip
