"""The file of the temperatures of the retriever's scores, which `infer.py tune` fits and RE-RAG's study reads."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import get_args

from common.errors import ArtifactError, MissingInputError, UserError
from common.files import read_json
from common.seals import check_fields, unsealed, write_sealed
from harness.evaluation.rerag.retrieval import Source
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.retrievers.corpora import index_records
from harness.strategies.rerag import ReRag

_CURE = "Fit the temperatures again: infer.py tune on training questions."


@dataclass(frozen=True, slots=True)
class Fitted:
    """The temperature of one source's scores."""

    temperature: float
    questions: int  # that it was fitted on
    scores_of: object = None  # what gave the scores, JSON types: see `identity`


def identity(source: Source, strategy: ReRag, encoder: SentenceEncoder | None) -> object:
    """What gives the scores of a source: the encoder's recipe, or the retriever's class and indexes; None: the file."""
    if source == "retriever":
        indexes = [[each["kind"], each["corpus"]] for each in index_records({"": strategy.retriever})[""]]
        return {"retriever": type(strategy.retriever).__name__, "indexes": indexes}
    return encoder.recipe if source == "cosine" and encoder is not None else None


def write_temperatures(path: Path, fitted: Mapping[Source, Fitted]) -> None:
    """Write the temperatures by source of the scores, sealed; a file that exists is replaced.

    Raises:
        ArtifactError: If writing fails.
    """
    write_sealed(path, {"temperatures": {source: asdict(each) for source, each in fitted.items()}})


def read_temperatures(path: Path) -> dict[Source, Fitted]:
    """The temperatures by source.

    Raises:
        MissingInputError: If there is no such file.
        ArtifactError: If it is corrupt.
    """
    if not path.is_file():
        raise MissingInputError(f"{path}: no file of temperatures. {_CURE}")
    value = unsealed(path, read_json(path, _CURE), _CURE)
    check_fields(str(path), value, {"temperatures": dict}, _CURE)
    found: dict[Source, Fitted] = {}
    for source, own in value["temperatures"].items():
        if source not in get_args(Source) or not isinstance(own, dict):
            raise ArtifactError(f"{path}: {source!r} is no source of scores. {_CURE}")
        check_fields(f"{path}: {source}", own, {"temperature": float, "questions": int}, _CURE)
        if not 0 < own["temperature"] < inf:
            raise ArtifactError(f"{path}: {source}: temperature {own['temperature']} is out of range. {_CURE}")
        found[source] = Fitted(own["temperature"], own["questions"], own.get("scores_of"))
    return found


def temperatures_for(path: Path, wanted: Mapping[Source, object]) -> dict[Source, Fitted]:
    """Those of the file for some sources.

    Args:
        path: The file.
        wanted: What gives the scores, by source.

    Raises:
        UserError: If the file has none for a source.
        ArtifactError: If it was fitted for another retriever or encoder.
    """
    fitted = read_temperatures(path)
    for source, scores_of in wanted.items():
        if source not in fitted:
            raise UserError(
                f"{path} has temperatures for {', '.join(fitted)} scores, none for {source} scores, which some of the "
                "measured questions have: fit them on questions of the same kind, or with --tuning.encoder."
            )
        if fitted[source].scores_of != scores_of:
            raise ArtifactError(f"{path}: {source} scores were given by another retriever or encoder. {_CURE}")
    return {source: fitted[source] for source in wanted}


def is_temperatures_file(path: Path) -> bool:
    """Whether `write_temperatures` wrote a file."""
    try:
        read_temperatures(path)
    except UserError:
        return False
    return True
