"""RE-RAG at inference: retrieve candidates, rerank them by estimated relevance, marginalize the answer over the best.

q -> candidates c -> estimator RE(q, c) -> the best contexts -> generator, one context at a time -> sum over contexts of
P_RE(c | q) P_G(a | q, c) -> the answer, or "unanswerable" (Sections 2.2 and 5.3)
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from common.checks import Precision, check_above, check_at_least, check_choice, check_share
from common.errors import UserError
from common.progress import say
from common.records import Answer, Asked, Question, Ranked, as_questions
from harness.interfaces import PerContextReader, Reader, RelevanceModel, Retriever
from harness.readers.read_answers import costs_so_far, spent_since, sum_costs
from harness.readers.t5 import MARGINALS, check_one_context, explanation, generator_reader, read_contexts
from harness.retrievers.rerank import rerank
from harness.retrievers.shipped import given_ranking
from models.token_count import tokens_read

if TYPE_CHECKING:
    from models.rerag.marginal_reader import Reading

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
        refuse: Answer "unanswerable", without reading, if no context reaches the threshold.
        threshold: Calibrated P(relevant) that a context must reach; the exported one when None. That one was chosen for
            a number of contexts (`refusal_contexts` in training); with another number, `refuse` says so in one line.
        temperature: Divides the retriever's scores; used only without an estimator. None: the weights that the
            generator was trained with; temperature 1 where its folder does not record them.
        device: Device of both models: auto, cpu or cuda.
        model: A loaded model, instead of `serving`.
        precision: Of both models: auto (bf16 where the device has it in hardware), fp32 or bf16.
        reader: Reads the contexts instead of the generator, which is then not loaded, and has its own `marginal`: such
            as harness.readers.llm.LlmReader.

    Raises:
        UserError: If a value is not allowed, or `refuse` lacks an estimator or a threshold.
        MissingInputError: If the serving folder is missing.
        ArtifactError: If the serving folder is corrupt or of another kind or text format.
    """

    def __init__(
        self,
        retriever: Retriever | None = None,
        serving: Path | None = None,
        candidates: int = 100,
        contexts: int = 25,
        marginal: Literal["thorough", "fast"] = "thorough",
        refuse: bool = False,
        threshold: float | None = None,
        temperature: float | None = None,
        device: str = "auto",
        model: RelevanceModel | None = None,
        precision: Precision = "auto",
        reader: Reader | None = None,
    ) -> None:
        self.check_options(retriever, serving, candidates, contexts, marginal, threshold, temperature, model, reader)
        if model is None:
            from models.rerag.model import GENERATOR, ReRagModel

            assert serving is not None
            unneeded = (GENERATOR,) if reader is not None else ()
            model = ReRagModel.load(Path(serving), device, precision=precision, unneeded=unneeded)
        if model.generator is not None:
            check_one_context(model.generator)
        if model.estimator is None and (refuse or threshold is not None):
            raise UserError(
                "refuse and threshold need an estimator, but this model has none: name another serving folder."
            )
        self.threshold = model.refusal_threshold if threshold is None else threshold
        if refuse and self.threshold is None:
            raise UserError("refuse needs a threshold and none was exported: give one, e.g. threshold 0.5.")
        self.threshold_source = "exported" if threshold is None else "given"
        if refuse and threshold is None and model.refusal_contexts not in (None, contexts):
            say(
                f"The exported refusal threshold {self.threshold:g} was chosen for the best {model.refusal_contexts} "
                f"contexts of a question, and {contexts} are read: set contexts to {model.refusal_contexts}, or give a "
                "threshold."
            )
        self.retriever, self.serving, self.model = retriever, serving, model
        self.candidates, self.contexts, self.marginal = candidates, contexts, marginal
        self.refuse, self.temperature, self.precision = refuse, temperature, precision
        self.reader = reader
        self._own = generator_reader(model, marginal) if model.generator is not None else None

    @property
    def context_reader(self) -> PerContextReader | None:
        """What reads the contexts; None if nothing does."""
        if self.reader is not None:
            assert isinstance(self.reader, PerContextReader)  # checked in check_options
            return self.reader
        return self._own[0] if self._own else None

    @property
    def relevance_temperature(self) -> float:
        """Divides the relevance logits as weights of the contexts; fitted for the generator."""
        return self._own[1] if self._own and self.reader is None else 1.0

    @staticmethod
    def check_options(
        retriever: Retriever | None,
        serving: Path | None,
        candidates: int,
        contexts: int,
        marginal: str,
        threshold: float | None,
        temperature: float | None,
        model: RelevanceModel | None,
        reader: Reader | None,
    ) -> None:
        """Raise UserError if a value is not allowed, not one model is given, or the reader reads all at once."""
        check_at_least(1, candidates=candidates, contexts=contexts)
        if retriever is not None and candidates < contexts:
            raise UserError(f"candidates is {candidates}, fewer than the {contexts} contexts to select from them.")
        check_choice(MARGINALS, marginal=marginal)
        check_share(threshold=threshold)
        check_above(0, temperature=temperature)
        if (serving is None) == (model is None):
            raise UserError(
                "Name the trained model's folder with serving (checkpoints/<name>/serving), or give a model."
            )
        kind = getattr(reader, "class_type", type(reader))
        if reader is not None and not hasattr(kind, "matrices"):
            raise UserError(
                f"reader is {kind.__name__}, which does not read each context alone: give "
                "harness.readers.llm.LlmReader, or omit it for the generator of the serving folder."
            )

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
        refused = [self.refuse and not can_answer for can_answer in answerable]
        readings = self._read(questions, contexts, refused)
        times.append(time.perf_counter())
        seconds = {
            f"seconds/{stage}": (end - start) / len(questions)
            for stage, start, end in zip(("retrieval", "scoring", "reading"), times, times[1:], strict=False)
        }
        spent = spent_since(before, self._spent())
        shared = {**{name: value / len(questions) for name, value in spent.items()}, **seconds}
        return [
            self._answer(question, len(candidates), selected, can_answer, skip, reading, shared)
            for question, candidates, selected, can_answer, skip, reading in zip(
                questions, found, contexts, answerable, refused, readings, strict=True
            )
        ]

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
            return self.retriever.search([question.text for question in questions], self.candidates)
        if self.model.estimator is None and self.model.relevance == "retriever":
            for question in questions:
                if question.passages and not question.given_scores:
                    raise UserError(
                        f"question {question.id!r} comes without a score for every passage, but this model weights "
                        "contexts by the retriever's scores: configure --strategy.init_args.retriever, or write "
                        "scores with `python infer.py score --questions FILE --out FILE`."
                    )
        return [given_ranking(question) for question in questions]

    def rank(self, questions: Sequence[Question], found: Sequence[Sequence[Ranked]]) -> list[list[Ranked]]:
        """The candidates by relevance logit, best first.

        Without an estimator in the retriever's order with its weights.
        """
        if self.model.estimator is None:
            scale = self._retriever_scale()
            return [[Ranked(hit.passage, hit.score * scale) for hit in hits] for hits in found]
        texts = [question.text for question in questions]
        return rerank(self.model.estimator, texts, [[hit.passage for hit in hits] for hits in found])

    def _retriever_scale(self) -> float:
        """What the retriever's scores are multiplied by to give the logits of the weights; 0 for equal weights."""
        if self.temperature is None and self.model.relevance == "uniform":
            return 0.0
        return 1.0 / (self.temperature or self.model.retriever_temperature or 1.0)

    def _answerable(self, contexts: Sequence[Ranked]) -> bool | None:
        if self.threshold is None or self.model.estimator is None:
            return None
        return any(self.model.calibration(hit.score) >= self.threshold for hit in contexts)

    def _read(
        self, questions: Sequence[Question], contexts: Sequence[Sequence[Ranked]], refused: Sequence[bool]
    ) -> "list[Reading | None]":
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
        reading: "Reading | None",
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
                **explanation(contexts, reading, self.model.calibration if estimated else None),
                "answerable": answerable,
                "threshold": self.threshold if estimated else None,
            },
        )
