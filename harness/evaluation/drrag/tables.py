"""DR-RAG's tables: recall for every k (Table 5) with its plot, answers (Tables 2 to 4), each selection's choices (8).

Shape legend: N questions, R rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from common.records import Answer, Question
from common.retrieval import share_found
from harness.evaluation.answer_scores import MEASURES, answer_values, percent_cells
from harness.evaluation.page import QuestionCase
from harness.evaluation.paper_figures import DR_RAG_BUDGETS, Paper, answers, published
from harness.evaluation.settings import Bootstrap, Settings
from harness.evaluation.tables import Cell, Cells, ReportTable
from harness.runtime.memo import FOR_STUDY

BASELINE = "SM"
READING = "seconds/reading"
COLUMNS = (
    "recall %",
    f"difference to {BASELINE}",
    "documents",
    "all found %",
    "time",
    "pairs",
    "oracle %",
    "gap closed %",
)
EQUAL_COLUMNS = ("CFS %", "QDC, cut %", "CFS - QDC, cut, points", "documents", "questions where CFS is not QDC")
ANSWER_COLUMNS = ("EM %", f"EM - {BASELINE}, points", *MEASURES[1:], "steps", "time")
CASE_COLUMNS = ("selection", "document", "gold", "stage", "why")
NOTES = """\
Recall: share of a question's gold passages among the chosen documents, mean over questions. All found: questions with
every gold passage found. Difference: to SM at the same k, in points, with the 95% paired bootstrap interval over
questions. Time: retrieval and pair scoring per question, relative to SM, without a reader: what a row needs by itself,
at the mean time of a search and of a pair, although rows share them here. Oracle: the recall of the best k of the
documents that a row chose or scored. Gap closed: the difference to SM, as a share of the oracle's.
"""
PAPER_NOTE = """\
Rows of recall marked "paper" are DR-RAG's Table 5 ({dataset}). The setups differ: the paper names neither its encoder
nor its corpus, used about 2,300 questions per data set, and trained BigBird-base on the whole training set; compare
differences to SM rather than absolute values. Its Table 4 (CIS and CFS without QDC) reports a reader's EM, F1 and
accuracy, not recall.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """What one system answered. Lists have one entry per question."""

    name: str
    k: int
    answers: Sequence[Answer]

    def pairs(self, number: int) -> Mapping[tuple[str, str], float]:
        """Probability of each pair of ids that was scored for a question."""
        return self.answers[number].notes.get(FOR_STUDY, {})  # type: ignore[return-value]

    def seconds(self, without: str = "") -> float:
        """Per question, of all stages but one."""
        costs = [cost for each in self.answers for cost in each.costs.items() if cost[0].startswith("seconds/")]
        return sum(value for stage, value in costs if stage != without) / len(self.answers)

    def documents(self, number: int) -> list[str]:
        """Ids of the documents chosen for a question."""
        return [hit.passage.id for hit in self.answers[number].evidence]


def recall_tables(
    rows: Sequence[Row],
    questions: Sequence[Question],
    known: Sequence[int],
    bootstrap: Bootstrap,
    paper: Paper | None,
) -> dict[int, ReportTable]:
    """Per k a table of all rows, with 95% paired bootstrap intervals of the difference to similarity matching.

    Args:
        rows: One of similarity matching for each k.
        questions: The questions.
        known: Places of those whose gold passages are all in the file.
        bootstrap: For the intervals.
        paper: Adds the paper's results on this data set.
    """
    recalls_RN = np.array([[share_found(questions[n].gold_groups, row.documents(n)) for n in known] for row in rows])
    baseline_of = {row.k: place for place, row in enumerate(rows) if row.name == BASELINE}
    differences = percent_cells(recalls_RN - recalls_RN[[baseline_of[row.k] for row in rows]], bootstrap)
    cells: dict[int, dict[str, Cells]] = {}
    for row, recall_N, difference in zip(rows, recalls_RN, differences, strict=True):
        of_sm, seconds = (each.seconds(without=READING) for each in (rows[baseline_of[row.k]], row))
        cells.setdefault(row.k, {})[row.name] = [
            Cell(100 * float(recall_N.mean())),
            None if row.name == BASELINE else difference,
            Cell(float(np.mean([len(row.documents(n)) for n in known]))),
            Cell(100 * float((recall_N == 1).mean())),
            Cell(seconds / of_sm) if seconds and of_sm else None,
            Cell(float(np.mean([len(row.pairs(n)) for n in known]))),
            *_beside_oracle(
                row, questions, known, float(recall_N.mean()), float(recalls_RN[baseline_of[row.k]].mean())
            ),
        ]
    of_paper = ("recall", "", "documents", "", "", "", "", "")
    return {
        k: ReportTable(
            f"recall, k = {k}", f"Recall of gold passages, k = {k}", COLUMNS, own,
            published(f"DR-RAG, Table 5, k = {k}", paper, of_paper) if k in DR_RAG_BUDGETS else {},
            signed=frozenset({COLUMNS[1]}), column_decimals={"pairs": 1},
        )
        for k, own in cells.items()
    }  # fmt: skip


def _beside_oracle(
    row: Row, questions: Sequence[Question], known: Sequence[int], recall: float, of_sm: float
) -> list[Cell | None]:
    """The recall of the best k of the documents chosen or scored, and the share of the way there from SM.

    Empty for a row without scored pairs; the second also where SM has as much as the oracle.
    """
    if not any(row.pairs(n) for n in known):
        return [None, None]
    scored = [{*row.documents(n), *chain.from_iterable(row.pairs(n))} for n in known]
    gold = [questions[n].gold_groups for n in known]
    shares = [min(share_found(own, found), row.k / len(own)) for own, found in zip(gold, scored, strict=True)]
    oracle = float(np.mean(shares))
    return [Cell(100 * oracle), Cell(100 * (recall - of_sm) / (oracle - of_sm)) if oracle > of_sm else None]


def equal_documents_table(
    rows: Sequence[Row], questions: Sequence[Question], known: Sequence[int], bootstrap: Bootstrap
) -> list[ReportTable]:
    """CFS beside QDC that is cut, for each question, to as many documents as CFS chose; none unless both were asked.

    A classifier that accepts nearly every pair makes CFS equal to QDC, and one that accepts few makes it smaller.

    Args:
        rows: All of them.
        questions: The questions.
        known: Places of those whose gold passages are all in the file.
        bootstrap: For the intervals.
    """
    cells: dict[str, Cells] = {}
    chosen = {(row.name, row.k): [row.documents(n) for n in known] for row in rows}
    gold = [questions[n].gold_groups for n in known]
    for k in dict.fromkeys(row.k for row in rows if {("CFS", row.k), ("QDC", row.k)} <= chosen.keys()):
        cfs, whole = chosen["CFS", k], chosen["QDC", k]
        cut = [found[: len(own)] for found, own in zip(whole, cfs, strict=True)]
        recalls = np.array([[share_found(*each) for each in zip(gold, found, strict=True)] for found in (cfs, cut)])
        differing = sum(set(own) != set(other) for own, other in zip(cfs, whole, strict=True))
        cells[f"k = {k}"] = [
            *percent_cells([*recalls, recalls[0] - recalls[1]], bootstrap),
            Cell(float(np.mean([len(own) for own in cfs]))),
            Cell(differing),
        ]
    title = "CFS beside QDC cut to as many documents, question by question"
    signed = frozenset({EQUAL_COLUMNS[2]})
    return [ReportTable("CFS at equal documents", title, EQUAL_COLUMNS, cells, signed=signed)] if cells else []


def answer_tables(
    rows: Sequence[Row],
    questions: Sequence[Question],
    known: Sequence[int],
    settings: Settings,
    paper: Paper | None,
) -> list[ReportTable]:
    """One table of a reader's answers per k, with paired differences to similarity matching (Tables 2 to 4).

    Args:
        rows: The rows.
        questions: Counted are those with gold answers, and with gold passages if any has.
        known: Places of the questions whose gold passages are all in the file.
        settings: Normalization and bootstrap.
        paper: Adds the paper's results on this data set.
    """
    counted = [n for n, each in enumerate(questions) if each.answers and (n in {*known} or not known)]
    asked = [questions[n] for n in counted]
    tables = []
    for k in dict.fromkeys(row.k for row in rows if counted):
        at_k = {row.name: [row.answers[n] for n in counted] for row in rows if row.k == k}
        scored = {name: answer_values(asked, answers, settings) for name, answers in at_k.items()}
        times = {row.name: row.seconds() for row in rows if row.k == k}
        cells: dict[str, Cells] = {}
        for row in (row for row in rows if row.k == k):
            exact_N, f1_N, inclusion_N = scored[row.name]
            values = np.stack([exact_N, exact_N - scored[BASELINE][0], f1_N, inclusion_N])
            steps = np.mean([row.answers[n].costs.get("model_calls", 0.0) - len(row.pairs(n)) for n in counted])
            time = Cell(times[row.name] / times[BASELINE]) if times[BASELINE] else None
            own: list[Cell | None] = [*percent_cells(values, settings.bootstrap), Cell(float(steps)), time]
            cells[row.name] = own if row.name != BASELINE else [own[0], None, *own[2:]]
        tables.append(
            ReportTable(
                f"answers, k = {k}",
                f"Answers from at most {k} documents, normalization: {settings.normalization} (Tables 2-4)",
                ANSWER_COLUMNS,
                cells,
                answers(paper, k, ("EM", "", "F1", "Acc", "steps", "time")) if paper else {},
                note="Steps: calls of the reader per question. Time: of retrieval, pair scoring and reading, to SM's.",
                signed=frozenset({ANSWER_COLUMNS[1]}),
            )
        )
    return tables


def selection_record(rows: Sequence[Row], number: int) -> dict[str, object]:
    """Fields of one question's record: per row and k the documents chosen and the answer from them; pair scores."""
    found: dict[str, dict[str, object]] = {}
    pairs: dict[tuple[str, str], float] = {}
    for row in rows:
        answer = row.answers[number]
        pairs |= row.pairs(number)
        read = {"answer": answer.text} if READING in answer.costs else {}
        found.setdefault(row.name, {})[str(row.k)] = {"documents": row.documents(number), **read}
    return {"rows": found, "pairs": [{"d1": d1, "d2": d2, "probability": round(p, 6)} for (d1, d2), p in pairs.items()]}


def selection_case(question: Question, rows: Mapping[str, Row], number: int) -> QuestionCase:
    """One row per selection and chosen document, in the order of the selection."""
    shown: list[tuple[str, ...]] = []
    for name, row in rows.items():
        answer = row.answers[number]
        titles = {hit.passage.id: hit.passage.title for hit in answer.evidence}
        documents = answer.notes.get("documents")
        notes = {each["id"]: each for each in documents} if isinstance(documents, list) else {}
        for place, hit in enumerate(answer.evidence):
            note = notes.get(hit.passage.id, {})
            gold = "gold" if hit.passage.id in question.support else ""
            stage = str(note.get("stage", "first"))
            shown.append((name if place == 0 else "", hit.passage.title, gold, stage, _why(note, titles)))
        shown.append(("" if answer.evidence else name, _summary(question, answer), "", "", ""))
    note = "P: the classifier's probability that two documents together answer the question, of the best pair chosen."
    return QuestionCase("What each selection chose (Table 8)", CASE_COLUMNS, tuple(shown), note)


def _why(note: Mapping[str, object], titles: Mapping[str, str]) -> str:
    if note.get("partner") is None:
        return "similarity to the question" if note.get("stage", "first") == "first" else "similarity to q*"
    return f"P {note['probability']:.3f} with {titles.get(str(note['partner']), '')}"


def _summary(question: Question, answer: Answer) -> str:
    found = len({hit.passage.id for hit in answer.evidence} & set(question.support))
    read = f"; answer: {answer.text}" if answer.text else ""
    return f"{found} of {len(set(question.support))} gold passages{read}"
