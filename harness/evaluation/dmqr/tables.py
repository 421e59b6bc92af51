"""DMQR-RAG's Tables 2 to 4: H@k, P@k, EM and F1 of every method, with paired differences.

Also recall. H@k: a relevant passage is among the first k; P@k: relevant passages among the first k, divided by k.

Shape legend: N questions, R rows.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import has_answer
from common.records import Answer, Gold, Passage, Question, Ranked
from harness.evaluation.answer_scores import differences_table, row_cells
from harness.evaluation.dmqr.methods import ALL_STRATEGIES, OQR, OQR_DEEP, Method, MethodHits
from harness.evaluation.judge import Judge, Verdict
from harness.evaluation.judging import costs_table, judged_values
from harness.evaluation.paper_figures import Paper, dmqr, dmqr_average_falls
from harness.evaluation.retrieval_scores import retrieval_scores
from harness.evaluation.settings import Bootstrap
from harness.evaluation.tables import Cell, Cells, ReportTable

COMPARED_TO = (OQR, OQR_DEEP, ALL_STRATEGIES)  # rows to which the others are compared
_RECALL_AT = re.compile(r"recall@(\d+)")
ALL = "recall of all"
JUDGED = "judged "  # beginning of a judge's values
NOTES = """\
H@{k}: a relevant passage is among the first {k}; P@{k}: relevant passages among the first {k}, divided by {k}. \
Relevant: {rule}. {recall} A
row of fewer than k passages has no more for recall@k. Recall of all: of all passages that the queries found, before \
any are cut off.
Differences are paired, in points.

Rows. OQR: the question alone, {per_query} passages. OQR deep: the question alone, {deep} passages. A strategy's name: \
the question and its
rewrite by that strategy. A row ending in "rrf": reciprocal rank fusion instead of the scorer. All rows search the \
same index at the same depth
per query, and have the same fusion unless their name says otherwise.{judged}
"""
BY_REWRITE = """
Passages are judged by the rewrite by {judged_by}; of OQR by the question, unless their name says otherwise."""
RULES = {
    True: "a gold passage of the question's file",
    False: "the passage contains a gold answer (DPR's rule), as the file names no gold passages",
}
RECALL = {
    True: "Recall: share of a question's gold passages.",
    False: "Recall@k: a relevant passage is among the first k.",
}


@dataclass(slots=True)
class Scored:
    """A method's values per question, 0 to 1, NaN where they are undefined."""

    method: Method
    values: dict[str, NDArray[np.float64]] = field(default_factory=dict)  # name -> (N,)
    queries: float = 0.0  # mean number per question
    passages: float = 0.0  # mean number of different passages that they found

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """The values of a name; NaN if they were not measured."""
        return self.values.get(name, np.full_like(next(iter(self.values.values())), np.nan))

    def knows(self, name: str) -> bool:
        """Whether some question has a value."""
        return not np.isnan(self[name]).all()


def is_relevant(question: Question, passage: Passage, by_gold: bool) -> bool:
    """Whether a passage is relevant, by gold passages or by has-answer."""
    return passage.id in question.support if by_gold else has_answer(passage.text, question.answers)


def score_methods(
    questions: Sequence[Question], found: Mapping[str, MethodHits], by_gold: bool, k: int, ks: Sequence[int]
) -> dict[str, Scored]:
    """H@k, P@k and recall of every method, NaN for questions without what the rule needs.

    Args:
        questions: All of them.
        found: By method.
        by_gold: Whether gold passages are relevant; else passages that contain a gold answer.
        k: Of H@k and P@k.
        ks: Of recall@k.
    """
    names = ("hit", "precision", "recall") if by_gold else ("has-answer", "has-answer precision", "has-answer")
    # a passage with an answer counts only by the other rule, and looking for it takes time
    asked = [
        Question(
            q.id, q.text, () if by_gold else q.answers, q.gold_passages, q.support, gold=Gold(titles=q.gold.titles)
        )
        for q in questions
    ]
    scored = {}
    for name, each in found.items():
        ranked = [hits.ranked for hits in each.hits]
        unions = [[Ranked(passage, 0.0) for passage in hits.union] for hits in each.hits]
        of_k = retrieval_scores(asked, ranked, sorted({k, *ks}), answers_in_all=not by_gold)
        most = max(1, *map(len, unions))
        row = Scored(each.method)
        row.values[f"H@{k}"], row.values[f"P@{k}"] = (of_k[f"{score}@{k}"] for score in names[:2])
        row.values |= {f"recall@{n}": of_k[f"{names[2]}@{n}"] for n in ks}
        row.values[ALL] = retrieval_scores(asked, unions, (most,))[f"{names[2]}@{most}"]
        row.queries = float(np.mean([len(hits.searches) for hits in each.hits]))
        row.passages = float(np.mean([*map(len, unions)]))
        scored[name] = row
    return scored


def judge_methods(
    judge: Judge,
    questions: Sequence[Question],
    found: Mapping[str, MethodHits],
    scored: Mapping[str, Scored],
    texts: Mapping[str, Sequence[Answer]],
) -> tuple[list[str], list[ReportTable]]:
    """Add judged H@k, P@k and accuracy to the values of every method, as far as the judge is asked for them.

    Args:
        judge: Its `verdicts` say what it is asked; equal requests are asked once.
        questions: All of them.
        found: Their passages, by method.
        scored: Gets the values, NaN where a verdict failed or there is nothing to judge.
        texts: Answers of the methods, with a reader.

    Returns:
        The names of the values, and the table of costs, if it was asked.
    """
    k = judge.passages
    names = {"passages": (f"{JUDGED}H@{k}", f"{JUDGED}P@{k}"), "answers": (f"{JUDGED}Acc",)}
    asked: dict[str, list[Verdict]] = {}
    for name, each in found.items():
        given = [
            Answer(question.id, texts[name][number].text if texts else "", hits.ranked)
            for number, (question, hits) in enumerate(zip(questions, each.hits, strict=True))
        ]
        for kind in ("passages", *(["answers"] if texts else [])):
            if kind in judge.prompts:
                values, verdicts = judged_values(judge, kind, questions, given)
                scored[name].values |= {name_: of / 100 for name_, of in zip(names[kind], values, strict=False)}
                asked.setdefault(kind, []).extend(verdict for own in verdicts for verdict in own)
    if not asked:
        return [], []
    costs = costs_table(asked, "judge costs of the methods", "Costs of judging all methods")
    return [name for kind in asked for name in names[kind]], [costs]


def method_tables(
    scored: Mapping[str, Scored], columns: Sequence[str], title: str, bootstrap: Bootstrap, paper: Paper | None = None
) -> list[ReportTable]:
    """Tables 2 and 3, and the differences of their rows; Table 4 where strategies were left out.

    Args:
        scored: By method.
        columns: Names of the values.
        title: What the first one shows, with the rule.
        bootstrap: For the intervals.
        paper: Adds the paper's figures for this data set.
    """
    rows = {name: each for name, each in scored.items() if not each.method.without}
    tables = [_table("methods", f"Methods (Tables 2 and 3), {title}", rows, columns, bootstrap, dmqr(paper, (2, 3)))]
    tables += _differences("methods", "Methods", rows, columns, bootstrap)
    without = {name: each for name, each in scored.items() if each.method.without}
    if without:
        whole = next(name for name, each in rows.items() if _is_whole(each.method, without))
        shown = {whole: rows[whole], **without}
        heading = f"Each strategy left out (Table 4), {title}"
        tables.append(_table("ablation", heading, shown, columns, bootstrap, dmqr(paper, (4,))))
        _add_average(tables[-1], shown, columns, bootstrap)
        tables += _differences("ablation", "Each strategy left out", shown, columns, bootstrap, (whole,))
    return tables


def _is_whole(method: Method, without: Mapping[str, Scored]) -> bool:
    """Whether a method is the one from which strategies were left out."""
    one = next(iter(without.values())).method
    return not method.part and method.rewriter == one.rewriter and method.fusion == one.fusion


def _add_average(
    table: ReportTable, scored: Mapping[str, Scored], columns: Sequence[str], bootstrap: Bootstrap
) -> None:
    """Table 4's last column: how much P@k falls without a strategy; the paper's is the mean over its three data sets.

    Args:
        table: Gets the column.
        scored: The whole first, then each strategy left out.
        columns: Names of the values; judged precision is the paper's.
        bootstrap: For the intervals.
    """
    precision = next(name for judged in (JUDGED, "") for name in columns if name.startswith(f"{judged}P@"))
    (name, whole), *_ = scored.items()
    falls = row_cells({row: [whole[precision] - each[precision]] for row, each in scored.items()}, bootstrap)
    published = dmqr_average_falls() if table.paper else {}
    column = f"fall of {precision}, points"
    table.columns = (*table.columns, column)
    table.rows = {row: [*cells, None if row == name else falls[row][0]] for row, cells in table.rows.items()}
    table.paper = {row: [*cells, published.get(row)] for row, cells in table.paper.items()}
    table.note = f"{column}: on these questions; the paper's is the mean over its three data sets."


def recall_tables(
    scored: Mapping[str, Scored], ks: Sequence[int], rule: str, bootstrap: Bootstrap
) -> list[ReportTable]:
    """Recall@k of every method by its fusion, with differences.

    Without Table 4.
    """
    scored = {name: each for name, each in scored.items() if not each.method.without}
    reranked = any(each.method.fusion == "rerank" for each in scored.values())
    columns = [f"recall@{k}" for k in ks]
    by = "after reranking" if reranked else "by reciprocal rank fusion"
    tables = [_table("recall", f"Recall {by}, {rule}", scored, [*columns, ALL], bootstrap)]
    return tables + _differences("recall", "Recall", scored, columns, bootstrap)


def _differences(
    table: str,
    title: str,
    scored: Mapping[str, Scored],
    columns: Sequence[str],
    bootstrap: Bootstrap,
    to: Sequence[str] = COMPARED_TO,
) -> list[ReportTable]:
    """Paired differences to rows, in points; one table for each of these rows that there is."""
    tables = []
    for baseline in (name for name in to if name in scored and len(scored) > 1):
        known = [name for name in columns if scored[baseline].knows(name)]
        rows = {row: [each[name] for name in known] for row, each in scored.items()}
        heading, shown = f"{title}: differences to {baseline}", [f"{name}, points" for name in known]
        tables.append(differences_table(f"{table} - {baseline}", heading, shown, rows, baseline, bootstrap))
    return tables


def _table(
    name: str,
    title: str,
    scored: Mapping[str, Scored],
    columns: Sequence[str],
    bootstrap: Bootstrap,
    paper: Mapping[str, Mapping[str, float]] | None = None,
) -> ReportTable:
    """The means of every method, with its queries and passages per question; values that nobody has are left out.

    The paper's H@5, P@5 and accuracy are a judge's: they stand beside the judged ones of the rows where there are any.
    """
    known = [
        column
        for column in columns
        if any(each.knows(column) for each in scored.values())
        or any(_of_paper(column, columns) in row for row in (paper or {}).values())
    ]
    cells = row_cells({row: [each[column] for column in known] for row, each in scored.items()}, bootstrap)
    rows: dict[str, Cells] = {
        row: [*cells[row], Cell(each.queries), Cell(each.passages)] for row, each in scored.items()
    }
    published: dict[str, Cells] = {
        row: [*(Cell(own[key]) if (key := _of_paper(each, columns)) in own else None for each in known), None, None]
        for row, own in (paper or {}).items()
    }
    return ReportTable(name, title, (*(f"{column} %" for column in known), "queries", "passages"), rows, published)


def _of_paper(column: str, columns: Sequence[str]) -> str:
    """The paper's name of a column; empty if the paper has no such column."""
    judged = column.removeprefix(JUDGED)
    if judged != column:
        return judged
    return "" if f"{JUDGED}{column}" in columns else column


def recall_curves(table: ReportTable) -> dict[str, list[tuple[int, float]]]:
    """Recall@k of every method by k, from its table."""
    ks = {place: int(match[1]) for place, name in enumerate(table.columns) if (match := _RECALL_AT.match(name))}
    return {
        name: [(k, cell.value) for place, k in ks.items() if (cell := cells[place])]
        for name, cells in table.rows.items()
    }
