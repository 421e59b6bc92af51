"""Tables embedded with and without their data fields (HiQA, Appendix B.1: Table 3).

Similarity to their questions, and ranks.

Shape legend: N segments of the index, T tables of the index, Q questions with a gold table, D dimensions.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.gold_segments import is_relevant
from common.progress import say
from common.records import Passage, Question
from harness.evaluation.answer_scores import Bootstrap, differences_table, row_cells
from harness.evaluation.log_rank import log_rank_index
from harness.evaluation.tables import Cells, ReportTable, not_measured
from harness.indexing.passage_store import PassageStore, indexed_text
from harness.retrievers.dense import DenseRetriever

WITHOUT, WITH, WHOLE = "without data fields (A.4)", "with data fields", "whole table alone"
_RULE = re.compile(r"\|(\s*:?-+:?\s*\|)+")  # between the header and the body of a Markdown table
_BETWEEN_CELLS = re.compile(r"(?<!\\)\|")
_NOTE = (
    "Of {questions} questions with a gold table, against {tables} tables of the index. Without data fields: what is "
    "embedded, that is metadata, the sentences before the table, caption, header and first column. With them: the same "
    "and the other cells behind. Whole table alone: metadata, caption and the table in Markdown. Ranks are by the "
    "vectors alone, with all tables of the index embedded in this way; the encoder reads {tokens} tokens of a text at "
    "most."
)


@dataclass(frozen=True, slots=True)
class TableVectors:
    """Similarities and ranks of tables for their questions, for each way of embedding."""

    questions: int
    values: Mapping[str, Mapping[str, NDArray[np.float64]]]  # way -> measure -> (Q,)
    tables: int
    max_tokens: int


def data_fields(text: str) -> str:
    """The cells of a table that are neither in its header nor in its first column, row by row.

    Args:
        text: Of a table's segment: caption and Markdown.
    """
    lines = text.split("\n")
    rules = [number for number, line in enumerate(lines) if _RULE.fullmatch(line.strip())]
    body = lines[rules[0] + 1 :] if rules else []
    cells = [[cell.strip() for cell in _BETWEEN_CELLS.split(line.strip())[1:-1]] for line in body if "|" in line]
    return " ".join(filter(None, (cell for row in cells for cell in row[1:])))


def embed_tables(dense: DenseRetriever, questions: Sequence[Question], k: int, gamma: float) -> TableVectors | None:
    """Embed all tables of an index in every way, and rank the gold tables of the questions.

    Args:
        dense: The route of the vectors.
        questions: With gold segments.
        k: Of the hit rate.
        gamma: Of the Log-Rank Index.

    Returns:
        None if no gold segment is a table of the index.
    """
    passages = list(PassageStore(dense.index.folder))
    places = [place for place, each in enumerate(passages) if (each.metadata or {}).get("kind") == "table"]
    gold = [_gold_tables(question, passages, places) for question in questions]
    asked = [(question, own) for question, own in zip(questions, gold, strict=True) if own]
    if not asked:
        return None
    tables = [passages[place] for place in places]
    say(f"Embedding {len(tables):,} tables with data fields, and whole ...")
    with_fields = [f"{indexed_text(each)} {data_fields(each.text)}" for each in tables]
    embedded = {
        WITHOUT: dense.vectors[places],
        WITH: dense.encoder.encode_passages(with_fields),
        WHOLE: dense.encoder.encode_passages([f"{each.title} {each.text}" for each in tables]),
    }
    questions_QD = dense.encode_queries([question.text for question, _ in asked]).astype(np.float64)
    others_QN = np.stack([dense.similarities(query_D) for query_D in questions_QD.astype(np.float32)])
    values: dict[str, dict[str, NDArray[np.float64]]] = {}
    for way, tables_TD in embedded.items():
        similarity_QN = others_QN.copy()
        similarity_QN[:, places] = questions_QD @ tables_TD.astype(np.float64).T
        ranks = [[_rank(own_N, place) for place in own] for own_N, (_, own) in zip(similarity_QN, asked, strict=True)]
        values[way] = {
            "inner product": np.array(
                [own_N[own].mean() for own_N, (_, own) in zip(similarity_QN, asked, strict=True)]
            ),
            f"hit@{k} %": 100.0 * np.array([min(own) <= k for own in ranks]),
            "Log-Rank %": 100 * np.array([log_rank_index(own, len(passages), gamma) for own in ranks]),
        }
    return TableVectors(len(asked), values, len(tables), dense.encoder.max_tokens)


def _gold_tables(question: Question, passages: Sequence[Passage], places: Sequence[int]) -> list[int]:
    """Positions of the tables that are the first to hold a gold segment of the kind `table`."""
    held = [
        next((place for place in places if is_relevant(passages[place], gold)), None)
        for gold in question.gold_segments
        if gold.kind == "table"
    ]
    return sorted({place for place in held if place is not None})


def _rank(scores_N: NDArray[np.float64], place: int) -> int:
    """From 1; ties in the order of the corpus."""
    return int((scores_N > scores_N[place]).sum() + (scores_N[:place] == scores_N[place]).sum()) + 1


def fields_table(found: TableVectors | None, bootstrap: Bootstrap) -> ReportTable:
    """Table 3, with paired differences; not measured without a gold table."""
    if found is None:
        absent: Cells = [not_measured("no gold segment is a table of the index")]
        return ReportTable("table fields", _TITLE, ("inner product",), {WITHOUT: absent})
    columns = tuple(found.values[WITHOUT])
    values = {way: [*each.values()] for way, each in found.values.items()}
    table = differences_table("table fields", _TITLE, columns, values, WITHOUT, bootstrap, True, 100)
    table.rows = row_cells(values, bootstrap, 100) | dict(table.rows)
    table.column_decimals = {"inner product": 4}
    table.note = _NOTE.format(questions=found.questions, tables=found.tables, tokens=found.max_tokens)
    return table


_TITLE = "Table 3: tables embedded without and with their data fields"
