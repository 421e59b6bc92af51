"""DR-RAG's recall for every k (Table 5), its plot, and each selection's choices for each question (Table 8)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from common.records import Answer, Question
from harness.evaluation.drrag.recall import BASELINE, Evaluation, Metrics, RowOutcome, differing
from harness.evaluation.page import QuestionCase
from harness.evaluation.paper_figures import DrRagPaper, dr_rag_table_5
from harness.evaluation.plots import axes_of, write_png
from harness.evaluation.tables import Cell, ReportTable

COLUMNS = ("recall %", f"difference to {BASELINE}", "documents", "all found %", "time", "pairs")
CASE_COLUMNS = ("selection", "document", "gold", "stage", "why")
PAPER_COLUMNS = ("paper: recall %", "paper: documents")
NOTES = """\
Recall: share of a question's gold passages among the chosen documents, mean over questions. All found: questions with \
every
gold passage found. Difference: to SM at the same k, in points, with the 95% paired bootstrap interval over questions.
Time: retrieval and pair scoring per question, relative to SM, without a reader; each row is charged the mean time per \
pair
for all pairs it needs, although rows share scores here.
"""
PAPER_NOTE = """\
Columns marked "paper" are DR-RAG's Table 5 ({dataset}). The setups differ: the paper names neither its encoder nor \
its corpus,
used about 2,300 questions per data set, and trained BigBird-base on the whole training set; compare differences to SM \
rather
than absolute values. Its Table 4 (CIS and CFS without QDC) reports a reader's EM, F1 and accuracy, not recall.
"""


def recall_tables(evaluation: Evaluation, measured: Sequence[Metrics], paper: DrRagPaper | None) -> list[ReportTable]:
    """Per k a table of all rows.

    Args:
        evaluation: All rows.
        measured: Their metrics.
        paper: Adds this paper's published results.
    """
    tables = []
    for k in dict.fromkeys(outcome.k for outcome in evaluation.outcomes):
        rows = [(o, m) for o, m in zip(evaluation.outcomes, measured, strict=True) if o.k == k]
        different = differing(evaluation, k)
        count = int(evaluation.known.sum())
        tables.append(
            ReportTable(
                f"recall, k = {k}",
                f"Recall of gold passages, k = {k}",
                COLUMNS + PAPER_COLUMNS * bool(paper),
                {outcome.name: _cells(outcome, metrics, paper) for outcome, metrics in rows},
                note=""
                if different is None
                else f"CFS's documents differ from QDC's on {different:,} of {count:,} questions.",
                signed=frozenset({COLUMNS[1]}),
                column_decimals={"pairs": 1},
                published=frozenset(PAPER_COLUMNS),
            )
        )
    return tables


def _cells(outcome: RowOutcome, metrics: Metrics, paper: DrRagPaper | None) -> list[Cell | None]:
    low, high = metrics.interval
    difference = Cell(100 * metrics.difference, (100 * low, 100 * high))
    cells: list[Cell | None] = [
        Cell(100 * metrics.recall),
        None if outcome.name == BASELINE else difference,
        Cell(float(metrics.documents)),
        Cell(100 * metrics.all_found),
        None if metrics.relative_time is None else Cell(metrics.relative_time),
        Cell(metrics.pairs),
    ]
    if paper:
        cells += [Cell(value) for value in dr_rag_table_5(paper, outcome.name, outcome.k) or ()] or [None, None]
    return cells


def selection_record(
    evaluation: Evaluation, number: int, texts: Sequence[Sequence[str]] | None = None
) -> dict[str, object]:
    """Fields of one question's record: pair scores, and per row and k the documents chosen, found and missed.

    Where the corpus has own ids or metadata, `passages` has them by passage id.

    Args:
        evaluation: All rows.
        number: The question's place.
        texts: A reader's answers per outcome, added to the rows.
    """
    passages, question = evaluation.passages, evaluation.questions[number]
    titles = {passage.id: passage.title for passage in question.gold}
    pairs: dict[tuple[str, str], float] = {}
    rows: dict[str, dict[str, object]] = {}
    for place, outcome in enumerate(evaluation.outcomes):
        documents = outcome.documents[number]
        titles |= {id_: passages[id_].title for id_ in documents}
        if outcome.scores:
            pairs |= outcome.scores[number]
        found, missed = found_and_missed(question, documents, titles)
        rows.setdefault(outcome.name, {})[str(outcome.k)] = {
            "documents": list(documents),
            "found": found,
            "missed": missed,
            **({"answer": texts[place][number]} if texts is not None else {}),
        }
    titles |= {id_: passages[id_].title for pair in pairs for id_ in pair}
    record: dict[str, object] = {
        "rows": rows,
        "pairs": [{"d1": d1, "d2": d2, "probability": round(p, 6)} for (d1, d2), p in pairs.items()],
        "titles": titles,
    }
    labels = {id_: passages[id_].labels for id_ in titles if id_ in passages and passages[id_].labels}
    return record | ({"passages": labels} if labels else {})


def found_and_missed(
    question: Question, documents: Sequence[str], titles: dict[str, str]
) -> tuple[list[str], list[str]]:
    """The titles of the gold passages that are among the documents, and of the others."""
    gold = [id_ for id_ in titles if id_ in question.support]
    return [titles[id_] for id_ in gold if id_ in documents], [titles[id_] for id_ in gold if id_ not in documents]


def plot_recall(evaluation: Evaluation, measured: Sequence[Metrics], path: Path, title: str) -> None:
    """Plot recall by k, one line per row."""
    figure, (axes,) = axes_of()
    rows = list(zip(evaluation.outcomes, measured, strict=True))
    for name in dict.fromkeys(outcome.name for outcome in evaluation.outcomes):
        points = [(outcome.k, 100 * m.recall) for outcome, m in rows if outcome.name == name]
        axes.plot(*zip(*points, strict=True), marker="o", label=name)
    axes.set(xlabel="k (document budget)", ylabel="recall of gold passages, %", title=title)
    axes.set_xticks(sorted({outcome.k for outcome in evaluation.outcomes}))
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
    write_png(figure, path)


def selection_case(question: Question, answers: Mapping[str, Answer]) -> QuestionCase:
    """One row per selection and chosen document, in the order of the selection.

    Args:
        question: With its gold passages.
        answers: What each selection chose and the reader answered, by the selection's name.
    """
    rows: list[tuple[str, ...]] = []
    for name, answer in answers.items():
        titles = {hit.passage.id: hit.passage.title for hit in answer.evidence}
        documents = answer.notes.get("documents")
        notes = {each["id"]: each for each in documents} if isinstance(documents, list) else {}
        for place, hit in enumerate(answer.evidence):
            note = notes.get(hit.passage.id, {})
            gold = "gold" if hit.passage.id in question.support else ""
            stage = str(note.get("stage", "first"))
            rows.append((name if place == 0 else "", hit.passage.title, gold, stage, _why(note, titles)))
        rows.append(("" if answer.evidence else name, _summary(question, answer), "", "", ""))
    note = "P: the classifier's probability that two documents together answer the question, of the best pair chosen."
    return QuestionCase("What each selection chose (Table 8)", CASE_COLUMNS, tuple(rows), note)


def _why(note: Mapping[str, object], titles: Mapping[str, str]) -> str:
    if note.get("partner") is None:
        return "similarity to the question" if note.get("stage", "first") == "first" else "similarity to q*"
    return f"P {note['probability']:.3f} with {titles.get(str(note['partner']), '')}"


def _summary(question: Question, answer: Answer) -> str:
    found = len({hit.passage.id for hit in answer.evidence} & set(question.support))
    read = f"; answer: {answer.text}" if answer.text else ""
    return f"{found} of {len(set(question.support))} gold passages{read}"


def cases_of(questions: Sequence[Question], variants: Mapping[str, Sequence[Answer]]) -> list[list[QuestionCase]]:
    """One case per question."""
    return [
        [selection_case(question, {name: answers[number] for name, answers in variants.items()})]
        for number, question in enumerate(questions)
    ]
