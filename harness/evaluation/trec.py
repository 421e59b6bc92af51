"""Rankings as TREC's tools read them: qrels, runs whose scores fall, and the figures that ir-measures gives for both.

Documents have the corpus's own ids; a passage without one has its own. Shape legend: N questions.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.files import write_text
from common.records import Answer, Passage, Question, clean
from harness.evaluation.gold_in_index import ABSENT

RUN, QRELS = "run.trec", "qrels.trec"
TAG = "lightning-rag"
GREATEST = 1e30  # of a score; infinite ones are cut to it
Documents = Mapping[str, Sequence[str]]  # ids of documents by the passage's id


def measure_names(min_grade: int | None = None) -> list[str]:
    """The names of the figures, as ir-measures writes them; all but nDCG ask from which grade on a document counts."""
    rel = f"(rel={min_grade})" if min_grade and min_grade > 1 else ""
    return ["nDCG@10", f"RR{rel}@10", f"AP{rel}@100", f"R{rel}@100"]


def trec_scores(
    questions: Sequence[Question], answers: Sequence[Answer], min_grade: int | None = None
) -> dict[str, NDArray[np.float64]]:
    """Each question's figures by ir-measures, (N,), 0 to 1; NaN for questions without judgements.

    All are NaN where a grade is no whole number, which TREC's measures do not know.
    """
    import ir_measures

    names, documents = measure_names(min_grade), documents_of(questions, answers)
    scores = {name: np.full(len(questions), np.nan) for name in names}
    qrels = {str(place): each for place, one in enumerate(questions) if (each := judgements(one, documents))}
    if all(float(grade).is_integer() for each in qrels.values() for grade in each.values()):
        whole = {place: {id_: int(grade) for id_, grade in each.items()} for place, each in qrels.items()}
        run = {place: each for place in whole if (each := ranking(answers[int(place)], documents))}
        for found in ir_measures.iter_calc([*map(ir_measures.parse_measure, names)], whole, run):
            scores[str(found.measure)][int(found.query_id)] = found.value
    return scores


def write_trec(folder: Path, questions: Sequence[Question], answers: Sequence[Answer]) -> list[str]:
    """Write `run.trec` and `qrels.trec`; returns a line where an id that their lines cannot hold prevents it."""
    documents = documents_of(questions, answers)
    run, qrels = list[tuple[str, ...]](), list[tuple[str, ...]]()
    for question, answer in zip(questions, answers, strict=True):
        for rank, (id_, score) in enumerate(ranking(answer, documents).items(), 1):
            run.append((question.id, "Q0", id_, str(rank), f"{score:.9g}", TAG))
        qrels += [(question.id, "0", id_, f"{grade:g}") for id_, grade in judgements(question, documents).items()]
    if blank := next((cell for row in (*run, *qrels) for cell in row if len(cell.split()) != 1), ""):
        return [f"{RUN} is not written: the id {blank!r} has a blank, which no file of TREC can hold"]
    if len({question.id for question in questions}) < len(questions):
        return [f"{RUN} is not written: several questions have one id"]
    for name, rows in ((RUN, run), (QRELS, qrels)):
        write_text(folder / name, "".join(f"{' '.join(row)}\n" for row in rows))
    return []


def documents_of(questions: Sequence[Question], answers: Sequence[Answer]) -> Documents:
    """The ids of the documents of all passages; an index has the corpus's own, a question's file often has not."""
    found: dict[str, dict[str, None]] = {}
    evidence = (hit.passage for answer in answers for hit in answer.evidence)
    for passage in chain((passage for one in questions for passage in one.passages), evidence):
        found.setdefault(passage.id, {}).update(dict.fromkeys(own_ids(passage)))
    return {id_: [*own] or [id_] for id_, own in found.items()}


def own_ids(passage: Passage) -> list[str]:
    """The corpus's ids of a passage and of those with its title and text."""
    return [*filter(None, map(clean, (passage.corpus_id, *passage.other_ids)))]


def judgements(question: Question, documents: Documents) -> dict[str, float]:
    """The grade of each judged document, 1 of a gold passage without one; none if the file ships not all gold."""
    graded = dict(question.gold.grades)
    found = {each: grade for id_, grade in graded.items() for each in documents.get(id_, [id_])}
    for id_ in question.support:
        known = documents.get(id_, [])
        if found.keys().isdisjoint(known) and clean(id_.removeprefix(f"{ABSENT}id ")) not in graded:
            found |= dict.fromkeys(known or ["_".join(id_.split())], 1.0)
    return {} if question.gold.titles else found


def ranking(answer: Answer, documents: Documents) -> dict[str, float]:
    """The documents of the evidence, each at its first place, with scores that fall strictly in float32.

    The order decides: a score that is not below the one before it is lowered, so that no tool's rule for ties matters.
    """
    found, last = dict[str, float](), np.float32(np.inf)
    for hit in answer.evidence:
        for id_ in own_ids(hit.passage) or documents[hit.passage.id]:
            if id_ not in found:
                value = np.float32(np.clip(hit.score, -GREATEST, GREATEST))
                last = value if value < last else np.nextafter(last, np.float32(-np.inf))
                found[id_] = float(last)
    return found
