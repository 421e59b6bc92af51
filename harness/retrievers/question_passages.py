"""Rankings of the passages that questions ship.

By the scores that their file gives, by a sentence encoder's cosine, or by BM25.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from common.errors import MissingInputError, UserError
from common.progress import say
from common.records import Question, Ranked
from common.retrieval import reciprocal_rank_fusion

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.indexing.sentence_encoder import SentenceEncoder
    from harness.runtime.memo import Memo

_QUESTIONS_AT_ONCE = 32  # bounds the memory of tokens and encoder states


def given_ranking(question: Question) -> list[Ranked]:
    """Each shipped passage once, best first by the given scores.

    In file order with score 0 unless every passage has one.
    """
    return _each_once(question, question.given_scores or (0.0,) * len(question.passages))


def _each_once(question: Question, scores: Sequence[float]) -> list[Ranked]:
    ranked: dict[str, Ranked] = {}
    for passage, score in sorted(zip(question.passages, scores, strict=True), key=lambda pair: -pair[1]):
        ranked.setdefault(passage.id, Ranked(passage, score))
    return list(ranked.values())


def cosines(questions: Sequence[Question], encoder: "SentenceEncoder") -> "list[NDArray[np.float64]]":
    """The cosine of each question with each of its shipped passages, in file order.

    Every distinct passage is encoded once.
    """
    import numpy as np

    from harness.indexing.passage_store import indexed_text

    def unit(vectors_ND: "NDArray[np.float32]") -> "NDArray[np.float32]":
        return vectors_ND / np.maximum(np.linalg.norm(vectors_ND, axis=1, keepdims=True), 1e-12)

    texts = {passage.id: indexed_text(passage) for question in questions for passage in question.passages}
    row_of = {id_: row for row, id_ in enumerate(texts)}
    passages_PD = unit(encoder.encode_passages(list(texts.values())))
    queries_QD = unit(encoder.encode_queries([question.text for question in questions]))
    return [
        (passages_PD[[row_of[passage.id] for passage in question.passages]] @ query_D).astype(float)
        for question, query_D in zip(questions, queries_QD, strict=True)
    ]


def cosine_rankings(questions: Sequence[Question], encoder: "SentenceEncoder", memo: "Memo") -> list[list[Ranked]]:
    """Each question's shipped passages once, best first by the cosine.

    Raises:
        UserError: If a question ships none.
    """
    from harness.runtime.memo import digest_of

    for question in questions:
        if not question.passages:
            raise UserError(
                f"question {question.id!r} comes without passages and the system has no retriever: "
                "configure --system.init_args.retriever, or choose a file that ships passages."
            )

    def work(places: Sequence[int]) -> list[list[float]]:
        return [cosine_C.tolist() for cosine_C in cosines([questions[place] for place in places], encoder)]

    found = memo.of("cosine", encoder)([*map(digest_of, questions)], work, None, _QUESTIONS_AT_ONCE)
    return [_each_once(*pair) for pair in zip(questions, found, strict=True)]


def bm25_of_shipped(questions: Sequence[Question]) -> list[dict[str, float]]:
    """BM25 scores of each question's shipped passages, by id; word statistics over all questions' passages."""
    from harness.indexing.passage_store import indexed_text
    from harness.retrievers.bm25 import bm25_scores

    texts = {passage.id: indexed_text(passage) for question in questions for passage in question.passages}
    row_of = {id_: row for row, id_ in enumerate(texts)}
    scores = bm25_scores([*texts.values()], [question.text for question in questions])
    return [
        {passage.id: float(scores_P[row_of[passage.id]]) for passage in question.passages}
        for question, scores_P in zip(questions, scores, strict=True)
    ]


def shipped_rankings(questions: Sequence[Question]) -> dict[str, list[list[Ranked]]]:
    """Each question's shipped passages, best first, by the name of what ranks them without training.

    BM25, MiniLM's cosine, both fused by reciprocal ranks, and the scores of the file where each passage has one. Equal
    scores are in the order of ids, so that no file's order counts. Without MiniLM on this machine a line says so.
    """
    from harness.indexing.sentence_encoder import SentenceEncoder
    from models.pretrained import MINILM

    found: dict[str, list[Sequence[float]]] = {"BM25": [[*own.values()] for own in bm25_of_shipped(questions)]}
    try:
        found["cosine"] = [own.tolist() for own in cosines(questions, SentenceEncoder(MINILM))]
    except MissingInputError as error:
        say(f"No row of a cosine: {error}")
    ranked = {name: [_ranked(*pair) for pair in zip(questions, rows, strict=True)] for name, rows in found.items()}
    if len(ranked) > 1:
        pairs = zip(*ranked.values(), strict=True)
        ranked["BM25 and cosine"] = [reciprocal_rank_fusion(pair, [1.0, 1.0]) for pair in pairs]
    if all(question.given_scores for question in questions):
        ranked["the file's order"] = [_ranked(question, question.given_scores) for question in questions]
    return ranked


def _ranked(question: Question, scores: Sequence[float]) -> list[Ranked]:
    return sorted(map(Ranked, question.passages, scores), key=lambda hit: (-hit.score, hit.passage.id))
