"""DMQR-RAG's Tables 2 to 4: H@k, P@k, EM and F1 of every method, with paired differences.

Also recall. H@k: a relevant passage is among the first k; P@k: relevant passages among the first k, divided by k.

Shape legend: N questions, R rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import has_answer
from common.records import Answer, Gold, Passage, Question, Ranked
from harness.evaluation.answer_scores import differences_table, row_cells
from harness.evaluation.dmqr.methods import BASELINES
from harness.evaluation.judge import Judge, Verdict
from harness.evaluation.judging import judge_costs_table, judged_values
from harness.evaluation.paper_figures import Paper, published
from harness.evaluation.retrieval_scores import retrieval_scores
from harness.evaluation.settings import Bootstrap
from harness.evaluation.tables import Cell, Cells, ReportTable
from harness.retrievers.multi_query import MultiQueryHits

ALL = "recall of all"
JUDGED = "judged "  # beginning of a judge's values
FALL = "fall"  # of precision without a strategy
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

Found = Mapping[str, Sequence[MultiQueryHits]]  # by method, one entry per question


@dataclass(slots=True)
class Scored:
    """A method's values per question, 0 to 1, NaN where they are undefined."""

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
    questions: Sequence[Question], found: Found, by_gold: bool, k: int, ks: Sequence[int]
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
        ranked = [hits.ranked for hits in each]
        unions = [[Ranked(passage, 0.0) for passage in hits.union] for hits in each]
        of_k = retrieval_scores(asked, ranked, sorted({k, *ks}))
        most = max(1, *map(len, unions))
        row = Scored()
        row.values[f"H@{k}"], row.values[f"P@{k}"] = (of_k[f"{score}@{k}"] for score in names[:2])
        row.values |= {f"recall@{n}": of_k[f"{names[2]}@{n}"] for n in ks}
        row.values[ALL] = retrieval_scores(asked, unions, (most,))[f"{names[2]}@{most}"]
        row.queries = float(np.mean([len(hits.searches) for hits in each]))
        row.passages = float(np.mean([*map(len, unions)]))
        scored[name] = row
    return scored


def judge_methods(
    judge: Judge,
    questions: Sequence[Question],
    found: Found,
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
            for number, (question, hits) in enumerate(zip(questions, each, strict=True))
        ]
        for kind in ("passages", *(["answers"] if texts else [])):
            if kind in judge.prompts:
                values, verdicts = judged_values(judge, kind, questions, given)
                scored[name].values |= dict(zip(names[kind], values, strict=False))
                asked.setdefault(kind, []).extend(verdict for own in verdicts for verdict in own)
    if not asked:
        return [], []
    costs = judge_costs_table(asked, "judge costs of the methods", "Costs of judging all methods")
    return [name for kind in asked for name in names[kind]], [costs]


def method_tables(
    scored: Mapping[str, Scored],
    whole: str,
    without: Sequence[str],
    columns: Sequence[str],
    title: str,
    bootstrap: Bootstrap,
    paper: Paper | None = None,
) -> list[ReportTable]:
    """Tables 2 and 3, and the differences of their rows; Table 4 where strategies were left out.

    Args:
        scored: By method.
        whole: The measured system.
        without: The methods that leave one of its strategies out.
        columns: Names of the values.
        title: What the first one shows, with the rule.
        bootstrap: For the intervals.
        paper: Adds the paper's figures for this data set.
    """
    rows = {name: each for name, each in scored.items() if name not in without}
    heading = f"Methods (Tables 2 and 3), {title}"
    tables = [_table("methods", heading, rows, columns, bootstrap, _of_paper(paper, (2, 3), columns))]
    tables += _differences("methods", "Methods", rows, columns, bootstrap)
    if without:
        shown = {name: scored[name] for name in (whole, *without)}
        heading = f"Each strategy left out (Table 4), {title}"
        precision = next(name for judged in (JUDGED, "") for name in columns if name.startswith(f"{judged}P@"))
        for name in without:
            scored[name].values[FALL] = scored[whole][precision] - scored[name][precision]
        of_paper = _of_paper(paper, (4,), [*columns, FALL])
        tables.append(_table("ablation", heading, shown, [*columns, FALL], bootstrap, of_paper))
        note = f"Fall of {precision}, points: on these questions; the paper's is the mean over its data sets."
        tables[-1].note = note
        tables += _differences("ablation", "Each strategy left out", shown, columns, bootstrap, (whole,))
    return tables


def _of_paper(paper: Paper | None, tables: Sequence[int], columns: Sequence[str]) -> dict[str, Cells]:
    """The paper's rows in our columns.

    Its H@5, P@5 and accuracy are a judge's: they stand beside the judged ones of the rows where there are any.
    """
    named = ["" if f"{JUDGED}{column}" in columns else column.removeprefix(JUDGED) for column in columns]
    rows = (published(f"DMQR-RAG, Table {table}", paper, named) for table in tables)
    return {name: cells for each in rows for name, cells in each.items()}


def recall_tables(
    scored: Mapping[str, Scored], without: Sequence[str], ks: Sequence[int], rule: str, bootstrap: Bootstrap
) -> list[ReportTable]:
    """Recall@k of every method by its fusion, with differences; not of those of Table 4."""
    scored = {name: each for name, each in scored.items() if name not in without}
    columns = [f"recall@{k}" for k in ks]
    tables = [_table("recall", f"Recall, {rule}", scored, [*columns, ALL], bootstrap)]
    return tables + _differences("recall", "Recall", scored, columns, bootstrap)


def recall_curves(
    scored: Mapping[str, Scored], without: Sequence[str], ks: Sequence[int]
) -> dict[str, list[tuple[int, float]]]:
    """Mean recall@k of every method by k, in per cent; not of those of Table 4."""
    return {
        name: [(k, 100 * float(np.nanmean(each[f"recall@{k}"]))) for k in ks]
        for name, each in scored.items()
        if each.knows(ALL) and name not in without
    }


def _differences(
    table: str,
    title: str,
    scored: Mapping[str, Scored],
    columns: Sequence[str],
    bootstrap: Bootstrap,
    to: Sequence[str] = BASELINES,
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
    paper: Mapping[str, Cells] | None = None,
) -> ReportTable:
    """The means of every method, with its queries and passages per question; values that nobody has are left out."""
    paper = paper or {}
    known = [
        place
        for place, column in enumerate(columns)
        if any(each.knows(column) for each in scored.values()) or any(cells[place] for cells in paper.values())
    ]
    cells = row_cells({row: [each[columns[place]] for place in known] for row, each in scored.items()}, bootstrap)
    rows: dict[str, Cells] = {
        row: [*cells[row], Cell(each.queries), Cell(each.passages)] for row, each in scored.items()
    }
    of_paper: dict[str, Cells] = {row: [*(own[place] for place in known), None, None] for row, own in paper.items()}
    shown = [columns[place] + (", points" if columns[place] == FALL else " %") for place in known]
    return ReportTable(name, title, (*shown, "queries", "passages"), rows, of_paper)
