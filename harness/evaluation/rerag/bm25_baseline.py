"""BM25 over the passages that questions ship: the lexical baseline for a reranker without a BM25 index."""

from collections.abc import Sequence

import bm25s
import numpy as np
from numpy.typing import NDArray

from common.records import Question, clean
from harness.indexing.analyser import Analyser
from harness.indexing.passage_store import indexed_text

K1, B = 1.5, 0.75  # as `infer.py index --kind bm25`


def bm25_of_shipped(questions: Sequence[Question]) -> list[dict[str, float]]:
    """BM25 scores of each question's shipped passages, by id; word statistics over all questions' passages."""
    texts = {passage.id: indexed_text(passage) for question in questions for passage in question.passages}
    row_of = {id_: row for row, id_ in enumerate(texts)}
    analyser = Analyser()
    vocabulary: dict[str, int] = {}
    ids = [[vocabulary.setdefault(word, len(vocabulary)) for word in analyser(text)] for text in texts.values()]
    if not vocabulary:
        return [dict.fromkeys((p.id for p in question.passages), 0.0) for question in questions]
    engine = bm25s.BM25(k1=K1, b=B, method="lucene")
    engine.index((ids, vocabulary), create_empty_token=False, show_progress=False)
    scores = []
    for question in questions:
        words = engine.get_tokens_ids(analyser(clean(question.text)))
        scores_P: NDArray[np.float32] = (
            engine.get_scores_from_ids(words) if words else np.zeros(len(texts), dtype=np.float32)
        )
        scores.append({passage.id: float(scores_P[row_of[passage.id]]) for passage in question.passages})
    return scores
