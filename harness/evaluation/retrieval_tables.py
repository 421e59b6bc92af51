"""The table of retrieval scores that every system has.

Recall of gold passages, all of them found, hit rate, precision, MRR, Log-Rank Index, has-answer, and the figures of
ir-measures.

Shape legend: N questions.
"""

from collections.abc import Sequence

import numpy as np

from common.answer_metrics import findable, one_character
from common.records import Answer, Question
from harness.evaluation.answer_scores import known_percent_cells
from harness.evaluation.retrieval_scores import retrieval_scores
from harness.evaluation.settings import Settings
from harness.evaluation.tables import Cell, Cells, ReportTable, not_measured
from harness.evaluation.trec import trec_scores

ROWS = {  # score -> its row
    "recall": "recall of gold passages",
    "all": "all gold passages found",
    "hit": "hit rate by gold passages",
    "precision": "precision by gold passages",
    "has-answer": "has-answer recall",
    "has-answer precision": "has-answer precision",
}
OF_ALL = {  # scores of all evidence -> their rows
    "MRR": "MRR", "EM": "EM of the passages", "F1": "F1 of the passages", "Log-Rank": "Log-Rank Index",
}  # fmt: skip


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
    of_trec = trec_scores(questions, answers, settings.min_grade)
    scores = retrieval_scores(questions, [answer.evidence for answer in answers], ks, indexed) | of_trec
    cells = dict(zip(scores, known_percent_cells([*scores.values()], settings.bootstrap), strict=True))
    several = any(len(each.gold_groups) > 1 or len(each.gold.segments) > 1 for each in questions)

    def cell(name: str) -> Cell:
        looked_for = "has a gold answer other than yes and no"
        unknown = looked_for if name.startswith("has-answer") else "ships its gold passages"
        return cells[name] or not_measured(f"no question {unknown}" if most else "no passage was found")

    rows: dict[str, Cells] = {
        title: [cell(f"{name}@{k}") for k in ks] for name, title in ROWS.items() if several or name != "all"
    }
    short = np.array([one_character(each.answers) for each in questions])
    if short.any():
        without = [np.where(short, np.nan, scores[f"has-answer@{k}"]) for k in ks]
        found = known_percent_cells(without, settings.bootstrap)
        rows["has-answer recall, without answers of one character"] = [
            each or not_measured("all answers have one character") for each in found
        ]
    of_all = ["MRR", *["EM", "F1"] * several, *["Log-Rank"] * (indexed is not None)]
    rows |= {OF_ALL.get(name, name): [*[None] * (len(ks) - 1), cell(name)] for name in (*of_all, *of_trec)}
    gold, answered = (int((~np.isnan(scores[f"{name}@{ks[0]}"])).sum()) for name in ("recall", "has-answer"))
    mean = sum(len(answer.evidence) for answer in answers) / max(1, len(answers))
    note = (
        f"Over the evidence, at most {most} passages, {mean:.1f} on average, in its order. Gold passages are known for "
        f"{gold:,} questions, answers for {answered:,}. Precision is divided by k. Has-answer: a passage contains a "
        "gold answer (DPR's rule)."
    )
    if unsaid := sum(bool(each.answers) and not findable(each.answers) for each in questions):
        note += f" It says nothing about {unsaid:,} questions, whose answer is yes or no."
    if short.any():
        note += f" {short.sum():,} questions have answers of one letter or digit alone."
    note += f" {', '.join(of_trec)}: by ir-measures, of run.trec and qrels.trec."
    if several:
        note += " EM and F1 of the passages: all that were returned for a question, against all of its gold passages."
    if indexed is not None:
        note += (
            f" Log-Rank Index (HiQA, gamma 1): of {indexed:,} indexed passages; gold that is not in the evidence "
            "counts as last."
        )
    return ReportTable("evidence", "Evidence", tuple(f"{k} first %" for k in ks), rows, note=note)
