"""One question's contexts with the answer read from each, for the page and the records of RE-RAG's study."""

from harness.evaluation.page import QuestionCase
from harness.evaluation.rerag.candidates import CandidateSet
from harness.evaluation.rerag.tables import Readings
from harness.systems.rerag import ReRag

CALIBRATED, SCORE = "calibrated P(relevant)", "relevance score"  # without a fitted calibration


def contexts_case(system: ReRag, item: CandidateSet) -> QuestionCase:
    """Every context that was selected or read, most relevant first.

    Calibrated P(relevant), or the relevance score of a model that was not calibrated; retriever score, the answer read
    from it.
    """
    calibration = system.calibration
    shown_as = CALIBRATED if calibration.is_fitted else SCORE
    order = item.order("estimator")
    shown = [place for place in order if place in item.column_of] or order[: system.contexts]
    alone = _written(item)
    rows = [
        (
            str(order.index(place) + 1),
            item.passages[place].title or item.passages[place].text[:60],
            f"{calibration(score) if calibration.is_fitted else score:.3f}",
            f"{item.retriever_C[place]:.3f}",
            "yes" if item.has_answer_C[place] else "",
            alone.get(place, ""),
        )
        for place in shown
        for score in [float(item.relevance_C[place])]
    ]
    note = (
        f"{len(order)} candidates, the first {min(len(order), system.contexts)} by relevance are read for the answer."
    )
    columns = ("", "context", shown_as, "retriever", "holds an answer", "answer from it alone")
    return QuestionCase("Contexts by relevance", columns, tuple(rows), note)


def _written(item: CandidateSet) -> dict[int, str]:
    """The answer from each candidate that was read alone, or why there is none."""
    if item.matrix is None:
        return {}
    failed = item.matrix.failed or ("",) * len(item.matrix.written)
    return {
        place: f"(none: {failed[column]})" if failed[column] else item.matrix.written[column]
        for place, column in item.column_of.items()
    }


def candidates_record(system: ReRag, item: CandidateSet, readings: Readings, number: int) -> dict[str, object]:
    """Every candidate with its scores and the answer generated from it, and the answer under every setting."""
    columns, matrix = item.column_of, item.matrix
    candidates = []
    for place, passage in enumerate(item.passages):
        written = matrix.written[columns[place]] if matrix and place in columns else None
        candidates.append(
            {
                "id": passage.id,
                **passage.labels,
                "title": passage.title,
                "retriever": round(float(item.retriever_C[place]), 6),
                "relevance": round(float(item.relevance_C[place]), 6),
                "probability": round(system.calibration(float(item.relevance_C[place])), 6),
                "has_answer": bool(item.has_answer_C[place]),
                "written": written,
            }
        )
    settings: dict[str, dict[str, str]] = {}
    for (name, marginal), each in readings.items():
        settings.setdefault(name, {})[marginal] = each[number].text
    return {"candidates": candidates, "settings": settings}
