"""The answers of RE-RAG's settings, and one question's contexts with the answer read from each."""

from collections.abc import Sequence
from itertools import repeat

from common.records import Answer, Ranked
from harness.evaluation.page import QuestionCase
from harness.evaluation.rerag.candidates import CandidateSet
from harness.evaluation.rerag.tables import ABLATION, FULL, Confidence, Readings
from harness.readers.t5 import explanation
from harness.systems.rerag import UNANSWERABLE, ReRag
from models.rerag.marginal_reader import MarginalReading

CALIBRATED, SCORE = "calibrated P(relevant)", "relevance score"  # without a fitted calibration


def setting_answers(
    system: ReRag,
    candidate_sets: Sequence[CandidateSet],
    name: str,
    readings: Sequence[MarginalReading] | None,
    confident: Confidence,
    seconds: dict[str, float],
) -> list[Answer]:
    """The answers under one setting of the ablation; those of the system itself under the last, with refusal.

    Args:
        system: The system.
        candidate_sets: One per question.
        name: Of the setting.
        readings: Under this setting, one per question; None without a reader.
        confident: The estimator's confidence in each question.
        seconds: Per stage, over all questions.
    """
    (by, weights), full = ABLATION[name], name == FULL
    answers = []
    for number, (each, reading) in enumerate(zip(candidate_sets, readings or repeat(None), strict=False)):
        order = each.order(by)[: system.contexts]
        scores = each.relevance_C if weights == "estimator" else each.retriever_C
        contexts = [Ranked(each.passages[i], float(scores[i])) for i in order]
        answerable = None if system.threshold is None else bool(confident.max_N[number] >= system.threshold)
        refused = full and system.abstain and not answerable
        read = reading if contexts and not refused else None  # like the system, which reads nothing if it refuses
        estimated = "estimator" in (by, weights)
        # both rankers' contexts were read at once: a setting is charged its own share, and scoring only where it scores
        shares = {"reading": len(order) / len(each.column_of) if read else 0.0, "scoring": float(estimated)}
        costs = {
            "retriever_calls": float(system.retriever is not None),
            "model_calls": float(len(each.passages) * estimated + (len(order) if read else 0)),
            "passages_scored": float(len(each.passages) * estimated),
            "contexts_read": float(len(order) if read else 0),
            "tokens": sum(each.tokens.get(stage, 0.0) * share for stage, share in shares.items()),
            **{name: value * shares["reading"] for name, value in each.reading_costs.items()},
            **{f"seconds/{s}": value * shares.get(s, 1.0) / len(candidate_sets) for s, value in seconds.items()},
        }
        notes = explanation(contexts, read, system.calibration if weights == "estimator" else None)
        notes |= {"answerable": answerable, "threshold": system.threshold} if full else {}
        text = UNANSWERABLE if refused else reading.text if reading else ""
        logprob = read.answer_logprob if read else None
        answers.append(Answer(each.question.id, text, tuple(contexts), logprob, costs, notes))
    return answers


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
    settings: dict[str, dict[str, object]] = {}
    for (name, marginal), each in readings.items():
        logprob = each[number].answer_logprob
        settings.setdefault(name, {})[marginal] = {
            "text": each[number].text,
            "logprob": None if logprob is None else round(logprob, 6),
        }
    return {"candidates": candidates, "settings": settings}
