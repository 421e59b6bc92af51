"""Fits what RE-RAG takes from the retriever's scores: their temperature as weights, or a prior of reranking.

RE-RAG's study reads the file of temperatures as `--study.temperatures`, for the rows that weight contexts by the
retriever (Eq. 1); the system reads the file of a prior as `prior`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import findable
from common.errors import UserError
from common.records import Question, Ranked
from harness.evaluation.rerag.candidates import has_answer_labels
from harness.evaluation.rerag.temperatures import TEMPERATURES, Fitted, encoder_of, identity
from harness.evaluation.settings import Settings
from harness.retrievers.question_passages import cosine_rankings, given_ranking
from harness.retrievers.rerank_prior import PRIOR
from harness.systems.rerag import ReRag, Source
from harness.tuning.rerank_prior import Labels, batches_of, fit_prior, score_all
from models.rerag.temperature import fit_temperature


class Tuning:
    """Fits a temperature for each source of scores: those that the file gives, the cosine, or the retriever's.

    Or fits the prior: how much the retriever's order counts beside the estimator's logits.

    Args:
        fits: `temperatures` or `prior`.
        labels: Of the prior: what is relevant, `gold` passages, or passages that have an answer (`has_answer`).
        encoder: As in the study: without a retriever, the sentence encoder that ranks the shipped passages of each
            question whose file does not give a score for every one of them; MiniLM when omitted. Where it is given,
            the cosine's temperature is fitted also if all questions have given scores.
    """

    def __init__(
        self,
        fits: Literal["temperatures", "prior"] = "temperatures",
        labels: Labels = "gold",
        encoder: str | None = None,
    ) -> None:
        self.fits, self.encoder = fits, encoder
        self.labels: Labels = labels
        self.output = (TEMPERATURES if fits == "temperatures" else PRIOR).output

    def check(self, system: ReRag) -> None:
        """Raise UserError if the prior that is fitted is given."""
        if self.fits == "prior" and system.prior is not None:
            raise UserError("prior is what is fitted: omit it.")

    def tune(self, system: ReRag, questions: Sequence[Question], out: Path, settings: Settings) -> list[str]:
        """Fit on the questions with gold answers, for a prior with gold passages, and write the file.

        Raises:
            UserError: If no question tells anything about a temperature or a prior, or there is no estimator for a
                prior.
        """
        if self.fits == "prior":
            return self._tune_prior(system, questions, out, settings)
        asked, memo = [each for each in questions if findable(each.answers)], settings.shared_memo()
        if not asked:
            raise UserError("The temperature needs questions with gold answers other than yes and no: none has one.")
        sources = dict.fromkeys(map(system.source, asked))
        if self.encoder is not None and system.retriever is None:
            sources["cosine"] = None
        fitted: dict[Source, Fitted] = {}
        for source in sources:
            encoder = encoder_of(system, self.encoder) if source == "cosine" else None
            known = [question for question in asked if question.given_scores] if source == "given" else asked
            scores: list[NDArray[np.float64]] = []
            labels: list[NDArray[np.bool_]] = []
            for batch in batches_of(known, f"scores, {source}"):
                if source == "given":
                    found = [given_ranking(question) for question in batch]
                else:
                    found = cosine_rankings(batch, encoder, memo) if encoder else system.find(batch)
                for question, hits in zip(batch, found, strict=True):
                    if hits:
                        scores.append(np.array([hit.score for hit in hits]))
                        labels.append(has_answer_labels(question, [hit.passage for hit in hits]))
            fitted[source] = Fitted(fit_temperature(scores, labels), len(known), identity(system, encoder))
        TEMPERATURES.write(out, {"temperatures": {source: asdict(each) for source, each in fitted.items()}})
        return [
            f"temperature {each.temperature:.4g} of {source} scores, fitted on {each.questions:,} questions"
            for source, each in fitted.items()
        ]

    def _tune_prior(self, system: ReRag, questions: Sequence[Question], out: Path, settings: Settings) -> list[str]:
        estimator = system.model.estimator
        if estimator is None:
            raise UserError("The prior is for an estimator's logits, but this model has none.")
        memo = settings.shared_memo()

        def score(batch: Sequence[Question]) -> Iterator[tuple[list[Ranked], list[float]]]:
            found = system.find(batch)
            passages = [[hit.passage for hit in hits] for hits in found]
            return zip(found, memo.relevance(estimator, [each.text for each in batch], passages), strict=True)

        scored = score_all(questions, score, self.labels)
        facts = {"candidates": system.candidates if system.retriever is not None else None}
        prior, told = fit_prior(questions, scored, system.contexts, system.serving, facts)
        PRIOR.write(out, prior.content)
        return told
