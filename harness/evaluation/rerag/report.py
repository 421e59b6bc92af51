"""All of RE-RAG's evaluation from one strategy: its answers, the tables, the plots and what each question adds to its record."""

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
from harness.evaluation.rerag.bm25_baseline import bm25_of_own
from harness.evaluation.rerag.candidates import CandidateSet, Ranker, collect_candidates, training_scores
from harness.evaluation.rerag.plots import plot_contexts, plot_coverage, plot_quality
from harness.evaluation.rerag.temperature import fit_temperature
from harness.evaluation.rerag.unanswerable import Confidence, coverage_curves, refusal_tables
from harness.evaluation.serialization import digest
from harness.evaluation.tables import Table
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.readers.t5 import explanation
from harness.runtime.provenance import configuration
from harness.runtime.resumable import ResumableBatches
from harness.strategies.rerag import UNANSWERABLE, ReRag
from models.pretrained import MINILM
from models.serving_manifest import MANIFEST


@dataclass(slots=True)
class Report:
    """What an evaluation of RE-RAG found."""

    answers: list[Answer] | None  # as the strategy would give them; None without a generator
    tables: list[Table]
    extras: list[dict[str, object]]  # per question, for its record
    facts: list[str]
    settings: dict[str, object]
    contexts: Table | None = None
    quality: Table | None = None
    curves: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]] = field(default_factory=dict)
    seconds_before: float = 0.0  # of work that an interrupted run had done

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
    kept_in: Path | None = None,
) -> Report:
    """Run the whole study.

    Args:
        strategy: With an estimator; what needs a generator is left out where there is none.
        questions: All with answers.
        training: Questions to fit the retriever's temperature on; temperature 1 when None.
        encoder_name: Sentence encoder that stands in for a retriever; MiniLM when None.
        normalization: How answers are compared.
        ks: Of recall@k.
        paper: Whose figures to print beside.
        bootstrap: For the intervals.
        kept_in: Folder in which finished batches outlive an interruption; None keeps none.
    """
    encoder = None
    if strategy.retriever is None:
        assert strategy.model.estimator is not None
        encoder = SentenceEncoder(encoder_name or MINILM, device=str(strategy.model.estimator.network.device))
    of_training, of_questions = _kept(strategy, questions, training, encoder, kept_in)
    candidates, contexts = strategy.candidates, strategy.contexts
    temperature = 1.0
    if training is not None:
        scores = training_scores(training, strategy.retriever, encoder, candidates, of_training)
        temperature = fit_temperature(*scores)
    pools, seconds = collect_candidates(
        questions, strategy.model, strategy.retriever, encoder, candidates, contexts, temperature, of_questions
    )
    scoring = rerag_tables.Scoring(normalization, bootstrap)
    others: dict[str, rerag_tables.Orders] = {}
    if encoder is not None:
        lexical = bm25_of_own(questions)
        others["BM25"] = [
            sorted(range(len(pool.passages)), key=lambda i: -scores[pool.passages[i].id])
            for pool, scores in zip(pools, lexical, strict=True)
        ]
    report = Report(None, [rerag_tables.recall_table(pools, ks, bootstrap, paper, others)], [], [], {})
    report.seconds_before = of_training.seconds + of_questions.seconds
    confidences: dict[Ranker, list[NDArray[np.float64]]] = {
        "estimator": rerag_tables.calibrated(pools, strategy.model.calibration),
        "retriever": rerag_tables.retriever_confidence(pools, encoder is not None, temperature),
    }
    exact: dict[Ranker, NDArray[np.float64]] = {}
    readings: rerag_tables.Readings = {}
    if strategy.model.generator is not None:
        readings = rerag_tables.read_settings(pools, strategy.contexts)
        exact = {
            "estimator": scoring.exact(pools, readings[rerag_tables.FULL, strategy.marginal]),
            "retriever": scoring.exact(pools, readings["Baseline", strategy.marginal]),
        }
        report.contexts = rerag_tables.contexts_table(pools, scoring, strategy.contexts)
        report.quality = rerag_tables.quality_table(pools, confidences, exact, strategy.contexts)
        report.tables += [
            rerag_tables.ablation_table(pools, readings, scoring, strategy.contexts, paper), report.contexts, report.quality,
        ]  # fmt: skip
    systems = [
        Confidence.of(
            name, ranker, pools, confidences[ranker], strategy.contexts, exact.get(ranker),
            strategy.threshold if ranker == "estimator" else None,
        )
        for ranker, name in rerag_tables.RANKERS.items()
    ]  # fmt: skip
    report.tables += refusal_tables(systems, bootstrap, paper)
    if readings:
        surest = {
            f"probability of the answer, {marginal}": np.array(
                [r.logprob if r.written else -np.inf for r in readings[rerag_tables.FULL, marginal]]
            )
            for marginal in rerag_tables.MARGINALS
        }
        surest |= {f"greatest confidence, {system.name}": system.max_N for system in systems}
        report.curves, table = coverage_curves(surest, exact["estimator"])
        report.tables.append(table)
        report.answers = _answers(strategy, pools, readings, systems[0], seconds)
    report.extras = [_extra(strategy, pool, readings, number) for number, pool in enumerate(pools)]
    order = f"cosine of {encoder.name} over each question's own passages" if encoder else "the strategy's retriever"
    report.facts = [
        f"retriever's order and scores: {order}; temperature "
        + (f"{temperature:.4g}, fitted on {len(training):,} training questions" if training else "1, not fitted"),
        f"temperature of the estimator's weights, `thorough`: {strategy.model.relevance_temperature:g}",
        "retriever's confidence: " + ("its cosine" if encoder else "its score, scaled to 0..1 over all candidates"),
        f"{np.mean([len(pool.passages) for pool in pools]):.1f} candidates per question, {strategy.contexts} contexts kept",
        "seconds: " + ", ".join(f"{stage} {value:.1f}" for stage, value in seconds.items()),
    ]
    report.settings = {
        "serving": str(strategy.serving) if strategy.serving else None,
        "candidates": strategy.candidates,
        "contexts": strategy.contexts,
        "marginal": strategy.marginal,
        "threshold": strategy.threshold,
        "refuse": strategy.refuse,
        "temperature": temperature,
        "relevance_temperature": strategy.model.relevance_temperature,
        "seconds": seconds,
    }
    return report


def _kept(
    strategy: ReRag,
    questions: Sequence[Question],
    training: Sequence[Question] | None,
    encoder: SentenceEncoder | None,
    folder: Path | None,
) -> tuple[ResumableBatches, ResumableBatches]:
    """Where what training questions and questions give is kept; nowhere if nobody knows what the strategy was built from."""
    retriever = configuration(strategy.retriever) if strategy.retriever is not None else {}
    if folder is None or retriever is None or strategy.serving is None:
        return ResumableBatches(), ResumableBatches()
    assert strategy.model.estimator is not None
    candidates, device = strategy.candidates, strategy.model.estimator.network.device.type
    source = {"retriever": retriever, "encoder": encoder and encoder.recipe, "candidates": candidates, "device": device}
    model = {"serving folder": sha256(Path(strategy.serving) / MANIFEST), "contexts": strategy.contexts}
    return (
        ResumableBatches(
            folder / "answers-temperature.jsonl", {"training questions": digest(training or ()), **source}
        ),
        ResumableBatches(folder / "answers-pools.jsonl", {"questions": digest(questions), **source, **model}),
    )


def _answers(
    strategy: ReRag,
    pools: Sequence[CandidateSet],
    readings: rerag_tables.Readings,
    confident: Confidence,
    seconds: dict[str, float],
) -> list[Answer]:
    """What the strategy itself would answer."""
    made = []
    for number, (pool, reading) in enumerate(zip(pools, readings[rerag_tables.FULL, strategy.marginal], strict=True)):
        kept = [Ranked(pool.passages[i], float(pool.relevance_C[i])) for i in pool.order("estimator")][
            : strategy.contexts
        ]
        answerable = None if strategy.threshold is None else bool(confident.max_N[number] >= strategy.threshold)
        refused = strategy.refuse and not answerable
        read = reading if kept and not refused else None  # as the strategy, which does not read what it refuses
        costs = {
            "retriever_calls": float(strategy.retriever is not None),
            "passages_scored": float(len(pool.passages)),
            "contexts_read": float(len(pool.places)),
            **{f"seconds/{stage}": value / len(pools) for stage, value in seconds.items()},
        }
        made.append(
            Answer(
                pool.question.id,
                UNANSWERABLE if refused else reading.text,
                tuple(kept),
                read.logprob if read else None,
                costs,
                {**explanation(kept, read, strategy.model.calibration), "answerable": answerable},
            )
        )
    return made


def _extra(strategy: ReRag, pool: CandidateSet, readings: rerag_tables.Readings, number: int) -> dict[str, object]:
    """Every candidate with both scores, what was read from it, and the answer under every setting."""
    candidates = []
    for place, passage in enumerate(pool.passages):
        written = pool.matrix.written[pool.places[place]] if pool.matrix and place in pool.places else None
        candidates.append(
            {
                "id": passage.id,
                "title": passage.title,
                "retriever": round(float(pool.retriever_C[place]), 6),
                "relevance": round(float(pool.relevance_C[place]), 6),
                "probability": round(strategy.model.calibration(float(pool.relevance_C[place])), 6),
                "has_answer": bool(pool.holds_C[place]),
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
