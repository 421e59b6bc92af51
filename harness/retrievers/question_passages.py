"""Rankings of the passages that questions ship.

By the scores that their file gives, else by a sentence encoder's cosine.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from common.records import Question, Ranked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.indexing.sentence_encoder import SentenceEncoder


def given_ranking(question: Question) -> list[Ranked]:
    """Each shipped passage once, best first by the given scores.

    In file order with score 0 unless every passage has one.
    """
    scores = question.given_scores or (0.0,) * len(question.passages)
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
    passages_PD = unit(encoder.encode_recurring(list(texts.values())))
    queries_QD = unit(encoder.encode_queries([question.text for question in questions]))
    return [
        (passages_PD[[row_of[passage.id] for passage in question.passages]] @ query_D).astype(float)
        for question, query_D in zip(questions, queries_QD, strict=True)
    ]
