"""The retriever of RE-RAG's study: every question's candidates with retriever scores.

Also the file of the temperatures of these scores, which `infer.py tune` fits and the study reads.

A system's retriever scores its own candidates. Without one the candidates are the passages that a question ships,
with the scores that its file gives where every passage of the question has one, else with a sentence encoder's cosine.
Scores of different sources differ in scale: each source has a temperature and a confidence. Shape legend: C candidates
of a question.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import has_answer
from common.errors import ArtifactError, MissingInputError, UserError
from common.files import read_json
from common.records import Passage, Question, Ranked
from common.retrieval import search_for
from common.sealed_json import check_fields, unsealed, write_sealed
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.interfaces import Retriever
from harness.retrievers.corpora import index_records
from harness.retrievers.question_passages import cosines, given_ranking
from harness.systems.rerag import ReRag
from models.pretrained import MINILM

Source = Literal["given", "cosine", "retriever"]  # where a question's retriever scores come from
_CURE = "Fit the temperatures again: infer.py tune on training questions."
QUESTIONS_AT_ONCE = 32  # bounds the memory of tokens and encoder states


def source_of(question: Question, retriever: Retriever | None) -> Source:
    """Where the retriever scores of a question come from."""
    if retriever is not None:
        return "retriever"
    return "given" if question.given_scores else "cosine"


def retrieve(
    questions: Sequence[Question],
    retriever: Retriever | None,
    encoder: SentenceEncoder | None,
    candidates: int,
    use_given: bool = True,
) -> list[list[Ranked]]:
    """Every question's candidates.

    The retriever's best, or its shipped passages ranked by given scores, else by cosine.

    Args:
        questions: The questions.
        retriever: None for the questions' shipped passages.
        encoder: For the questions without given scores; None if there are none.
        candidates: Number of passages that the retriever finds.
        use_given: Whether to use given scores; the cosine for all questions if not.

    Raises:
        UserError: If there is no retriever and a question ships no passages.
    """
    if retriever is not None:
        return search_for(retriever, questions, candidates)
    for question in questions:
        if not question.passages:
            raise UserError(
                f"question {question.id!r} comes without passages and the system has no retriever: "
                "configure --system.init_args.retriever, or choose a file that ships passages."
            )
    unscored = [question for question in questions if not (use_given and question.given_scores)]
    computed = iter(cosines(unscored, encoder) if unscored and encoder else ())
    return [
        given_ranking(question) if use_given and question.given_scores else _by_cosine(question, next(computed))
        for question in questions
    ]


def _by_cosine(question: Question, cosine_C: NDArray[np.float64]) -> list[Ranked]:
    order = np.argsort(-cosine_C, kind="stable")
    return [Ranked(question.passages[place], float(cosine_C[place])) for place in order]


def has_answer_labels(question: Question, passages: Sequence[Passage]) -> NDArray[np.bool_]:
    """DPR's has-answer label of every passage: whether it contains one of the question's answers."""
    return np.array([has_answer(passage.text, question.answers) for passage in passages], dtype=bool)


def batches_of(questions: Sequence[Question]) -> list[Sequence[Question]]:
    """The questions in groups that are computed, and saved, together."""
    return [questions[start : start + QUESTIONS_AT_ONCE] for start in range(0, len(questions), QUESTIONS_AT_ONCE)]


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


def identity(source: Source, system: ReRag, encoder: SentenceEncoder | None) -> object:
    """The origin of a source's scores: the encoder's recipe, or the retriever's class and indexes; None: the file."""
    if source == "retriever":
        indexes = [[each["kind"], each["corpus"]] for each in index_records({"": system.retriever})[""]]
        return {"retriever": type(system.retriever).__name__, "indexes": indexes}
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
    """The temperatures of the file for some sources.

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


def retrieval_facts(
    questions: Sequence[Question],
    retriever: Retriever | None,
    encoder: SentenceEncoder | None,
    fitted: Mapping[Source, Fitted],
) -> list[str]:
    """For the report: where the scores come from and for how many questions, and their temperatures.

    Args:
        questions: Those that are measured.
        retriever: As in `retrieve`.
        encoder: As in `retrieve`.
        fitted: Temperatures by source; 1 for a source that is not in it.
    """
    counts = Counter(source_of(question, retriever) for question in questions)
    names: dict[Source, str] = {
        "given": "given scores",
        "cosine": f"cosine of {encoder.name} over each question's shipped passages" if encoder else "cosine",
        "retriever": "the system's retriever",
    }
    shown: tuple[Source, ...] = ("retriever",) if retriever is not None else ("given", "cosine")
    parts = []
    for source in shown:
        part = names[source] + ("" if retriever else f": {counts[source]:,} of {len(questions):,} questions")
        if counts[source]:
            own = fitted.get(source, Fitted(1.0, 0))
            how = f"fitted on {own.questions:,} training questions" if own.questions else "not fitted"
            part += f"; temperature {own.temperature:.4g}, {how}"
        parts.append(part)
    facts = ["retriever's ranking and scores: " + "; ".join(parts)]
    partial = sum(any(s is not None for s in q.scores) and not q.given_scores for q in questions)
    if partial and retriever is None:
        facts.append(f"{partial:,} questions have scores for some of their passages only, which are not used")
    return facts
