"""The triples of one epoch as numbers.

They take a few bytes each; an example gets its texts on request.
"""

from array import array
from collections.abc import Callable, Sequence
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from common.progress import track
from common.records import Question
from datamodules.cache.candidates import Candidates
from datamodules.cache.record_cache import Arrays
from datamodules.cache.token_cache import TokenCache
from datamodules.examples.lazy_sequence import LazySequence
from datamodules.examples.triple_batches import TripleNumbers, TripleRequest, TripleTexts
from datamodules.examples.triples import Kind, Triple
from datamodules.formats.mined_negatives import Mined
from models.drrag.triple_tokenizer import SPECIAL_TOKENS, TripleEncoder

Draw = Callable[[Question, Mined], Sequence[Triple]]

KINDS: tuple[Kind, ...] = get_args(Kind)
POSITIVE = np.array([kind == "gold_gold" for kind in KINDS])


def draw_triples(candidates: Candidates, draw: Draw, what: str) -> Arrays:
    """Draw the triples of all questions.

    Args:
        candidates: The questions' passages.
        draw: Draws the triples of one question.
        what: Description for the progress.

    Returns:
        Of every triple the place of its `question`, the numbers of its `passages`, (E, 2), and its `kind` in `KINDS`.
    """
    question, passages, kind = array("i"), array("i"), array("b")
    for place in track(range(len(candidates.ids)), len(candidates.ids), what):
        for triple in draw(*candidates.light(place)):
            question.append(place)
            passages.extend([int(triple.first.id), int(triple.second.id)])
            kind.append(KINDS.index(triple.kind))
    return {
        "question": np.array(question), "kind": np.array(kind), "passages": np.array(passages, np.int32).reshape(-1, 2)
    }  # fmt: skip


class SampledTriples:
    """Triples by row, with their token ids.

    Args:
        candidates: The questions' passages.
        tokens: Of `Candidates.texts`.
        drawn: Of `draw_triples`.
        encode: Joins the token ids.
    """

    def __init__(self, candidates: Candidates, tokens: TokenCache, drawn: Arrays, encode: TripleEncoder) -> None:
        self._candidates, self._tokens, self._drawn = candidates, tokens, drawn
        self.texts, self._encode = TripleTexts(tokens, encode), encode
        self.positive = POSITIVE[drawn["kind"]]
        self.examples: LazySequence[Triple] = LazySequence(len(self), self._example)

    def __len__(self) -> int:
        return len(self._drawn["kind"])

    def untruncated(self) -> NDArray[np.int64]:
        """Tokens of every triple before truncation, as `TripleEncoder.untruncated`, (E,)."""
        lengths = self._tokens.lengths
        own, passages = self._candidates.first[self._drawn["question"]], self._drawn["passages"]
        return SPECIAL_TOKENS + lengths[own] + lengths[own[:, None] + 1 + passages].sum(axis=1)

    def lengths(self) -> NDArray[np.int64]:
        """Tokens of every triple, (E,)."""
        asked = self._tokens.lengths[self._candidates.first[self._drawn["question"]]]
        left_out = np.array([length - self._encode.question_tokens(length) for length in asked.tolist()], np.int64)
        return np.minimum(self.untruncated() - left_out, self._encode.max_tokens)

    def questions_cut(self) -> int:
        """Number of questions, of those that triples are drawn from, that are too long and cut."""
        lengths = self._tokens.lengths[self._candidates.first[:-1]].tolist()
        return sum(self._encode.question_tokens(length) < length for length in lengths)

    def numbers(self, rows: Sequence[int]) -> TripleNumbers:
        """Some triples by the numbers of their texts."""
        question, passages = (self._drawn[name][rows].astype(np.int64) for name in ("question", "passages"))
        own = self._candidates.first[question]
        return TripleNumbers(own, own[:, None] + 1 + passages)

    def request(self, rows: Sequence[int], weight: float, step_triples: int) -> TripleRequest:
        """Of a batch of some triples; the other fields are those of `TripleBatch`."""
        return TripleRequest(self.numbers(rows), self.positive[rows], weight, step_triples, rows)

    def _example(self, row: int) -> Triple:
        question, known = self._candidates.whole(int(self._drawn["question"][row]))
        first, second = (known[number] for number in self._drawn["passages"][row].tolist())
        return Triple(question, first, second, KINDS[self._drawn["kind"][row]])
