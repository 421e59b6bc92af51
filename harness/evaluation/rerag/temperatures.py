"""The file of the temperatures of the retriever's scores, which `infer.py tune` fits and RE-RAG's study reads.

A system's retriever scores its own candidates. Without one the candidates are the passages that a question ships,
with the scores that its file gives where every passage of the question has one, else with a sentence encoder's cosine.
Scores of different sources differ in scale: each source has a temperature and a confidence.
"""

from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, get_args

from common.errors import ArtifactError, MissingInputError
from common.fitted_files import CURE, FittedFile
from common.sealed_json import check_fields
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.retrievers.corpora import index_records
from harness.systems.rerag import ReRag, Source
from models.pretrained import MINILM


def encoder_of(system: ReRag, name: str | None) -> SentenceEncoder:
    """The encoder whose cosine ranks shipped passages, on the estimator's device; MiniLM without a name."""
    estimator = system.model.estimator
    device = system.device if estimator is None else str(estimator.network.device)
    return SentenceEncoder(name or MINILM, device, precision=system.precision)


@dataclass(frozen=True, slots=True)
class Fitted:
    """The temperature of one source's scores."""

    temperature: float
    questions: int  # that it was fitted on
    scores_of: object = None  # what gave the scores, JSON types: see `identity`


def identity(system: ReRag, encoder: SentenceEncoder | None) -> object:
    """The origin of scores: the encoder's recipe, or the retriever's class and indexes; None: the file."""
    if system.retriever is not None:
        indexes = [[each["kind"], each["corpus"]] for each in index_records(system.retriever)]
        return {"retriever": type(system.retriever).__name__, "indexes": indexes}
    return encoder and encoder.recipe


def _of_sources(content: dict[str, Any]) -> dict[Source, Fitted]:
    found: dict[Source, Fitted] = {}
    for source, own in content["temperatures"].items():
        if source not in get_args(Source):
            raise ValueError(f"{source!r} is no source of scores")
        check_fields(source, own, {"temperature": float, "questions": int}, "")
        if not 0 < own["temperature"] < inf:
            raise ValueError(f"{source}: temperature {own['temperature']} is out of range")
        found[source] = Fitted(own["temperature"], own["questions"], own.get("scores_of"))
    return found


TEMPERATURES = FittedFile("a file of temperatures", _of_sources, {"temperatures": dict})


def fitted_for(path: Path, source: Source, scores_of: object) -> Fitted:
    """The temperature of the file for a source.

    Args:
        path: The file.
        source: The source.
        scores_of: What gives the scores.

    Raises:
        MissingInputError: If the file has none for the source.
        ArtifactError: If it was fitted for another retriever or encoder.
    """
    fitted = TEMPERATURES.read(path)
    if source not in fitted:
        raise MissingInputError(
            f"{path} has temperatures for {', '.join(fitted)} scores, none for {source} scores, which some of the "
            "measured questions have: fit them on questions of the same kind, or with --tuning.encoder."
        )
    if fitted[source].scores_of != scores_of:
        raise ArtifactError(f"{path}: {source} scores were given by another retriever or encoder. {CURE}")
    return fitted[source]
