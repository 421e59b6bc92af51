"""The table of retrieval scores that every system has.

Recall of gold passages, all of them found, hit rate, precision, MRR, Log-Rank Index, has-answer.

Shape legend: N questions.
"""

from collections.abc import Sequence

import numpy as np

from common.records import Answer, Question
from harness.evaluation.answer_scores import known_percent_cells
from harness.evaluation.retrieval_scores import retrieval_scores
from harness.evaluation.settings import Settings
from harness.evaluation.tables import Cells, ReportTable, not_measured

ROWS = {  # score -> its row
    "recall": "recall of gold passages",
    "all": "all gold passages found",
    "hit": "hit rate by gold passages",
    "precision": "precision by gold passages",
    "has-answer": "has-answer recall",
    "has-answer precision": "has-answer precision",
}
OF_ALL = {"MRR": "MRR", "EM": "EM of the passages", "F1": "F1 of the passages"}  # scores of all evidence -> their rows


def evidence_table(
    questions: Sequence[Question], answers: Sequence[Answer], settings: Settings, indexed: int | None = None
) -> ReportTable:
    """Scores of the first k passages of the evidence, for every k up to the longest evidence.

    Where some question has several gold passages, there are also whether all are found, and EM and F1 of all passages.

    Args:
        questions: The questions.
        answers: Of one system to all questions.
        settings: Of the evaluation.
        indexed: Number of passages of the index that the system searches; None without one.
    """
    most = max((len(answer.evidence) for answer in answers), default=0)
    ks = [*(k for k in settings.ks if k < most), max(1, most)]
    scores = retrieval_scores(questions, [answer.evidence for answer in answers], ks, True, indexed)
    cells = dict(zip(scores, known_percent_cells([*scores.values()], settings.bootstrap), strict=True))
    several = any(len(each.gold_groups) > 1 or len(each.gold.segments) > 1 for each in questions)
    rows: dict[str, Cells] = {
        title: [cells[f"{name}@{k}"] or not_measured(_why(name, most)) for k in ks]
        for name, title in ROWS.items()
        if several or name != "all"
    }
    for name, title in OF_ALL.items():
        if several or name == "MRR":
            rows[title] = [*([None] * (len(ks) - 1)), cells[name] or not_measured(_why(name, most))]
    if indexed is not None:
        row = cells["Log-Rank"] or not_measured(_why("Log-Rank", most))
        rows["Log-Rank Index"] = [*([None] * (len(ks) - 1)), row]
    gold, answered = (int((~np.isnan(scores[f"{name}@{ks[0]}"])).sum()) for name in ("recall", "has-answer"))
    note = (
        f"Over the evidence, at most {most} passages{_on_average(answers, most)}, in its order. Gold passages are "
        f"known for {gold:,} questions, answers for {answered:,}. Precision is divided by k. Has-answer: a passage "
        "contains a gold answer (DPR's rule)."
    )
    if several:
        note += (
            " EM and F1 of the passages: all that were returned for a question, however many, against all of its gold "
            "passages."
        )
    if indexed is not None:
        note += (
            f" Log-Rank Index (HiQA, gamma 1): of {indexed:,} indexed passages; gold that is not in the evidence "
            "counts as last."
        )
    return ReportTable("evidence", "Evidence", tuple(f"{k} first %" for k in ks), rows, note=note)


def _on_average(answers: Sequence[Answer], most: int) -> str:
    """The mean number of passages, where not all questions have the same."""
    mean = sum(len(answer.evidence) for answer in answers) / max(1, len(answers))
    return f", {mean:.1f} on average" if mean < most else ""


def _why(name: str, most: int) -> str:
    if not most:
        return "no passage was found"
    return "no question has a gold answer" if name.startswith("has-answer") else "no question ships its gold passages"
