"""RE-RAG's study: recall before and after reranking, ablation, refusal, further tables, plots, questions' contexts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.errors import MissingInputError, UserError
from common.files import sha256
from common.records import Question
from harness.evaluation import paper_figures
from harness.evaluation.answer_scores import with_answers
from harness.evaluation.rerag import tables as rerag_tables
from harness.evaluation.rerag.answers import candidates_record, contexts_case, setting_answers
from harness.evaluation.rerag.baseline import Baseline
from harness.evaluation.rerag.candidates import CandidateSet, Ranker, collect_candidates
from harness.evaluation.rerag.retrieval import (
    Fitted,
    Source,
    encoder_of,
    identity,
    read_temperatures,
    retrieval_facts,
    source_of,
    temperatures_for,
)
from harness.evaluation.rerag.tables import Confidence, refusal_tables
from harness.evaluation.serialization import digest
from harness.evaluation.study import Asked, Findings, Settings
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.interfaces import PerContextReader
from harness.readers.t5 import generator_reader
from harness.retrievers.question_passages import bm25_of_shipped
from harness.runtime.provenance import computed_in, configuration
from harness.runtime.resumable import ResumableBatches
from harness.systems.rerag import ReRag
from models.rerag.marginal_reader import AnyMarginal
from models.serving_manifest import MANIFEST

_SAME_CONTEXTS = "; no question has more candidates than contexts: both rankers select the same contexts"
_NO_GENERATOR = (
    "not measured without a generator or a reader: answers, ablation, EM by contexts, refusal, risk and coverage"
)


@dataclass(frozen=True, slots=True)
class ReRagResults:
    """The data of the tables."""

    sets: list[CandidateSet]  # one per question
    readings: rerag_tables.Readings  # one entry per question in each; empty without a reader
    marginals: tuple[AnyMarginal, ...]
    own: AnyMarginal  # the system's
    seconds: dict[str, float]  # by stage, all questions together
    encoder: SentenceEncoder | None
    fitted: dict[Source, Fitted]
    temperature: float  # of the estimator's weights
    baseline: Baseline | None


class Study:
    """Recall before and after reranking, the ablation, EM by number of contexts, and RE-RAG's further tables.

    Detection of unanswerable questions, and risk-coverage curves; all share one scoring and one reading of every
    passage.

    A system without an estimator has nothing to study: its answers alone are measured.

    Args:
        temperatures: File of the temperatures of the retriever's scores, which `infer.py tune` fits on training
            questions; temperature 1 when omitted.
        encoder: Without a retriever: the sentence encoder that ranks the shipped passages of each question whose file
            does not give a score for every one of them; MiniLM when omitted.
        baseline_serving: Serving folder of a generator trained without the estimator and with relevance retriever,
            which adds the first four rows of the paper's Table 7.
    """

    def __init__(
        self,
        temperatures: Path | None = None,
        encoder: str | None = None,
        baseline_serving: Path | None = None,
    ) -> None:
        self.temperatures, self.encoder, self.baseline_serving = temperatures, encoder, baseline_serving

    def check(self, system: ReRag, out: Path, layout: str) -> None:
        """Check files and folders.  Raises UserError or a subclass."""
        if self.temperatures is not None:
            read_temperatures(self.temperatures)
        if self.baseline_serving is not None and not (self.baseline_serving / MANIFEST).is_file():
            raise MissingInputError(
                f"study.baseline_serving: {self.baseline_serving} is no serving folder. Give one that training "
                "exported, such as checkpoints/rerag-nq-baseline/serving."
            )

    def scorable(self, system: ReRag, questions: Sequence[Question]) -> list[int]:
        """The places of the questions with gold answers; none without an estimator.

        Raises:
            UserError: If an option needs an estimator or a generator that the system lacks, or no question has a gold
                answer.
        """
        model = system.model
        if model.estimator is None and self.temperatures is not None:
            raise UserError("study.temperatures is for RE-RAG with an estimator only: omit it.")
        if self.baseline_serving is not None and (
            model.estimator is None or model.generator is None or system.reader is not None
        ):
            raise UserError("study.baseline_serving is for RE-RAG with an estimator and a generator only: omit it.")
        if model.estimator is None:
            return []
        with_answers(questions)
        return [place for place, question in enumerate(questions) if question.answers]

    def ask(self, system: ReRag, questions: Sequence[Question], settings: Settings) -> Asked:
        """Score every candidate and read every context once."""
        model, baseline = system.model, None
        if self.baseline_serving is not None:
            assert model.generator is not None  # checked in `scorable`
            baseline = Baseline.load(self.baseline_serving, str(model.generator.network.device), system.precision)
        found, seconds_before = self._candidates(system, questions, settings, baseline)
        calibrated = rerag_tables.calibrated(found.sets, system.calibration)
        confident = Confidence.of("RE", "estimator", found.sets, calibrated, system.contexts, None)
        answers = {
            name: setting_answers(
                system, found.sets, name, found.readings.get((name, found.own)), confident, found.seconds
            )
            for name in (rerag_tables.ABLATION if found.readings else (rerag_tables.FULL,))
        }
        return Asked(answers.pop(rerag_tables.FULL), answers, seconds_before, found)

    def _candidates(
        self, system: ReRag, questions: Sequence[Question], settings: Settings, baseline: Baseline | None
    ) -> tuple[ReRagResults, float]:
        """The candidates of every question, scored and read; and the seconds of results that were reused."""
        encoder = None
        sources = dict.fromkeys(source_of(question, system.retriever) for question in questions)
        if "cosine" in sources:
            encoder = encoder_of(system, self.encoder)
        of_questions, of_baseline = _saved_batches(system, questions, encoder, settings.partial, baseline)
        # fitted for the generator's `thorough`, which the tables have also where the system answers by `fast`
        temperature = system.model.relevance_temperature if system.reader is None else 1.0
        fitted: dict[Source, Fitted] = {}
        if self.temperatures is not None:
            wanted = {source: identity(source, system, encoder) for source in sources}
            fitted = temperatures_for(self.temperatures, wanted)
        sets, seconds = collect_candidates(
            questions, system.model, _reader(system), system.retriever, encoder, system.candidates,
            system.contexts, {source: each.temperature for source, each in fitted.items()}, of_questions, temperature,
            system.prior,
        )  # fmt: skip
        marginals = _marginals(system)
        readings: rerag_tables.Readings = {}
        if system.context_reader is not None:
            readings = rerag_tables.read_settings(sets, system.contexts, marginals)
        if baseline is not None:
            by_baseline = baseline.read(sets, of_baseline)
            readings |= rerag_tables.read_settings(by_baseline, system.contexts, marginals, rerag_tables.BASELINE)
        own: AnyMarginal = marginals[0] if system.reader is not None else system.marginal
        found = ReRagResults(sets, readings, marginals, own, seconds, encoder, fitted, temperature, baseline)
        return found, of_questions.seconds + of_baseline.seconds

    def measure(self, system: ReRag, questions: Sequence[Question], asked: Asked, settings: Settings) -> Findings:
        """All tables and curves."""
        if not questions:  # without an estimator
            return Findings()
        found: ReRagResults = asked.found
        findings = _findings(system, found, settings)
        findings.cases = [[contexts_case(system, each)] for each in found.sets]
        findings.records = [
            candidates_record(system, each, found.readings, number) for number, each in enumerate(found.sets)
        ]
        findings.settings["temperatures file"] = str(self.temperatures) if self.temperatures else None
        return findings


def _findings(system: ReRag, found: ReRagResults, settings: Settings) -> Findings:
    """All tables, plots and facts.

    Args:
        system: With an estimator; without a generator, the tables that need one are omitted.
        found: Of questions with answers.
        settings: Of the evaluation.
    """
    bootstrap, candidate_sets, readings, own = settings.bootstrap, found.sets, found.readings, found.own
    paper = settings.paper if settings.paper in paper_figures.RE_RAG else None
    questions = [each.question for each in candidate_sets]
    scoring = rerag_tables.Scoring(settings.normalization, bootstrap, found.marginals)
    others: dict[str, rerag_tables.Orders] = {}
    if system.retriever is None:
        lexical = bm25_of_shipped(questions)
        others["BM25"] = [
            sorted(range(len(each.passages)), key=lambda i: -scores[each.passages[i].id])
            for each, scores in zip(candidate_sets, lexical, strict=True)
        ]
    report = Findings(tables=[rerag_tables.recall_table(candidate_sets, settings.ks, bootstrap, paper, others)])
    confidences: dict[str, tuple[Ranker, list[NDArray[np.float64]]]] = {
        rerag_tables.RANKERS["estimator"]: (
            "estimator", rerag_tables.calibrated(candidate_sets, system.calibration)
        ),
        rerag_tables.RANKERS["retriever"]: ("retriever", rerag_tables.retriever_confidence(candidate_sets)),
    }  # fmt: skip
    exact: dict[Ranker, NDArray[np.float64]] = {}
    if readings:
        exact = {
            "estimator": scoring.exact(candidate_sets, readings[rerag_tables.FULL, own]),
            "retriever": scoring.exact(candidate_sets, readings["Baseline", own]),
        }
        by_contexts = rerag_tables.contexts_table(candidate_sets, scoring, system.contexts)
        ablation = rerag_tables.ablation_table(
            candidate_sets, readings, scoring, system.contexts, paper, by_llm=system.reader is not None
        )
        if system.reader is not None:
            report.tables.append(rerag_tables.llm_table(candidate_sets, scoring, system.contexts, paper))
        report.tables += [ablation, by_contexts]
    systems = [
        Confidence.of(
            name, ranker, candidate_sets, confidence, system.contexts, exact.get(ranker),
            system.threshold if name == rerag_tables.RANKERS["estimator"] else None, system.threshold_source,
        )
        for name, (ranker, confidence) in confidences.items()
    ]  # fmt: skip
    report.tables += refusal_tables(systems, bootstrap, paper)
    report.facts = [
        *retrieval_facts(questions, system.retriever, found.encoder, found.fitted),
        *[f"temperature of the estimator's weights for thorough: {found.temperature:g}"] * (system.reader is None),
        f"{np.mean([len(each.passages) for each in candidate_sets]):.1f} candidates per question, {system.contexts} "
        "contexts per ranker" + _SAME_CONTEXTS * all(len(each.passages) <= system.contexts for each in candidate_sets),
        *_threshold_facts(system),
        *[f"matrix products of the models in {computed_in(system.model.estimator)}"]
        * (computed_in(system.model.estimator) is not None),
        *[_NO_GENERATOR] * (system.context_reader is None),
        "seconds: " + ", ".join(f"{stage} {value:.1f}" for stage, value in found.seconds.items()),
    ]
    if (baseline := found.baseline) is not None:
        report.facts.append(
            f"generator without RE: {baseline.serving}; temperature of the retriever's scores "
            f"{baseline.temperature:.4g}, as in its training: it fits here if one retriever gave the scores of both"
        )
    report.settings = {
        "serving": str(system.serving) if system.serving else None,
        "computed in": computed_in(system.model.estimator),
        "candidates": system.candidates,
        "contexts": system.contexts,
        "marginal": own,
        "threshold": system.threshold,
        "threshold_source": system.threshold_source,
        "abstain": system.abstain,
        "temperature": next((each.temperature for each in found.fitted.values()), 1.0),
        "temperatures": {source: each.temperature for source, each in found.fitted.items()},
        "relevance_temperature": found.temperature,
        "baseline": {"serving": str(baseline.serving), "temperature": baseline.temperature} if baseline else None,
        "seconds": found.seconds,
    }
    return report


def _reader(system: ReRag) -> PerContextReader | None:
    """The reader of the contexts; the generator scores every answer under every context, for both marginals."""
    if system.reader is None and system.model.generator is not None:
        return generator_reader(system.model, "thorough")[0]
    return system.context_reader


def _marginals(system: ReRag) -> tuple[AnyMarginal, ...]:
    """How answers are marginalized in the tables: `fast` needs no more than every other way."""
    if system.reader is None or system.context_reader is None:
        return rerag_tables.BY_GENERATOR
    own = system.context_reader.marginal
    return (own,) if own == "fast" else (own, "fast")


def _threshold_facts(system: ReRag) -> list[str]:
    """How the refusal threshold was chosen; nothing without one."""
    if system.threshold is None:
        return []
    fact = f"refusal threshold: {system.threshold:g}, {system.threshold_source}"
    if system.threshold_source == "exported" and system.model.refusal_contexts is not None:
        cost = system.model.refusal_cost
        chosen = "best F1"
        if cost is not None:
            chosen = f"lowest cost, where a wrong refusal counts as {cost:g} answered unanswerable questions"
        fact += f": {chosen} on validation, for the best {system.model.refusal_contexts} contexts"
    return [fact]


def _saved_batches(
    system: ReRag,
    questions: Sequence[Question],
    encoder: SentenceEncoder | None,
    folder: Path | None,
    baseline: Baseline | None,
) -> tuple[ResumableBatches, ResumableBatches]:
    """Resumable batches for questions, and for the baseline.

    Nothing is saved if the system's parts are unknown.
    """
    retriever = configuration(system.retriever) if system.retriever is not None else {}
    reader = configuration(system.reader) if system.reader is not None else {}
    if folder is None or retriever is None or system.serving is None or reader is None:
        return ResumableBatches(), ResumableBatches()
    assert system.model.estimator is not None
    estimator = system.model.estimator
    device = f"{estimator.network.device.type}, {estimator.inference_dtype}"
    candidates = system.candidates
    source = {"retriever": retriever, "encoder": encoder and encoder.recipe, "candidates": candidates, "device": device}
    model = {"serving folder": sha256(Path(system.serving) / MANIFEST), "contexts": system.contexts}
    model |= {"prior": system.prior.weight} if system.prior else {}
    model |= {"reader": reader, "recipe": getattr(system.reader, "recipe", None)} if reader else {}
    of_questions = {"questions": digest(questions), **source, **model}
    of_baseline = {**of_questions, "baseline": baseline.digest if baseline else None}
    return (
        ResumableBatches(folder / "answers-pools.jsonl", of_questions),
        ResumableBatches(folder / "answers-baseline.jsonl", of_baseline),
    )
