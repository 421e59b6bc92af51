"""DR-RAG's recall report: table.csv, table.md, recall.png, and questions.jsonl with the gold passages found and missed."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.evaluation.drrag.recall import (
    BASELINE,
    ORACLES,
    Evaluation,
    Metrics,
    Outcome,
    differing,
    recall_by_kind,
)
from harness.evaluation.paper_figures import DrRagPaper, dr_rag_table_5
from harness.evaluation.tables import markdown_table

CSV_COLUMNS = (
    "k",
    "row",
    "recall_percent",
    "difference_points",
    "interval_low_points",
    "interval_high_points",
    "documents",
    "all_found_percent",
    "relative_time",
    "seconds_per_question",
    "pairs_per_question",
    "paper_recall_percent",
    "paper_documents",
)
NOTES = """\
Recall: share of a question's gold passages among the chosen documents, mean over questions. All found: questions with every
gold passage found. Difference: to SM at the same k, in points, with the 95% paired bootstrap interval over questions.
Time: retrieval and pair scoring per question, relative to SM, without a reader; each row is charged the mean time per pair
for all pairs it needs, although rows share scores here. The oracles use the gold passages: each is the upper bound of the
selections that choose from the pool it names, and of no other.
"""
PAPER_NOTE = """\
Columns marked "paper" are DR-RAG's Table 5 ({dataset}). The setups differ: the paper names neither its encoder nor its corpus,
used about 2,300 questions per data set, and trained BigBird-base on the whole training set; compare differences to SM rather
than absolute values. Its Table 4 (CIS and CFS without QDC) reports a reader's EM, F1 and accuracy, not recall.
"""


def table_csv(evaluation: Evaluation, measured: Sequence[Metrics], paper: DrRagPaper | None) -> str:
    """One line per row and k; missing values are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for outcome, metrics in zip(evaluation.outcomes, measured, strict=True):
        published = dr_rag_table_5(paper, outcome.name, outcome.k) if paper else None
        cells: list[object] = [
            f"{100 * metrics.recall:.2f}",
            f"{100 * metrics.difference:.2f}",
            *(f"{100 * end:.2f}" for end in metrics.interval),
            f"{metrics.documents:.3f}",
            f"{100 * metrics.all_found:.2f}",
            "" if metrics.relative_time is None else f"{metrics.relative_time:.3f}",
            "" if outcome.seconds is None else f"{outcome.seconds:.6f}",
            f"{outcome.pairs_per_question:.2f}",
            *(published or ("", "")),
        ]
        writer.writerow([outcome.k, outcome.name, *cells])
    return text.getvalue()


def table_markdown(
    evaluation: Evaluation, measured: Sequence[Metrics], paper: DrRagPaper | None, title: str, facts: Sequence[str]
) -> str:
    """The Markdown report: per k a table of all rows and one of recall by kind of question.

    Args:
        evaluation: All rows.
        measured: Their metrics.
        paper: Adds this paper's published results.
        title: Heading.
        facts: Lines on data, models, seed and time.
    """
    lines = [f"# {title}", "", *(f"- {fact}" for fact in facts), ""]
    for k in dict.fromkeys(outcome.k for outcome in evaluation.outcomes):
        rows = [(o, m) for o, m in zip(evaluation.outcomes, measured, strict=True) if o.k == k]
        lines += [f"## k = {k}", "", *_main_table(rows, paper), ""]
        if (different := differing(evaluation, k)) is not None:
            lines += [
                f"CFS's documents differ from QDC's on {different:,} of {len(evaluation.questions):,} questions.",
                "",
            ]
        kinds = list(recall_by_kind(evaluation, rows[0][0]))
        if len(kinds) > 1:
            table = [[o.name, *(f"{100 * v:.2f}" for v in recall_by_kind(evaluation, o).values())] for o, _ in rows]
            lines += ["Recall (%) by kind of question:", "", *markdown_table(["", *kinds], table), ""]
    return "\n".join([*lines, NOTES, PAPER_NOTE.format(dataset=paper) if paper else ""]).rstrip() + "\n"


def _main_table(rows: Sequence[tuple[Outcome, Metrics]], paper: DrRagPaper | None) -> list[str]:
    head = ["", "recall %", "difference to SM", "documents", "all found %", "time", "pairs"]
    table = []
    for outcome, metrics in rows:
        low, high = (100 * end for end in metrics.interval)
        difference = "" if outcome.name == BASELINE else f"{100 * metrics.difference:+.2f} [{low:+.2f}, {high:+.2f}]"
        cells = [
            outcome.name,
            f"{100 * metrics.recall:.2f}",
            difference,
            f"{metrics.documents:.2f}",
            f"{100 * metrics.all_found:.2f}",
            "" if metrics.relative_time is None else f"{metrics.relative_time:.2f}",
            f"{outcome.pairs_per_question:.1f}",
        ]
        if paper:
            published = dr_rag_table_5(paper, outcome.name, outcome.k)
            cells += [f"{value:.2f}" for value in published] if published else ["", ""]
        table.append(cells)
    return markdown_table(head + (["paper: recall %", "paper: documents"] if paper else []), table)


def question_records(evaluation: Evaluation, texts: Sequence[Sequence[str]] | None = None) -> Iterator[str]:
    """JSON lines, one per question: gold passages, pair scores, and per row and k the documents chosen, found and missed.

    Where the corpus has own ids or metadata, `passages` has them by passage id.

    Args:
        evaluation: All rows.
        texts: A reader's answers per outcome, added to the rows.
    """
    passages = evaluation.passages
    for number, question in enumerate(evaluation.questions):
        titles = {passage.id: passage.title for passage in question.gold}
        pairs: dict[tuple[str, str], float] = {}
        rows: dict[str, dict[str, object]] = {}
        for place, outcome in enumerate(evaluation.outcomes):
            documents = outcome.documents[number]
            titles |= {id_: passages[id_].title for id_ in documents}
            if outcome.scores:
                pairs |= outcome.scores[number]
            rows.setdefault(outcome.name, {})[str(outcome.k)] = {
                "documents": list(documents),
                "found": [titles[id_] for id_ in titles if id_ in question.support and id_ in documents],
                "missed": [titles[id_] for id_ in titles if id_ in question.support and id_ not in documents],
                **({"answer": texts[place][number]} if texts is not None else {}),
            }
        titles |= {id_: passages[id_].title for pair in pairs for id_ in pair}
        record: dict[str, object] = {
            "id": question.id,
            "question": question.text,
            "kind": question.kind,
            "answers": list(question.answers),
            "gold": [{"id": passage.id, "title": passage.title} for passage in question.gold],
            "rows": rows,
            "pairs": [{"d1": d1, "d2": d2, "probability": round(p, 6)} for (d1, d2), p in pairs.items()],
            "titles": titles,
        }
        labels = {id_: passages[id_].labels for id_ in titles if id_ in passages and passages[id_].labels}
        if labels:
            record["passages"] = labels
        yield json.dumps(record, ensure_ascii=False)


def plot_recall(evaluation: Evaluation, measured: Sequence[Metrics], path: Path, title: str) -> None:
    """Plot recall by k, one line per row, oracles dashed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    rows = list(zip(evaluation.outcomes, measured, strict=True))
    for name in dict.fromkeys(outcome.name for outcome in evaluation.outcomes):
        points = [(outcome.k, 100 * m.recall) for outcome, m in rows if outcome.name == name]
        axes.plot(*zip(*points, strict=True), marker="o", linestyle="--" if name in ORACLES else "-", label=name)
    axes.set(xlabel="k (document budget)", ylabel="recall of gold passages, %", title=title)
    axes.set_xticks(sorted({outcome.k for outcome in evaluation.outcomes}))
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
    figure.savefig(path, dpi=120)
