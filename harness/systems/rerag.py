"""RE-RAG at inference: retrieve candidates, rerank them by estimated relevance, marginalize the answer over the best.

q -> candidates c -> estimator RE(q, c) -> the best contexts -> generator, one context at a time -> sum over contexts of
P_RE(c | q) P_G(a | q, c) -> the answer, or "unanswerable" (Sections 2.2 and 5.3)
"""

import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from common.errors import UserError
from common.progress import say
from common.ranges import PositiveFloat, PositiveInt, Precision, Share
from common.records import Answer, Asked, Question, Ranked, as_questions
from common.retrieval import search_for
from harness.interfaces import PerContextReader, Reader, RelevanceModel, Retriever
from harness.readers.read_answers import costs_so_far, spent_since, sum_costs
from harness.readers.t5 import check_one_context, explanation, generator_reader, read_contexts
from harness.retrievers.question_passages import given_ranking
from harness.retrievers.rerank import rerank
from harness.retrievers.rerank_prior import RerankPrior
from harness.retrievers.retriever_tree import note_unknown_words
from harness.runtime.failures import each_apart
from harness.runtime.loading import load
from harness.runtime.stages import stage_ended
from models.token_count import tokens_read

if TYPE_CHECKING:
    from models.calibration import Calibration
    from models.rerag.marginal_reader import MarginalReading

UNANSWERABLE = "unanswerable"


class ReRag:
    """Retrieves candidates, reranks them by relevance and answers from the best.

    Without a generator only the evidence is returned (a reranker); without an estimator contexts stay in the
    retriever's order with weights softmax(score / temperature), which is plain RAG (Eq. 1-2), or with equal weights for
    a generator that was trained with them.

    The evidence is the selected contexts, best first, with the logits of their weights: relevance logits, or retriever
    scores / temperature without an estimator.
    Notes: `contexts` and `candidates` as in `harness.readers.t5.explanation`; `answerable`: whether a context reaches
    `threshold`; None without a threshold or an estimator.

    A reader, such as a language model, can take the generator's place (Section 5.4).

    Args:
        retriever: Retrieves the candidates; None: all passages that each question ships.
        serving: Folder that training exported, e.g. checkpoints/rerag-nq/serving.
        candidates: Passages retrieved and scored per question.
        contexts: Number of the most relevant candidates that are read.
        marginal: `thorough` scores every candidate answer under every context; `fast` sums the relevance of the
            contexts that generate the same answer.
        abstain: Answer "unanswerable", without reading, if no context reaches the threshold.
        threshold: Calibrated P(relevant) that a context must reach; the exported one when None. That one was chosen for
            a number of contexts (`refusal_contexts` in training); with another number, `abstain` says so in one line.
        temperature: Divides the retriever's scores; used only without an estimator. None: the weights that the
            generator was trained with; temperature 1 where its folder does not record them.
        device: Device of both models: auto, cpu or cuda.
        model: A loaded model, instead of `serving`.
        precision: Of both models: auto (bf16 where the device has it in hardware), fp32 or bf16.
        prior: File that `infer.py tune --tuning.fits prior` fitted: the retriever's order counts
            beside the relevance logits, and the file's calibration takes the place of the exported one.
        reader: Reads the contexts instead of the generator, which is then not loaded, and has its own `marginal`: such
            as harness.readers.llm.LlmReader.

    Raises:
        UserError: If not one of `serving` and `model` is given, there are fewer candidates than contexts, the reader
            reads all at once, or `abstain` lacks an estimator or a threshold.
        MissingInputError: If the serving folder or the file of the prior is missing.
        ArtifactError: If one is corrupt, or the folder is of another kind or text format.
    """

    study = "harness.evaluation.rerag.study:Study"  # names, because imports run from evaluations to systems
    tuning = "harness.tuning.rerag:Tuning"

    def __init__(
        self,
        retriever: Retriever | None = None,
        serving: Path | None = None,
        candidates: PositiveInt = 100,
        contexts: PositiveInt = 25,
        marginal: Literal["thorough", "fast"] = "thorough",
        abstain: bool = False,
        threshold: Share | None = None,
        temperature: PositiveFloat | None = None,
        device: str = "auto",
        model: RelevanceModel | None = None,
        precision: Precision = "auto",
        reader: Reader | None = None,
        prior: Path | None = None,
    ) -> None:
        if retriever is not None and candidates < contexts:
            raise UserError(f"candidates is {candidates}, fewer than the {contexts} contexts to select from them.")
        if (serving is None) == (model is None):
            raise UserError(
                "Name the trained model's folder with serving (checkpoints/<name>/serving), or give a model."
            )
        if reader is not None and not hasattr(reader, "matrices"):
            raise UserError(
                f"reader is {type(reader).__name__}, which does not read each context alone: give "
                "harness.readers.llm.LlmReader, or omit it for the generator of the serving folder."
            )
        self.retriever, self.serving, self.reader = retriever, serving, reader
        self.candidates, self.contexts, self.marginal = candidates, contexts, marginal
        self.abstain, self.temperature = abstain, temperature
        self.device, self.precision = device, precision
        self._model, self._threshold = model, threshold
        self.prior = RerankPrior.of(prior, serving)
        self.threshold_source = "exported" if threshold is None else "given"

    def load(self) -> None:
        """Load the model, the reader and the retriever."""
        _ = self.model
        load(self.reader, self.retriever)

    @cached_property
    def model(self) -> RelevanceModel:
        """The estimator, the generator, and what was chosen with them."""
        model = self._model
        if model is None:
            from models.rerag.model import GENERATOR, ReRagModel

            assert self.serving is not None
            unneeded = (GENERATOR,) if self.reader is not None else ()
            model = ReRagModel.load(Path(self.serving), self.device, precision=self.precision, unneeded=unneeded)
        if model.generator is not None:
            check_one_context(model.generator)
        if model.estimator is None and (self.abstain or self._threshold is not None):
            raise UserError(
                "abstain and threshold need an estimator, but this model has none: name another serving folder."
            )
        if model.estimator is None and self.prior is not None:
            raise UserError("prior is for an estimator's logits, but this model has none: omit it.")
        if self.abstain and self._threshold is None:
            if model.refusal_threshold is None:
                raise UserError("abstain needs a threshold and none was exported: give one, e.g. threshold 0.5.")
            if model.refusal_contexts not in (None, self.contexts):
                say(
                    f"The exported refusal threshold {model.refusal_threshold:g} was chosen for the best "
                    f"{model.refusal_contexts} contexts of a question, and {self.contexts} are read: set contexts to "
                    f"{model.refusal_contexts}, or give a threshold."
                )
        return model

    @cached_property
    def threshold(self) -> float | None:
        """Calibrated P(relevant) that a context must reach; None if none is known."""
        return self.model.refusal_threshold if self._threshold is None else self._threshold

    @property
    def _own(self) -> tuple[PerContextReader, float] | None:
        return generator_reader(self.model, self.marginal) if self.model.generator is not None else None

    @property
    def context_reader(self) -> PerContextReader | None:
        """The reader of the contexts; None without one."""
        if self.reader is not None:
            assert isinstance(self.reader, PerContextReader)  # checked in __init__
            return self.reader
        return self._own[0] if self._own else None

    @property
    def calibration(self) -> "Calibration":
        """Maps the scores of the evidence to P(relevant)."""
        return self.prior.calibration if self.prior else self.model.calibration

    @property
    def relevance_temperature(self) -> float:
        """Divides the relevance logits as weights of the contexts; fitted for the generator."""
        return self._own[1] if self._own and self.reader is None else 1.0

    @each_apart
    def answer(self, questions: Asked) -> list[Answer]:
        """One answer per question: one batched search, batched scoring, batched reading.

        Args:
            questions: One text, several texts, or `Question` records.
        """
        questions = as_questions(questions)
        if not questions:
            return []
        times, before = [time.perf_counter()], self._spent()
        found = self.find(questions)
        times.append(time.perf_counter())
        ranked = self.rank(questions, found)
        contexts = [hits[: self.contexts] for hits in ranked]
        answerable = [self._answerable(hits) for hits in contexts]
        times.append(time.perf_counter())
        refused = [self.abstain and not can_answer for can_answer in answerable]
        stage_ended(
            "evidence", [Answer(each.id, "", tuple(hits)) for each, hits in zip(questions, contexts, strict=True)]
        )
        readings = self._read(questions, contexts, refused)
        times.append(time.perf_counter())
        seconds = {
            f"seconds/{stage}": (end - start) / len(questions)
            for stage, start, end in zip(("retrieval", "scoring", "reading"), times, times[1:], strict=False)
        }
        spent = spent_since(before, self._spent())
        shared = {**{name: value / len(questions) for name, value in spent.items()}, **seconds}
        answers = [
            self._answer(question, len(candidates), selected, can_answer, skip, reading, shared)
            for question, candidates, selected, can_answer, skip, reading in zip(
                questions, found, contexts, answerable, refused, readings, strict=True
            )
        ]
        note_unknown_words(self, questions, answers)
        return answers

    def _spent(self) -> dict[str, float]:
        """Costs of the models so far that are not counted for each question alone."""
        return sum_costs(
            {"tokens": float(tokens_read(self.model.estimator, self.model.generator))}, costs_so_far(self.reader)
        )

    def find(self, questions: Sequence[Question]) -> list[list[Ranked]]:
        """Every question's candidates in the retriever's order.

        Shipped passages, each once, have the scores that the file gives; all 0 unless every passage of a question has
        one.

        Raises:
            UserError: If retriever scores weight the contexts, as in training, and a question's file does not give
                them.
        """
        if self.retriever is not None:
            return search_for(self.retriever, questions, self.candidates)
        if self.model.estimator is None and self.model.relevance == "retriever":
            for question in questions:
                if question.passages and not question.given_scores:
                    raise UserError(
                        f"question {question.id!r} comes without a score for every passage, but this model weights "
                        "contexts by the retriever's scores: configure --system.init_args.retriever, or write "
                        "scores with `python infer.py score --questions FILE --out FILE`."
                    )
        return [given_ranking(question) for question in questions]

    def rank(self, questions: Sequence[Question], found: Sequence[Sequence[Ranked]]) -> list[list[Ranked]]:
        """The candidates by relevance logit, with the prior if there is one, best first.

        Without an estimator in the retriever's order with its weights.
        """
        if self.model.estimator is None:
            scale = self._retriever_scale()
            return [[Ranked(hit.passage, hit.score * scale) for hit in hits] for hits in found]
        texts = [question.text for question in questions]
        return rerank(self.model.estimator, texts, found, self.prior)

    def _retriever_scale(self) -> float:
        """The factor from the retriever's scores to the logits of the weights; 0 for equal weights."""
        if self.temperature is None and self.model.relevance == "uniform":
            return 0.0
        return 1.0 / (self.temperature or self.model.retriever_temperature or 1.0)

    def _answerable(self, contexts: Sequence[Ranked]) -> bool | None:
        if self.threshold is None or self.model.estimator is None:
            return None
        return any(self.calibration(hit.score) >= self.threshold for hit in contexts)

    def _read(
        self, questions: Sequence[Question], contexts: Sequence[Sequence[Ranked]], refused: Sequence[bool]
    ) -> "list[MarginalReading | None]":
        if self.context_reader is None:
            return [None] * len(questions)
        texts = [question.text for question in questions]
        to_read = [() if skip else hits for hits, skip in zip(contexts, refused, strict=True)]
        return read_contexts(self.context_reader, texts, to_read, self.relevance_temperature)

    def _answer(
        self,
        question: Question,
        candidates: int,
        contexts: Sequence[Ranked],
        answerable: bool | None,
        refused: bool,
        reading: "MarginalReading | None",
        shared: dict[str, float],
    ) -> Answer:
        estimated = self.model.estimator is not None
        return Answer(
            question_id=question.id,
            text=UNANSWERABLE if refused else reading.text if reading else "",
            evidence=tuple(contexts),
            logprob=reading.answer_logprob if reading else None,
            costs={
                "retriever_calls": float(self.retriever is not None),
                "model_calls": float(candidates * estimated + (len(contexts) if reading else 0)),
                **shared,
            },
            notes={
                **explanation(contexts, reading, self.calibration if estimated else None),
                "answerable": answerable,
                "threshold": self.threshold if estimated else None,
            },
        )
