"""Readers trained here: a RE-RAG generator, T5 or causal LM, that reads all evidence in one call, or one context each.

The answer to a question without evidence is an empty text without log-probability; `read_closed_book` answers it from
the question alone.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from common.errors import UserError
from common.ranges import Precision
from common.records import Answer, Passage, Question, Ranked, as_questions
from harness.interfaces import PerContextReader, RelevanceModel
from models.token_count import tokens_read

if TYPE_CHECKING:
    from models.calibration import Calibration
    from models.rerag.generator import Generator
    from models.rerag.marginal_reader import AnswerMatrix, MarginalReading
    from models.rerag.model import ReRagModel

_QUESTIONS_AT_ONCE = 256  # tokenized and sorted by length together; bounds the memory


class PackedReader:
    """Reads a question and all its evidence in one call: DR-RAG's Concat(q, Cnt).

    Args:
        serving: Folder with a generator trained with text_format `packed`, e.g. checkpoints/packed-world/serving.
        device: auto, cpu or cuda.
        precision: auto (bf16 where the device has it in hardware), fp32 or bf16.

    Raises:
        UserError: If the generator reads one context per call, or the device is not possible here.
        MissingInputError: If the serving folder is missing.
        ArtifactError: If it is corrupt, of another kind or text format, or has no generator.
    """

    def __init__(self, serving: Path, device: str = "auto", precision: Precision = "auto") -> None:
        self.serving, self.device, self.precision = serving, device, precision

    def load(self) -> None:
        """Load the generator."""
        _ = self.generator

    @cached_property
    def _model(self) -> "ReRagModel":
        from models.rerag.model import GENERATOR, ReRagModel

        return ReRagModel.load(Path(self.serving), self.device, needs=(GENERATOR,), precision=self.precision)

    @cached_property
    def generator(self) -> "Generator":
        """Reads all documents in one call."""
        generator = self._model.generator
        assert generator is not None  # required above
        if not generator.encode.packed:
            raise UserError(
                f"{self.serving} holds a generator that reads one context per call ({generator.encode.format}): use "
                "harness.readers.t5.ContextReader, or a generator that was trained with text_format packed."
            )
        return generator

    def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
        """One answer per question; batched over questions of similar length."""
        rows = [row for row, hits in enumerate(evidence) if hits]
        answers = [
            Answer(question.id, "", tuple(hits), costs={"model_calls": 0.0, "tokens": 0.0})
            for question, hits in zip(questions, evidence, strict=True)
        ]
        for start in range(0, len(rows), _QUESTIONS_AT_ONCE):
            chunk = rows[start : start + _QUESTIONS_AT_ONCE]
            inputs = [(questions[row].text, [hit.passage for hit in evidence[row]]) for row in chunk]
            tokens = tokens_read(self.generator)
            generated = self.generator.answers(inputs, self._model.max_answer_tokens)
            costs = {"model_calls": 1.0, "tokens": (tokens_read(self.generator) - tokens) / len(chunk)}
            for row, (text, logprob) in zip(chunk, generated, strict=True):
                answers[row] = Answer(questions[row].id, text, tuple(evidence[row]), logprob, dict(costs))
        return answers

    def read_closed_book(self, questions: Sequence[Question]) -> list[Answer]:
        """One answer per question from its text alone; see `recall_answers`."""
        return recall_answers(self.generator, questions, self._model.max_answer_tokens)


class ContextReader:
    """Reads one context per call and marginalizes over contexts, weighted by estimated relevance (RE-RAG, Eq. 5-6).

    The notes of an answer hold each context's relevance, its share of the answer's probability, and the answer
    generated from it alone; see `explanation`.

    Args:
        serving: Folder with an estimator and a generator, e.g. checkpoints/rerag-nq/serving.
        marginal: `thorough` scores every candidate answer under every context; `fast` sums the relevance of the
            contexts that generate the same answer.
        device: auto, cpu or cuda.
        precision: auto (bf16 where the device has it in hardware), fp32 or bf16.

    Raises:
        UserError: If the generator reads all documents in one call, or the device is not possible here.
        MissingInputError: If the serving folder is missing.
        ArtifactError: If it is corrupt, of another kind or text format, or lacks the estimator or the generator.
    """

    def __init__(
        self,
        serving: Path,
        marginal: Literal["thorough", "fast"] = "thorough",
        device: str = "auto",
        precision: Precision = "auto",
    ) -> None:
        self.serving, self.marginal, self.device, self.precision = serving, marginal, device, precision

    def load(self) -> None:
        """Load the estimator and the generator."""
        _ = self.model

    @cached_property
    def model(self) -> "ReRagModel":
        """With an estimator and a generator that reads one context per call."""
        from models.rerag.model import ESTIMATOR, GENERATOR, ReRagModel

        needs = (ESTIMATOR, GENERATOR)
        model = ReRagModel.load(Path(self.serving), self.device, needs=needs, precision=self.precision)
        assert model.generator is not None  # required above
        check_one_context(model.generator)
        return model

    def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
        """One answer per question; the evidence is reranked by the estimator, its scores are ignored."""
        from harness.retrievers.rerank import rerank

        assert self.model.estimator is not None  # required where it is loaded
        texts = [question.text for question in questions]
        tokens = tokens_read(self.model.estimator, self.model.generator)
        ranked = rerank(self.model.estimator, texts, evidence)
        reader, temperature = generator_reader(self.model, self.marginal)
        readings = read_contexts(reader, texts, ranked, temperature)
        tokens = tokens_read(self.model.estimator, self.model.generator) - tokens
        return [
            Answer(
                question.id,
                reading.text if reading else "",
                tuple(hits),
                reading.logprob if reading else None,
                {  # each context is scored, then read
                    "model_calls": 2.0 * len(hits),
                    "tokens": tokens / len(questions),
                },
                explanation(hits, reading, self.model.calibration),
            )
            for question, hits, reading in zip(questions, ranked, readings, strict=True)
        ]

    def read_closed_book(self, questions: Sequence[Question]) -> list[Answer]:
        """One answer per question from its text alone; see `recall_answers`."""
        assert self.model.generator is not None  # required where it is loaded
        return recall_answers(self.model.generator, questions, self.model.max_answer_tokens)


def recall_answers(generator: "Generator", questions: Sequence[Question], max_answer_tokens: int) -> list[Answer]:
    """One answer per question without any passage, which no generator here was trained for.

    It answers from its weights.

    The input is the generator's own text format: `question: Q` in `packed`; in a format of one passage, one whose title
    and text are empty (`question: Q title: context: ` in `fid`).
    """
    questions = as_questions(questions)
    if not questions:
        return []
    empty = () if generator.encode.packed else (Passage.of("", ""),)
    tokens = tokens_read(generator)
    generated = generator.answers([(question.text, empty) for question in questions], max_answer_tokens)
    costs = {"model_calls": 1.0, "tokens": (tokens_read(generator) - tokens) / len(questions)}
    return [
        Answer(question.id, text, (), logprob, dict(costs))
        for question, (text, logprob) in zip(questions, generated, strict=True)
    ]


def read_contexts(
    reader: PerContextReader, questions: Sequence[str], contexts: Sequence[Sequence[Ranked]], temperature: float = 1.0
) -> "list[MarginalReading | None]":
    """The marginalized answer to each question from its contexts; None without contexts.

    The contexts' scores, divided by `temperature`, are the logits of their weights: relevance logits, or scaled
    retriever scores for a model without an estimator.
    """
    readings: list[MarginalReading | None] = [None] * len(questions)
    rows = [row for row, hits in enumerate(contexts) if hits]
    for start in range(0, len(rows), _QUESTIONS_AT_ONCE):
        chunk = rows[start : start + _QUESTIONS_AT_ONCE]
        matrices = reader.matrices(
            [questions[row] for row in chunk], [[hit.passage for hit in contexts[row]] for row in chunk]
        )
        for row, matrix in zip(chunk, matrices, strict=True):
            readings[row] = marginalized(matrix, contexts[row], temperature)
    return readings


def marginalized(matrix: "AnswerMatrix", contexts: Sequence[Ranked], temperature: float) -> "MarginalReading":
    """The answer from the matrix of a question's contexts; weights as in `read_contexts`."""
    import torch

    from models.rerag.marginal_reader import weigh

    return weigh(matrix, torch.tensor([hit.score / temperature for hit in contexts], dtype=torch.float32))


def generator_reader(model: RelevanceModel, marginal: Literal["thorough", "fast"]) -> tuple[PerContextReader, float]:
    """The model's generator as a reader of contexts, and the temperature of the relevance logits.

    The model's temperature was fitted for `thorough` and is used only there.
    """
    from models.rerag.marginal_reader import MarginalReader

    assert model.generator is not None
    fitted = marginal == "thorough" and model.estimator is not None
    reader = MarginalReader(model.generator, marginal, model.max_answer_tokens)
    return reader, model.relevance_temperature if fitted else 1.0


def explanation(
    contexts: Sequence[Ranked], reading: "MarginalReading | None", calibration: "Calibration | None"
) -> dict[str, object]:
    """Notes that explain a marginalized answer.

    contexts     per context: id, `probability` that it is relevant (calibrated; None without calibration), `share`: its
                 share of the answer's probability (the shares sum to 1), `alone`: the answer generated from it alone,
                 `error`: why there is none, only where the call failed
    candidates   probability of every distinct candidate answer, best first
    """
    from math import exp

    rows = [
        {
            "id": hit.passage.id,
            "probability": calibration(hit.score) if calibration else None,
            "share": reading.shares[place] if reading else None,
            "alone": reading.written[place] if reading else None,
            **({"error": reading.failed[place]} if reading and reading.failed and reading.failed[place] else {}),
        }
        for place, hit in enumerate(contexts)
    ]
    best_first = sorted(reading.candidates.items(), key=lambda item: -item[1]) if reading else []
    return {"contexts": rows, "candidates": {text: exp(logprob) for text, logprob in best_first}}


def check_one_context(generator: "Generator") -> None:
    """Raise UserError if the generator was trained to read all documents in one call."""
    if generator.encode.packed:
        raise UserError(
            "This generator was trained to read all documents in one call (text_format packed): use "
            "harness.readers.t5.PackedReader, or a generator that reads one context per call."
        )
