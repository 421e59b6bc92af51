"""Learned selection: the answer that a logistic model, fitted on validation questions, finds most probably right."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.context_sources import SelectedSource
from common.errors import ArtifactError, UserError
from common.records import Answer, Question
from harness.answer_selection.answer_encoder import AnswerEncoder
from harness.answer_selection.answer_texts import greatest
from harness.answer_selection.estimator import ContextProbability
from harness.answer_selection.features import FEATURES, answer_features
from harness.runtime.loading import load
from models.msrag.answer_model import ANSWER_MODEL, AnswerModel

FOLDS = 5


class LearnedSelector:
    """Chooses the answer with the greatest P(right); ties by the order of the sources.

    The model was fitted by `infer.py tune` on validation questions. Its features
    (`harness.answer_selection.features`) are agreement, relevance, the reader's log-probabilities, lengths, refusals
    and the source; none reads a gold answer.

    Args:
        file: The fitted model, such as checkpoints/msrag-world/selector.json.
        encoder: Folder or hub id of the encoder of answers; that of the model when omitted, and no other one.
        serving: Folder with the relevance estimator that it was fitted with; None: the probabilities that the reader
            has noted.
        device: auto, cpu or cuda.

    Raises:
        MissingInputError: If the file, the encoder or the serving folder is missing.
        ArtifactError: If one is corrupt, or the encoder is another one than that of the model.
    """

    name = "learned"
    uses_gold = False

    def __init__(
        self, file: Path, encoder: str | None = None, serving: Path | None = None, device: str = "auto"
    ) -> None:
        self.file, self._encoder, self.device = Path(file), encoder, device
        self.probability = ContextProbability(serving, device, "fp32")

    def load(self) -> None:
        """Load the fitted model, the encoder and the estimator."""
        _ = self.encoder
        load(self.probability)

    @cached_property
    def model(self) -> AnswerModel:
        """The fitted model."""
        model = ANSWER_MODEL.read(self.file)
        if model.features != FEATURES:
            raise ArtifactError(
                f"{self.file} was fitted on other features by another release: fit it again by infer.py tune."
            )
        return model

    @cached_property
    def encoder(self) -> AnswerEncoder:
        """The encoder of answers that the model was fitted with."""
        found = AnswerEncoder(self._encoder or self.model.encoder, self.device)
        if found.recipe != self.model.encoder_sha256:
            raise ArtifactError(
                f"{self.file} was fitted with the encoder {self.model.encoder}, and {found.name} is another one or has "
                "other files: omit encoder, or fit the selector again by infer.py tune."
            )
        return found

    @property
    def facts(self) -> list[str]:
        """The questions that it was fitted on, for reports."""
        fitted = ", ".join(f"{name} {value}" for name, value in self.model.fitted.items())
        return [f"selection: learned, fitted on {fitted or 'unknown questions'}; cosine by {self.encoder.name}"]

    def choose(self, questions: Sequence[Question], answers: Sequence[Mapping[str, Answer]]) -> list[SelectedSource]:
        """The chosen source of every question; scores are P(right)."""
        return choices(self.model, answers, answer_features(questions, answers, self.encoder, self.probability))


def choices(
    model: AnswerModel, answers: Sequence[Mapping[str, Answer]], features: Sequence[Mapping[str, NDArray[np.float64]]]
) -> list[SelectedSource]:
    """The source with the greatest P(right) of every question."""
    found = []
    for each, own in zip(answers, features, strict=True):
        p = model.probabilities(np.stack([*own.values()])) if own else ()
        scores = {source: float(value) for source, value in zip(own, p, strict=True)}
        found.append(greatest(each, scores, "most probably right: P"))
    return found


def fit(
    features: Sequence[Mapping[str, NDArray[np.float64]]], right: Sequence[Mapping[str, bool]], penalty: float = 1.0
) -> AnswerModel:
    """The model of P(right) over all answers of all questions.

    Args:
        features: By source, for every question.
        right: Whether each source's answer is right.
        penalty: L2.

    Raises:
        UserError: If all answers are right or all are wrong.
    """
    rows = [(own[source], correct[source]) for own, correct in zip(features, right, strict=True) for source in own]
    try:
        return AnswerModel.fit(
            FEATURES, np.array([values for values, _ in rows]), np.array([label for _, label in rows]), penalty
        )
    except (ValueError, IndexError) as error:
        raise UserError(f"the selection cannot be learned from these answers: {error}. Give more questions.") from error


def out_of_fold(
    questions: Sequence[Question],
    answers: Sequence[Mapping[str, Answer]],
    features: Sequence[Mapping[str, NDArray[np.float64]]],
    right: Sequence[Mapping[str, bool]],
    penalty: float = 1.0,
) -> list[SelectedSource]:
    """The choices for every question by a model that was fitted on the other folds.

    This shows what the fit reaches on questions it has not seen.

    The fold of a question depends on its text alone, so that repeated questions share one.
    """
    folds = [_fold(question) for question in questions]
    found: dict[int, SelectedSource] = {}
    for fold in sorted(set(folds)):
        inside = [place for place, each in enumerate(folds) if each == fold]
        outside = [place for place, each in enumerate(folds) if each != fold]
        model = fit([features[place] for place in outside], [right[place] for place in outside], penalty)
        chosen = choices(model, [answers[place] for place in inside], [features[place] for place in inside])
        found |= zip(inside, chosen, strict=True)
    return [found[place] for place in range(len(questions))]


def _fold(question: Question) -> int:
    from hashlib import sha256

    return int.from_bytes(sha256(question.text.encode(errors="surrogatepass")).digest()[:4], "big") % FOLDS
