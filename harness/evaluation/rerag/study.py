"""RE-RAG's study: recall before and after reranking, ablation, refusal, further tables, plots, questions' contexts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import findable
from common.errors import MissingInputError, UserError
from common.ranges import Precision
from common.records import Question
from harness.evaluation.rerag import tables
from harness.evaluation.rerag.answers import candidates_record, contexts_case
from harness.evaluation.rerag.candidates import CandidateSet
from harness.evaluation.rerag.tables import ABLATION, BASELINE, FULL, PLAIN, Confidence
from harness.evaluation.rerag.temperatures import TEMPERATURES, Fitted, encoder_of, fitted_for, identity
from harness.evaluation.settings import Settings
from harness.evaluation.study import Findings, RowAnswers
from harness.evaluation.tables import ReportTable
from harness.interfaces import System
from harness.runtime.memo import FOR_STUDY
from harness.runtime.provenance import computed_in
from harness.systems.rerag import Ranker, ReRag, Source
from models.rerag.marginal_reader import AnyMarginal
from models.rerag.model import GENERATOR, ReRagModel
from models.serving_manifest import MANIFEST


class Study:
    """Recall before and after reranking, the ablation, EM by number of contexts, and RE-RAG's further tables.

    Detection and refusal of unanswerable questions; all share one scoring and one reading of every passage.

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
        self, temperatures: Path | None = None, encoder: str | None = None, baseline_serving: Path | None = None
    ) -> None:
        self.temperatures, self.encoder, self.baseline_serving = temperatures, encoder, baseline_serving
        self.fitted: dict[Source, Fitted] = {}  # of the scores that were used
        self.baseline: ReRagModel | None = None

    def check(self, system: ReRag) -> None:
        """Check files and folders.  Raises UserError or a subclass."""
        if self.temperatures is not None:
            TEMPERATURES.read(self.temperatures)
        if self.baseline_serving is not None and not (self.baseline_serving / MANIFEST).is_file():
            raise MissingInputError(
                f"study.baseline_serving: {self.baseline_serving} is no serving folder. Give one that training "
                "exported, such as checkpoints/rerag-nq-baseline/serving."
            )

    def rows_of(self, system: ReRag) -> dict[str, System]:
        """The rows of the ablation; without a reader only the retriever's, of which the other tables are made.

        Raises:
            UserError: If an option needs an estimator or a generator that the system lacks.
        """
        model = system.model
        if model.estimator is None and self.temperatures is not None:
            raise UserError("study.temperatures is for RE-RAG with an estimator only: omit it.")
        if self.baseline_serving is not None and (
            model.estimator is None or model.generator is None or system.reader is not None
        ):
            raise UserError("study.baseline_serving is for RE-RAG with an estimator and a generator only: omit it.")
        if model.estimator is None:
            return {FULL: system}
        self.fitted.clear()
        self.encode = cache(partial(encoder_of, system, self.encoder))
        fixed = {"encoder": self.encode, "temperature_of": partial(self._temperature, system), "abstain": False}

        def by(row: str, **more: Any) -> ReRag:
            order, weights = ABLATION[row]
            return system.with_settings(order=order, weights=weights, **fixed, **more)

        rows: dict[str, System] = {PLAIN: by(PLAIN, notes_candidates=True)}
        if system.context_reader is not None:
            rows |= {name: by(name) for name in ABLATION if name not in (PLAIN, FULL)}
        if self.baseline_serving is not None:
            assert model.generator is not None  # checked above
            device = str(model.generator.network.device)
            self.baseline = load_baseline(self.baseline_serving, device, system.precision)
            read_by = replace(self.baseline, estimator=model.estimator)
            rows[BASELINE + PLAIN] = by(PLAIN, notes_candidates=True, model=read_by)
        return {**rows, FULL: system}

    def _temperature(self, system: ReRag, source: Source) -> float:
        if source not in self.fitted:
            self.fitted[source] = Fitted(1.0, 0)
            if self.temperatures is not None:
                scores_of = identity(system, self.encode() if source == "cosine" else None)
                self.fitted[source] = fitted_for(self.temperatures, source, scores_of)
        return self.fitted[source].temperature

    def measure(self, system: ReRag, questions: Sequence[Question], asked: RowAnswers, settings: Settings) -> Findings:
        """All tables, of the questions with gold answers."""
        answers = asked.rows
        if system.model.estimator is None:
            return Findings()
        variants = {name: answers[name] for name in ABLATION if system.context_reader and name != FULL}
        noted: list[list[Any]] = [
            [answer.notes.get(FOR_STUDY) for answer in answers[row]]  # none where it failed
            for row in (PLAIN, BASELINE + PLAIN)
            if row in answers
        ]
        places = [n for n, question in enumerate(questions) if question.answers and all(each[n] for each in noted)]
        left_out = f"study: {len(places):,} of {len(questions):,} questions; the others have nothing that it can score"
        if not places:
            return Findings(variants=variants, facts=[left_out])
        # fitted for the generator's `thorough`, which the tables have also where the system answers by `fast`
        fitted = system.model.relevance_temperature if system.reader is None else 1.0
        temperatures = {source: each.temperature for source, each in self.fitted.items()}
        sets = [CandidateSet.of(noted[0][n], temperatures[noted[0][n].source], fitted) for n in places]
        marginals = _marginals(system)
        readings: tables.Readings = {}
        if system.context_reader is not None:
            readings = tables.read_settings(sets, system.contexts, marginals)
        if self.baseline is not None:
            own = self.baseline.retriever_temperature or 1.0  # it has one: see `load_baseline`
            by_baseline = [CandidateSet.of(noted[1][n], own, fitted) for n in places]
            readings |= tables.read_settings(by_baseline, system.contexts, marginals, BASELINE)
        findings = Findings(_tables(system, sets, readings, marginals, settings), variants)
        set_of = dict(zip(places, enumerate(sets), strict=True))
        of_each = [set_of.get(n) for n in range(len(questions))]
        findings.records = [candidates_record(system, each[1], readings, each[0]) if each else {} for each in of_each]
        findings.cases = [[contexts_case(system, each[1])] if each else () for each in of_each]
        findings.facts = [
            *self._retrieval_facts(system, [each.question for each in sets]),
            *_facts(system, sets),
            *[left_out] * (len(places) < len(questions)),
        ]
        if self.baseline is not None:
            findings.facts.append(
                f"generator without RE: {self.baseline_serving}; temperature of the retriever's scores {own:.4g}, as "
                "in its training: it fits here if one retriever gave the scores of both"
            )
        findings.settings = {
            "serving": str(system.serving) if system.serving else None,
            "computed in": computed_in(system.model.estimator),
            "candidates": system.candidates,
            "contexts": system.contexts,
            "threshold": system.threshold,
            "threshold_source": system.threshold_source,
            "temperatures": temperatures if self.temperatures else {},
            "temperatures file": str(self.temperatures) if self.temperatures else None,
            "relevance_temperature": fitted,
            "baseline": {"serving": str(self.baseline_serving), "temperature": own} if self.baseline else None,
        }
        return findings

    def _retrieval_facts(self, system: ReRag, questions: Sequence[Question]) -> list[str]:
        """Where the scores come from and for how many questions, and their temperatures."""
        counts = Counter(map(system.source, questions))
        names: dict[Source, str] = {"given": "given scores", "retriever": "the system's retriever"}
        if counts["cosine"]:
            names["cosine"] = f"cosine of {self.encode().name} over each question's shipped passages"
        parts = []
        for source, count in counts.items():
            own = self.fitted[source]
            how = f"fitted on {own.questions:,} training questions" if own.questions else "not fitted"
            part = f"{names[source]}: {count:,} of {len(questions):,} questions"
            parts.append(f"{part}; temperature {own.temperature:.4g}, {how}")
        facts = ["retriever's ranking and scores: " + "; ".join(parts)]
        partly = sum(any(s is not None for s in q.scores) and not q.given_scores for q in questions)
        if partly and system.retriever is None:
            facts.append(f"{partly:,} questions have scores for some of their passages only, which are not used")
        return facts


def _tables(
    system: ReRag,
    sets: Sequence[CandidateSet],
    readings: tables.Readings,
    marginals: Sequence[AnyMarginal],
    settings: Settings,
) -> list[ReportTable]:
    """All tables; without a reader those that need none."""
    bootstrap, contexts = settings.bootstrap, system.contexts
    paper, scoring = settings.paper, tables.Scoring(settings.normalization, bootstrap, marginals)
    looked_for_N = np.array([bool(findable(each.question.answers)) for each in sets])
    labelled = [each for each, is_labelled in zip(sets, looked_for_N, strict=True) if is_labelled]
    made = [tables.recall_table(labelled, settings.ks, bootstrap, paper)] if labelled else []
    exact: dict[Ranker, NDArray[np.float64]] = {}
    if readings:
        own = marginals[0] if system.reader is not None else system.marginal
        of_rankers: tuple[tuple[Ranker, str], ...] = ("estimator", FULL), ("retriever", PLAIN)
        exact = {ranker: scoring.exact(sets, readings[row, own]) for ranker, row in of_rankers}
        by_llm = system.reader is not None
        made += [tables.llm_table(sets, scoring, contexts, paper)] if by_llm else []
        made += [
            tables.ablation_table(sets, readings, scoring, contexts, paper, by_llm),
            tables.contexts_table(sets, scoring, contexts),
        ]
    if not labelled:
        return made
    threshold = system.threshold, system.threshold_source
    exact = {ranker: each[looked_for_N] for ranker, each in exact.items()}
    calibrated, plain = tables.calibrated(labelled, system.calibration), tables.retriever_confidence(labelled)
    confident = [
        Confidence.of("estimator", labelled, calibrated, contexts, exact.get("estimator"), *threshold),
        Confidence.of("retriever", labelled, plain, contexts, exact.get("retriever")),
    ]
    return [*made, *tables.refusal_tables(confident, bootstrap, paper)]


def _marginals(system: ReRag) -> tuple[AnyMarginal, ...]:
    """How answers are marginalized in the tables: `fast` needs no more than every other way."""
    if system.reader is None or system.context_reader is None:
        return tables.BY_GENERATOR
    own = system.context_reader.marginal
    return (own,) if own == "fast" else (own, "fast")


def _facts(system: ReRag, sets: Sequence[CandidateSet]) -> list[str]:
    """Candidates, the choice of the refusal threshold where something is refused, precision."""
    facts = [
        f"{np.mean([len(each.passages) for each in sets]):.1f} candidates per question, {system.contexts} contexts per "
        "ranker"
    ]
    if system.abstain and system.threshold is not None:
        facts.append(f"refusal threshold: {system.threshold:g}, {system.threshold_source}")
        if system.threshold_source == "exported" and system.model.refusal_contexts is not None:
            facts[-1] += f", chosen on validation for the best {system.model.refusal_contexts} contexts"
    if unsaid := sum(not findable(each.question.answers) for each in sets):
        facts.append(f"has-answer says nothing about {unsaid:,} questions, whose answer is yes or no")
    if dtype := computed_in(system.model.estimator):
        facts.append(f"matrix products of the models in {dtype}")
    return facts


def load_baseline(serving: Path, device: str, precision: Precision = "auto") -> ReRagModel:
    """The generator of the baseline of Table 7, with the temperature of the weights that it was trained with.

    Raises:
        UserError: If it was trained with other weights, or with an estimator.
        MissingInputError: If the folder is missing.
        ArtifactError: If it is corrupt, of another kind or text format, or has no generator.
    """
    model = ReRagModel.load(serving, device, (GENERATOR,), precision)
    if model.estimator is not None or model.relevance != "retriever" or model.retriever_temperature is None:
        found = "with an estimator" if model.estimator else f"with relevance {model.relevance or 'not recorded'}"
        raise UserError(
            f"study.baseline_serving: {serving} was trained {found}, and Table 7's baseline with relevance "
            "retriever: train it with configs/train/rerag_nq_baseline.yaml, or omit the option."
        )
    return model
