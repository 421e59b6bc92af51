"""RE-RAG at inference: retrieve candidates, rerank them by estimated relevance, marginalize the answer over the best.

q -> candidates c -> estimator RE(q, c) -> the best contexts -> generator, one context at a time -> sum over contexts of
P_RE(c | q) P_G(a | q, c) -> the answer, or "unanswerable" (Sections 2.2 and 5.3)
"""

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from common.errors import UserError
from common.progress import say
from common.ranges import PositiveFloat, PositiveInt, Precision, Share
from common.records import Answer, Asked, Question, Ranked
from common.retrieval import plain_search, search_for
from harness.interfaces import PerContextReader, Reader, RelevanceModel, Retriever
from harness.readers.read_answers import costs_so_far, spent_since, sum_costs
from harness.readers.read_once import ReadContexts, read_once
from harness.readers.t5 import check_one_context, explanation, generator_reader, marginalized, read_contexts
from harness.retrievers.question_passages import cosine_rankings, given_ranking
from harness.retrievers.rerank import relevance
from harness.retrievers.rerank_prior import RerankPrior
from harness.runtime.failures import answer_each
from harness.runtime.loading import load
from harness.runtime.memo import FOR_STUDY, NEEDED, Memo, Needed, Values
from harness.runtime.retriever_tree import check_searched
from harness.runtime.stages import stage_ended
from models.token_count import tokens_read

if TYPE_CHECKING:
    from harness.indexing.sentence_encoder import SentenceEncoder
    from models.calibration import Calibration
    from models.rerag.marginal_reader import MarginalReading

UNANSWERABLE = "unanswerable"
STAGES = ("retrieval", "scoring", "reading")
Ranker = Literal["retriever", "estimator"]
Source = Literal["given", "cosine", "retriever"]  # where a question's retriever scores come from


@dataclass(slots=True)
class RankedCandidates:
    """A question's candidates in the retriever's order, and what a system makes of them."""

    question: Question
    source: Source  # of the retriever's scores
    found: list[Ranked]  # with the retriever's scores
    logits: Sequence[float]  # of the estimator, with the prior; none where nothing needs them
    order: list[int]  # places, best first
    contexts: list[Ranked]  # the selected ones, with the logits of their weights
    answerable: bool | None
    refused: bool
    places: Sequence[int] = ()  # of the contexts in `read`
    read: ReadContexts | None = None  # under a memo
    reading: "MarginalReading | None" = None


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
        temperature: Divides the retriever's scores; used where these are the weights. None: the weights that the
            generator was trained with; temperature 1 where its folder does not record them.
        device: Device of both models: auto, cpu or cuda.
        model: A loaded model, instead of `serving`.
        precision: Of both models: auto (bf16 where the device has it in hardware), fp32 or bf16.
        prior: File that `infer.py tune --tuning.fits prior` fitted: the retriever's order counts
            beside the relevance logits, and the file's calibration takes the place of the exported one.
        reader: Reads the contexts instead of the generator, which is then not loaded, and has its own `marginal`: such
            as harness.readers.llm.LlmReader.
        order: Which ranker's first candidates are the contexts; without an estimator the retriever's (Table 7).
        weights: Which ranker's scores weigh them; without an estimator the retriever's.

    Raises:
        UserError: If not one of `serving` and `model` is given, there are fewer candidates than contexts, the reader
            reads all at once, or `abstain` lacks an estimator, its weights or a threshold.
        MissingInputError: If the serving folder or the file of the prior is missing.
        ArtifactError: If one is corrupt, or the folder is of another kind or text format.
    """

    study = "harness.evaluation.rerag.study:Study"  # names, because imports run from evaluations to systems
    tuning = "harness.tuning.rerag:Tuning"
    memo: Memo | None = None  # of an evaluation
    encoder: "Callable[[], SentenceEncoder] | None" = None  # see `with_settings`, as for the next two
    temperature_of: Callable[[Source], float] | None = None
    notes_candidates = False

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
        order: Ranker = "estimator",
        weights: Ranker = "estimator",
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
        if weights == "retriever" and abstain:
            raise UserError("abstain needs the estimator's weights: omit weights retriever.")
        self.retriever, self.serving, self.reader = retriever, serving, reader
        self.order, self.weights = order, weights
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
    def context_reader(self) -> PerContextReader | None:
        """The reader of the contexts; None without one."""
        if self.reader is not None:
            assert isinstance(self.reader, PerContextReader)  # checked in __init__
            return self.reader
        if self.model.generator is None:
            return None  # under a memo every answer is scored under every context: `fast` needs no more
        return generator_reader(self.model, "thorough" if self.memo else self.marginal)[0]

    @property
    def calibration(self) -> "Calibration":
        """Maps the scores of the evidence to P(relevant)."""
        return self.prior.calibration if self.prior else self.model.calibration

    @property
    def rankers(self) -> tuple[Ranker, Ranker]:
        """Which one orders the candidates, and which one weighs the contexts."""
        return (self.order, self.weights) if self.model.estimator is not None else ("retriever", "retriever")

    @property
    def relevance_temperature(self) -> float:
        """Divides the logits as weights of the contexts; fitted for the generator's `thorough`."""
        fitted = self.rankers[1] == "estimator" and self.marginal == "thorough" and self.reader is None
        return self.model.relevance_temperature if fitted else 1.0

    def with_settings(self, **settings: Any) -> Self:
        """This system with other values of its attributes, for a row of an evaluation; its parts are the same objects.

        Besides the constructor's: `encoder`, whose cosine scores the shipped passages of a question without given
        scores; `temperature_of`, which divides the retriever's scores of a source; `notes_candidates`, whether answers
        have a note with `RankedCandidates` for the study.
        """
        other = copy(self)
        vars(other).update(settings)
        return other

    def answer(self, questions: Asked) -> list[Answer]:
        """One answer per question: one batched search, batched scoring, batched reading.

        Args:
            questions: One text, several texts, or `Question` records.
        """
        return answer_each(self, self._answers, questions)

    def _answers(self, questions: Sequence[Question]) -> list[Answer]:
        times, before = [time.perf_counter()], self._spent()
        found = self.find(questions)
        times.append(time.perf_counter())
        logits = self.relevance(questions, found)
        items = [self._selected(*each) for each in zip(questions, found, logits, strict=True)]
        times.append(time.perf_counter())
        stage_ended("evidence", [Answer(each.question.id, "", tuple(each.contexts)) for each in items])
        self._read([each for each in items if each.contexts and not each.refused])
        times.append(time.perf_counter())
        stages = zip(STAGES, times, times[1:], strict=False)
        spent = spent_since(before, self._spent()) | {f"seconds/{stage}": end - start for stage, start, end in stages}
        shared = {name: value / len(questions) for name, value in spent.items()}
        answers = [self._answer(each, {} if self.memo else shared) for each in items]
        if self.memo is not None:
            answers = [self._needing(*pair, self.memo) for pair in zip(items, answers, strict=True)]
        return answers

    def _spent(self) -> dict[str, float]:
        """Costs of the models so far that are not counted for each question alone."""
        return sum_costs({"tokens": float(tokens_read(self.model.estimator))}, costs_so_far(self.context_reader))

    def find(self, questions: Sequence[Question]) -> list[list[Ranked]]:
        """Every question's candidates in the retriever's order.

        Shipped passages, each once, have the scores that the file gives; all 0 unless every passage of a question has
        one.

        Raises:
            UserError: If retriever scores weight the contexts, as in training, and a question's file does not give
                them.
            SearchFailedError: If the search of one question failed.
        """
        if self.retriever is not None:
            search = self.memo.searches("retrieval") if self.memo else plain_search
            found = search_for(self.retriever, questions, self.candidates, search=search)
            check_searched(self.retriever, [question.text for question in questions], found)
            return found
        if self.model.estimator is None and self.model.relevance == "retriever":
            for question in questions:
                if question.passages and not question.given_scores:
                    raise UserError(
                        f"question {question.id!r} comes without a score for every passage, but this model weights "
                        "contexts by the retriever's scores: configure --system.init_args.retriever, or write "
                        "scores with `python infer.py score --questions FILE --out FILE`."
                    )
        unscored = [question for question in questions if not question.given_scores]
        if self.encoder is None or self.memo is None or not unscored:
            return [given_ranking(question) for question in questions]
        by_cosine = iter(cosine_rankings(unscored, self.encoder(), self.memo))
        return [given_ranking(each) if each.given_scores else next(by_cosine) for each in questions]

    def source(self, question: Question) -> Source:
        """Where the retriever's scores of a question come from."""
        return "retriever" if self.retriever is not None else "given" if question.given_scores else "cosine"

    def relevance(self, questions: Sequence[Question], found: Sequence[Sequence[Ranked]]) -> list[list[float]]:
        """The candidates' relevance logits, with the prior if there is one; none where nothing needs them."""
        if self.model.estimator is None or ("estimator" not in self.rankers and self.memo is None):
            return [[] for _ in questions]
        passages = [[hit.passage for hit in hits] for hits in found]
        score = self.memo.relevance if self.memo else relevance
        logits = score(self.model.estimator, [question.text for question in questions], passages)
        return [
            self.prior(own, [hit.score for hit in hits]) if self.prior and self.source(question) != "cosine" else own
            for question, hits, own in zip(questions, found, logits, strict=True)
        ]

    def _selected(self, question: Question, found: list[Ranked], logits: Sequence[float]) -> RankedCandidates:
        (by, weights), source = self.rankers, self.source(question)
        order = best_first(logits) if by == "estimator" else [*range(len(found))]
        scores = logits
        if weights == "retriever":
            scale = self._retriever_scale(source)
            scores = [hit.score * scale for hit in found]
        contexts = [Ranked(found[place].passage, scores[place]) for place in order[: self.contexts]]
        answerable = None
        if self.threshold is not None and weights == "estimator":
            answerable = any(self.calibration(hit.score) >= self.threshold for hit in contexts)
        refused = self.abstain and not answerable
        return RankedCandidates(question, source, found, logits, order, contexts, answerable, refused)

    def _retriever_scale(self, source: Source) -> float:
        """The factor from the retriever's scores to the logits of the weights; 0 for equal weights."""
        if self.temperature_of is not None:
            return 1.0 / self.temperature_of(source)
        if self.temperature is None and self.model.relevance == "uniform":
            return 0.0
        return 1.0 / (self.temperature or self.model.retriever_temperature or 1.0)

    def _read(self, items: Sequence[RankedCandidates]) -> None:
        """Read the contexts; under a memo with those of the estimator's order, so that the rows share one reading."""
        reader, temperature = self.context_reader, self.relevance_temperature
        if reader is None:
            return
        if self.memo is None:
            texts = [each.question.text for each in items]
            readings = read_contexts(reader, texts, [each.contexts for each in items], temperature)
            for each, reading in zip(items, readings, strict=True):
                each.reading = reading
            return
        count, fast = self.contexts, self.marginal == "fast" and self.reader is None
        for each in items:
            each.places = sorted({*each.order[:count], *best_first(each.logits)[:count]})
        passages = [[each.found[place].passage for place in each.places] for each in items]
        known = read_once(self.matrices(self.memo), reader, [each.question for each in items], passages)
        for each, read in zip(items, known, strict=True):
            matrix = read.matrix.subset([each.places.index(place) for place in each.order[:count]])
            matrix = replace(matrix, answer_logp_AN=None) if fast else matrix
            each.read, each.reading = read, marginalized(matrix, each.contexts, temperature)

    def matrices(self, memo: Memo) -> Values:
        """What the contexts of questions are read as."""
        return memo.of("matrices", self.reader or self.model.generator)

    def searched(self, memo: Memo, source: Source) -> Needed:
        """What it takes to find and score the candidates of a question."""
        if self.retriever is not None:
            return memo.searched("retrieval", self.retriever, 1, self.candidates)
        encoder = self.encoder() if self.encoder is not None and source == "cosine" else None
        return Needed("retrieval", memo.of("cosine", encoder), float(encoder is not None))

    def _needing(self, item: RankedCandidates, answer: Answer, memo: Memo) -> Answer:
        """The answer with notes on what it needs by itself, and on the candidates where the study asks for them."""
        count = len(item.contexts)
        needed = [
            self.searched(memo, item.source),
            Needed("scoring", memo.of("relevance", self.model.estimator), answer.costs["passages_scored"]),
            Needed("reading", self.matrices(memo), count * item.read.share if item.read else 0.0),
        ]
        spent = {name: value * count for name, value in (item.read.spent if item.read else {}).items()}
        costs = {**answer.costs, "tokens": 0.0, **spent}
        noted = {FOR_STUDY: item} if self.notes_candidates else {}
        return replace(answer, costs=costs, notes={**answer.notes, NEEDED: needed, **noted})

    def _answer(self, item: RankedCandidates, shared: dict[str, float]) -> Answer:
        calibration = self.calibration if self.rankers[1] == "estimator" else None
        scored = len(item.found) * ("estimator" in self.rankers)
        read = len(item.contexts) if item.reading else 0
        return Answer(
            question_id=item.question.id,
            text=UNANSWERABLE if item.refused else item.reading.text if item.reading else "",
            evidence=tuple(item.contexts),
            logprob=item.reading.answer_logprob if item.reading else None,
            costs={
                "retriever_calls": float(self.retriever is not None),
                "model_calls": float(scored + read),
                "passages_scored": float(scored),
                "contexts_read": float(read),
                **shared,
            },
            notes={
                **explanation(item.contexts, item.reading, calibration),
                "answerable": item.answerable,
                "threshold": self.threshold if calibration else None,
            },
        )


def best_first(logits: Sequence[float]) -> list[int]:
    """The places of logits, the greatest first; ties keep their order."""
    return sorted(range(len(logits)), key=lambda place: -logits[place])
