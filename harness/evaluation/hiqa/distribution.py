"""How metadata move segments in the space of their embeddings (HiQA, Appendix C).

Cohesion within documents and among sections of the same heading, and the distance of questions to their context.

The same segments are compared with and without metadata.  All figures are cosines, so that scale does not count.

Shape legend: N segments, D dimensions, M documents or headings, Q questions.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.gold_segments import is_relevant
from common.records import Passage, Question
from harness.evaluation.answer_scores import Bootstrap
from harness.evaluation.hiqa.ranking import document_of
from harness.evaluation.judging.tables import value_cells
from harness.evaluation.tables import Cells, Table, not_measured
from harness.indexing.passage_store import PassageStore
from harness.indexing.vector_search import open_vectors
from harness.retrievers.dense import DenseRetriever

WITH, WITHOUT = "with metadata", "without metadata"
_NUMBER = re.compile(  # "3.2", "Chapter 4:", "A.1", "IV.", "B)"
    r"^(?:(?i:chapter|section|part|appendix)\s+(?:\d[\d.]*|[IVXLC]+\b|[A-Z]\b)|\d+(?:\.\d+)*|[A-Z](?:\.\d+)+|[IVXLC]+(?=[.)])|[A-Z](?=[.)]))"
    r"[.:)\s-]*"
)

Vectors = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Embedded:
    """Segments that two indexes share."""

    passages: Sequence[Passage]  # N
    vectors: Mapping[str, Vectors]  # WITH and WITHOUT -> (N, D), of length 1

    def places_by_document(self) -> dict[str, NDArray[np.int64]]:
        """Positions of the segments of each document, by name."""
        return _grouped([document_of(each) for each in self.passages])

    def places_by_heading(self) -> dict[str, NDArray[np.int64]]:
        """Positions of the segments of each heading that stands in several documents, without its number."""
        groups = _grouped([heading_of(each) for each in self.passages])
        documents = [document_of(each) for each in self.passages]
        return {name: places for name, places in groups.items() if name and len({documents[n] for n in places}) > 1}


def shared_segments(with_metadata: DenseRetriever, without: Path) -> Embedded | None:
    """The segments of an index that another one of the same documents also holds; None if there are not two.

    Args:
        with_metadata: The route of the vectors.
        without: Folder of a dense index by the same encoder, of segments without metadata (`--cascade none`).
    """
    passages = list(PassageStore(with_metadata.index.folder))
    other = {passage.id: place for place, passage in enumerate(PassageStore(without))}
    places = [place for place, passage in enumerate(passages) if passage.id in other]
    if len(places) < 2:
        return None
    vectors = {
        WITH: with_metadata.vectors[places],
        WITHOUT: open_vectors(without)[[other[passages[place].id] for place in places]],
    }
    return Embedded([passages[place] for place in places], {name: unit(each) for name, each in vectors.items()})


def heading_of(passage: Passage) -> str:
    """The last heading above a segment, small and without its number; empty without one."""
    headings = (passage.metadata or {}).get("headings")
    last = str(headings[-1]) if isinstance(headings, list) and headings else ""
    return (_NUMBER.sub("", last) or last).casefold().strip()


def cohesion(vectors_ND: Vectors, places: Mapping[str, NDArray[np.int64]]) -> dict[str, NDArray[np.float64]]:
    """Of every document with several segments, (M,).

    Mean cosine of two of its segments, of one with one of another document, their difference, and the mean silhouette
    of its segments.

    The silhouette (Rousseeuw 1987) of a segment is (b - a) / max(a, b), with a its mean distance, 1 - cosine, to the
    others of its document and b that to the nearest other document: 1 where documents are far apart, below 0 where
    segments lie nearer to another one.

    Args:
        vectors_ND: Of length 1.
        places: Positions of each document's segments; of two documents at least.
    """
    names = [name for name, own in places.items() if len(own) > 1]
    sums_MD = np.stack([vectors_ND[own].sum(axis=0) for own in places.values()])
    counts_M = np.array([len(own) for own in places.values()], dtype=np.float64)
    values: dict[str, list[float]] = {
        "within a document": [],
        "between documents": [],
        "difference": [],
        "silhouette": [],
    }
    for number, (name, own) in enumerate(places.items()):
        if name not in names:
            continue
        count = len(own)
        own_D = sums_MD[number]
        within = (own_D @ own_D - count) / (count * (count - 1))
        between = own_D @ (sums_MD.sum(axis=0) - own_D) / (count * (counts_M.sum() - count))
        dots_CM = vectors_ND[own] @ sums_MD.T
        near_C = 1 - (dots_CM[:, number] - 1) / (count - 1)
        far_C = 1 - np.delete(dots_CM / counts_M, number, axis=1).max(axis=1)
        widest_C = np.maximum(np.maximum(near_C, far_C), np.finfo(np.float64).tiny)
        found = (within, between, within - between, ((far_C - near_C) / widest_C).mean())
        for each, value in zip(values.values(), found, strict=True):
            each.append(float(value))
    return {name: np.array(each) for name, each in values.items()}


def homologous(
    vectors_ND: Vectors, places: Mapping[str, NDArray[np.int64]], documents: Sequence[str]
) -> dict[str, NDArray[np.float64]]:
    """Of every heading that several documents share, (M,).

    Mean cosine of two of its segments in different documents, of one with a segment of another document and heading,
    and their difference.

    Args:
        vectors_ND: Of length 1.
        places: Positions of each heading's segments.
        documents: Of each segment.
    """
    names_N = np.array(documents)
    values: dict[str, list[float]] = {"same heading": [], "other heading": [], "difference": []}
    for own in places.values():
        outside_CN = names_N[own][:, None] != names_N[None]
        cosines_CN = vectors_ND[own] @ vectors_ND.T
        alike_N = np.zeros(len(names_N), dtype=bool)
        alike_N[own] = True
        same = cosines_CN[outside_CN & alike_N].mean()
        if not (outside_CN & ~alike_N).any():
            continue
        other = cosines_CN[outside_CN & ~alike_N].mean()
        for each, value in zip(values.values(), (same, other, same - other), strict=True):
            each.append(float(value))
    return {name: np.array(each) for name, each in values.items()}


def gold_places(embedded: Embedded, questions: Sequence[Question]) -> list[list[int]]:
    """Positions of the segments that hold a gold segment of each question."""
    of_document = embedded.places_by_document()
    return [
        sorted({
            int(place)
            for gold in question.gold_segments
            for place in of_document.get(gold.document, ())
            if is_relevant(embedded.passages[place], gold)
        })
        for question in questions
    ]  # fmt: skip


def contexts(vectors_ND: Vectors, queries_QD: Vectors, gold: Sequence[Sequence[int]]) -> dict[str, NDArray[np.float64]]:
    """Of every question, (Q,): cosines to the segments that hold its gold and to the others.

    Mean cosine to the segments that hold its gold, the greatest cosine to any other, their difference, and in per cent
    whether a gold one is nearest.

    Args:
        vectors_ND: Of length 1.
        queries_QD: Of length 1.
        gold: Positions of each question's gold, at least one, not all.
    """
    values: dict[str, list[float]] = {"gold segment": [], "nearest other": [], "difference": [], "gold nearest %": []}
    for query_D, own in zip(queries_QD, gold, strict=True):
        cosines_N = vectors_ND @ query_D
        other = np.delete(cosines_N, own).max()
        mean, best = cosines_N[own].mean(), cosines_N[own].max()
        for each, value in zip(values.values(), (mean, other, mean - other, 100.0 * (best > other)), strict=True):
            each.append(float(value))
    return {name: np.array(each) for name, each in values.items()}


def distribution_tables(
    embedded: Embedded | None, dense: DenseRetriever, questions: Sequence[Question], bootstrap: Bootstrap
) -> list[Table]:
    """The figures of C.2 to C.5 with and without metadata, and their paired differences.

    The reason where there are none.

    Args:
        embedded: Of `shared_segments`.
        dense: Encodes the questions.
        questions: With gold segments.
        bootstrap: Over documents, headings or questions.
    """
    if embedded is None:
        return [_table("documents", {}, "the two indexes share no segments", bootstrap)]
    documents, headings = embedded.places_by_document(), embedded.places_by_heading()
    names = [document_of(each) for each in embedded.passages]
    gold = gold_places(embedded, questions)
    known = [number for number, own in enumerate(gold) if 0 < len(own) < len(names)]
    queries_QD = unit(dense.encode_queries([questions[number].text for number in known])) if known else np.empty((0, 0))
    measured: dict[str, dict[str, dict[str, NDArray[np.float64]]]] = {name: {} for name in _TITLES}
    for name, vectors_ND in embedded.vectors.items():
        if len(documents) > 1:
            measured["documents"][name] = cohesion(vectors_ND, documents)
        if headings:
            measured["headings"][name] = homologous(vectors_ND, headings, names)
        if known:
            measured["contexts"][name] = contexts(vectors_ND, queries_QD, [gold[number] for number in known])
    return [_table(name, rows, _REASONS[name], bootstrap) for name, rows in measured.items()]


_TITLES = {
    "documents": "C.2 and C.3: cosines of segments within a document and between documents",
    "headings": "C.4: cosines of sections of the same heading in different documents",
    "contexts": "C.5: cosines of a question and its context",
}
_REASONS = {
    "documents": "there is one document", "headings": "no heading stands in several documents",
    "contexts": "no segment holds a gold segment",
}  # fmt: skip
_OVER = {"documents": "documents", "headings": "headings that several documents share", "contexts": "questions"}


def _table(
    name: str, rows: Mapping[str, Mapping[str, NDArray[np.float64]]], reason: str, bootstrap: Bootstrap
) -> Table:
    if not rows or not len(next(iter(rows[WITH].values()))):
        absent: dict[str, Cells] = {WITH: [not_measured(reason)]}
        return Table(f"distribution - {name}", _TITLES[name], ("cosine",), absent)
    columns = tuple(rows[WITH])
    cells: dict[str, Cells] = {each: value_cells([*values.values()], bootstrap) for each, values in rows.items()}
    difference = f"{WITH} - {WITHOUT}"
    cells[difference] = value_cells([rows[WITH][each] - rows[WITHOUT][each] for each in columns], bootstrap)
    count = len(rows[WITH][columns[0]])
    note = f"Means over {count:,} {_OVER[name]}, which are resampled for the intervals. The same segments in both rows."
    decimals = {each: 2 if each.endswith("%") else 4 for each in columns}
    return Table(f"distribution - {name}", _TITLES[name], columns, cells, note=note, signed=frozenset([difference]),
                 column_decimals=decimals)  # fmt: skip


def most_shared(embedded: Embedded) -> str:
    """The heading that stands in the most documents, of equal ones the first by name.

    Empty without one that several share.
    """
    documents = [document_of(each) for each in embedded.passages]
    counts = Counter({name: len({documents[n] for n in own}) for name, own in embedded.places_by_heading().items()})
    return min(counts, key=lambda name: (-counts[name], name), default="")


def _grouped(names: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    groups: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        groups.setdefault(name, []).append(place)
    return {name: np.array(places, dtype=np.int64) for name, places in groups.items()}


def unit(vectors_ND: NDArray) -> Vectors:
    """The vectors with length 1; one of length 0 stays."""
    vectors_ND = np.asarray(vectors_ND, dtype=np.float64)
    return vectors_ND / np.maximum(np.linalg.norm(vectors_ND, axis=1, keepdims=True), np.finfo(np.float64).tiny)
