"""RE-RAG's evaluation report: answers, tables, plots and the extra fields of each question's record."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.files import sha256
from common.records import Answer, Question, Ranked
from harness.evaluation import paper_figures
from harness.evaluation.answer_scores import Bootstrap, Normalization
from harness.evaluation.rerag import tables as rerag_tables
from harness.evaluation.rerag.baseline import Baseline
from harness.evaluation.rerag.bm25_baseline import bm25_of_shipped
from harness.evaluation.rerag.candidates import CandidateSet, Ranker, collect_candidates
from harness.evaluation.rerag.plots import plot_contexts, plot_coverage, plot_quality
from harness.evaluation.rerag.retrieval import Source, fit_temperatures, retrieval_facts, source_of
from harness.evaluation.rerag.unanswerable import Confidence, coverage_curves, refusal_tables
from harness.evaluation.serialization import digest
from harness.evaluation.tables import Table
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.readers.t5 import explanation
from harness.runtime.provenance import computed_in, configuration
from harness.runtime.resumable import ResumableBatches
from harness.strategies.rerag import UNANSWERABLE, ReRag
from models.pretrained import MINILM
from models.serving_manifest import MANIFEST

_SAME_CONTEXTS = "; no question has more candidates than contexts: both rankers select the same contexts"
_NO_GENERATOR = (
    "not measured without a generator: answers, ablation, EM by contexts and quality, refusal, risk and coverage"
)


@dataclass(slots=True)
class Report:
    """The results of an evaluation of RE-RAG."""

    answers: list[Answer] | None  # those of the strategy; None without a generator
    tables: list[Table]
    extras: list[dict[str, object]]  # extra fields of each question's record
    facts: list[str]
    settings: dict[str, object]
    contexts: Table | None = None
    quality: Table | None = None
    curves: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]] = field(default_factory=dict)
    seconds_before: float = 0.0  # computing time of results reused from an interrupted run

    def plot(self, folder: Path) -> None:
        """Write contexts.png, quality.png and risk_coverage.png; none without a generator."""
        if self.contexts is not None and self.quality is not None:
            plot_contexts(self.contexts, folder / "contexts.png")
            plot_quality(self.quality, folder / "quality.png")
            plot_coverage(self.curves, folder / "risk_coverage.png")


def evaluate(
    strategy: ReRag,
    questions: Sequence[Question],
    training: Sequence[Question] | None,
    encoder_name: str | None,
    normalization: Normalization,
    ks: tuple[int, ...],
    paper: paper_figures.Paper | None,
    bootstrap: Bootstrap,
    saved_in: Path | None = None,
    baseline: Baseline | None = None,
) -> Report:
    """Compute all answers, tables and curves.

    Args:
        strategy: With an estimator; without a generator, the tables that need one are omitted.
        questions: All with answers.
        training: Questions for fitting the retriever's temperature; temperature 1 when None.
        encoder_name: Sentence encoder that ranks the shipped passages of questions without given scores, if there are any;
            MiniLM when None.
        normalization: How answers are normalized before they are compared.
        ks: Of recall@k.
        paper: Adds this paper's published results to the tables.
        bootstrap: For the intervals.
        saved_in: Folder for the resumable batches; None saves nothing.
        baseline: The generator of Table 7's first four rows; needs the strategy's generator; None omits the rows.
    """
    encoder = None
    sources = dict.fromkeys(source_of(question, strategy.retriever) for question in questions)
    if "cosine" in sources:
        assert strategy.model.estimator is not None
        device = str(strategy.model.estimator.network.device)
        encoder = SentenceEncoder(encoder_name or MINILM, device, precision=strategy.precision)
    of_training, of_questions, of_baseline = _saved_batches(strategy, questions, training, encoder, saved_in, baseline)
    candidates, contexts = strategy.candidates, strategy.contexts
    temperatures: dict[Source, float] = {}
    if training is not None:
        temperatures = fit_temperatures(sources, training, strategy.retriever, encoder, candidates, of_training)
    candidate_sets, seconds = collect_candidates(
        questions, strategy.model, strategy.retriever, encoder, candidates, contexts, temperatures, of_questions
    )
    scoring = rerag_tables.Scoring(normalization, bootstrap)
    others: dict[str, rerag_tables.Orders] = {}
    if strategy.retriever is None:
        lexical = bm25_of_shipped(questions)
        others["BM25"] = [
            sorted(range(len(each.passages)), key=lambda i: -scores[each.passages[i].id])
            for each, scores in zip(candidate_sets, lexical, strict=True)
        ]
    report = Report(None, [rerag_tables.recall_table(candidate_sets, ks, bootstrap, paper, others)], [], [], {})
    report.seconds_before = of_training.seconds + of_questions.seconds
    confidences: dict[Ranker, list[NDArray[np.float64]]] = {
        "estimator": rerag_tables.calibrated(candidate_sets, strategy.model.calibration),
        "retriever": rerag_tables.retriever_confidence(candidate_sets),
    }
    exact: dict[Ranker, NDArray[np.float64]] = {}
    readings: rerag_tables.Readings = {}
    if strategy.model.generator is not None:
        readings = rerag_tables.read_settings(candidate_sets, strategy.contexts)
        if baseline is not None:
            others_sets = baseline.read(candidate_sets, of_baseline)
            readings |= rerag_tables.read_settings(others_sets, strategy.contexts, rerag_tables.BASELINE)
            report.seconds_before += of_baseline.seconds
        exact = {
            "estimator": scoring.exact(candidate_sets, readings[rerag_tables.FULL, strategy.marginal]),
            "retriever": scoring.exact(candidate_sets, readings["Baseline", strategy.marginal]),
        }
        report.contexts = rerag_tables.contexts_table(candidate_sets, scoring, strategy.contexts)
        report.quality = rerag_tables.quality_table(candidate_sets, confidences, exact, strategy.contexts)
        report.tables += [
            rerag_tables.ablation_table(candidate_sets, readings, scoring, strategy.contexts, paper), report.contexts, report.quality,
        ]  # fmt: skip
    systems = [
        Confidence.of(
            name, ranker, candidate_sets, confidences[ranker], strategy.contexts, exact.get(ranker),
            strategy.threshold if ranker == "estimator" else None, strategy.threshold_source,
        )
        for ranker, name in rerag_tables.RANKERS.items()
    ]  # fmt: skip
    report.tables += refusal_tables(systems, bootstrap, paper)
    if readings:
        certainty = {
            f"probability of the answer, {marginal}": np.array(
                [r.logprob if r.written else -np.inf for r in readings[rerag_tables.FULL, marginal]]
            )
            for marginal in rerag_tables.MARGINALS
        }
        certainty |= {f"greatest confidence, {system.name}": system.max_N for system in systems}
        report.curves, table = coverage_curves(certainty, exact["estimator"])
        report.tables.append(table)
        report.answers = _answers(strategy, candidate_sets, readings, systems[0], seconds)
    report.extras = [_extra(strategy, each, readings, number) for number, each in enumerate(candidate_sets)]
    report.facts = [
        *retrieval_facts(questions, strategy.retriever, encoder, temperatures, training),
        f"temperature of the estimator's weights for `thorough`: {strategy.model.relevance_temperature:g}",
        f"{np.mean([len(each.passages) for each in candidate_sets]):.1f} candidates per question, {strategy.contexts} contexts per ranker"
        + _SAME_CONTEXTS * all(len(each.passages) <= strategy.contexts for each in candidate_sets),
        *_threshold_facts(strategy),
        *[f"matrix products of the models in {computed_in(strategy.model.estimator)}"]
        * (computed_in(strategy.model.estimator) is not None),
        *[_NO_GENERATOR] * (strategy.model.generator is None),
        "seconds: " + ", ".join(f"{stage} {value:.1f}" for stage, value in seconds.items()),
    ]
    if baseline is not None:
        report.facts.append(
            f"generator without RE: {baseline.serving}; temperature of the retriever's scores {baseline.temperature:.4g}, as in "
            "its training: it fits here if one retriever gave the scores of both"
        )
    report.settings = {
        "serving": str(strategy.serving) if strategy.serving else None,
        "computed in": computed_in(strategy.model.estimator),
        "candidates": strategy.candidates,
        "contexts": strategy.contexts,
        "marginal": strategy.marginal,
        "threshold": strategy.threshold,
        "threshold_source": strategy.threshold_source,
        "refuse": strategy.refuse,
        "temperature": next((temperatures[source] for source in sources if source in temperatures), 1.0),
        "temperatures": temperatures,
        "relevance_temperature": strategy.model.relevance_temperature,
        "baseline": {"serving": str(baseline.serving), "temperature": baseline.temperature} if baseline else None,
        "seconds": seconds,
    }
    return report


def _threshold_facts(strategy: ReRag) -> list[str]:
    """How the refusal threshold was chosen; nothing without one."""
    if strategy.threshold is None:
        return []
    fact = f"refusal threshold: {strategy.threshold:g}, {strategy.threshold_source}"
    if strategy.threshold_source == "exported" and strategy.model.refusal_contexts is not None:
        cost = strategy.model.refusal_cost
        counted = f"lowest cost, where a wrong refusal counts as {cost:g} answered unanswerable questions"
        chosen = "best F1" if cost is None else counted
        fact += f": {chosen} on validation, for the best {strategy.model.refusal_contexts} contexts"
    return [fact]


def _saved_batches(
    strategy: ReRag,
    questions: Sequence[Question],
    training: Sequence[Question] | None,
    encoder: SentenceEncoder | None,
    folder: Path | None,
    baseline: Baseline | None,
) -> tuple[ResumableBatches, ResumableBatches, ResumableBatches]:
    """Resumable batches for training questions, for questions, and for the baseline; nothing is saved if the strategy's parts
    are unknown."""
    retriever = configuration(strategy.retriever) if strategy.retriever is not None else {}
    if folder is None or retriever is None or strategy.serving is None:
        return ResumableBatches(), ResumableBatches(), ResumableBatches()
    assert strategy.model.estimator is not None
    estimator = strategy.model.estimator
    device = f"{estimator.network.device.type}, {estimator.inference_dtype}"
    candidates = strategy.candidates
    source = {"retriever": retriever, "encoder": encoder and encoder.recipe, "candidates": candidates, "device": device}
    model = {"serving folder": sha256(Path(strategy.serving) / MANIFEST), "contexts": strategy.contexts}
    of_questions = {"questions": digest(questions), **source, **model}
    of_training = {"training questions": digest(training or ()), **source}
    of_baseline = {**of_questions, "baseline": baseline.digest if baseline else None}
    return (
        ResumableBatches(folder / "answers-temperature.jsonl", of_training),
        ResumableBatches(folder / "answers-pools.jsonl", of_questions),
        ResumableBatches(folder / "answers-baseline.jsonl", of_baseline),
    )


def _answers(
    strategy: ReRag,
    candidate_sets: Sequence[CandidateSet],
    readings: rerag_tables.Readings,
    confident: Confidence,
    seconds: dict[str, float],
) -> list[Answer]:
    """The strategy's answers."""
    answers = []
    full = readings[rerag_tables.FULL, strategy.marginal]
    for number, (each, reading) in enumerate(zip(candidate_sets, full, strict=True)):
        order = each.order("estimator")[: strategy.contexts]
        contexts = [Ranked(each.passages[i], float(each.relevance_C[i])) for i in order]
        answerable = None if strategy.threshold is None else bool(confident.max_N[number] >= strategy.threshold)
        refused = strategy.refuse and not answerable
        read = reading if contexts and not refused else None  # like the strategy, which reads nothing if it refuses
        costs = {
            "retriever_calls": float(strategy.retriever is not None),
            "passages_scored": float(len(each.passages)),
            "contexts_read": float(len(each.column_of)),
            **{f"seconds/{stage}": value / len(candidate_sets) for stage, value in seconds.items()},
        }
        notes = {**explanation(contexts, read, strategy.model.calibration), "answerable": answerable}
        text, logprob = UNANSWERABLE if refused else reading.text, read.logprob if read else None
        answers.append(Answer(each.question.id, text, tuple(contexts), logprob, costs, notes))
    return answers


def _extra(strategy: ReRag, item: CandidateSet, readings: rerag_tables.Readings, number: int) -> dict[str, object]:
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
                "probability": round(strategy.model.calibration(float(item.relevance_C[place])), 6),
                "has_answer": bool(item.has_answer_C[place]),
                "written": written,
            }
        )
    settings: dict[str, dict[str, object]] = {}
    for (name, marginal), each in readings.items():
        settings.setdefault(name, {})[marginal] = {
            "text": each[number].text,
            "logprob": round(each[number].logprob, 6),
        }
    return {"candidates": candidates, "settings": settings}
