"""The triples or chains of one epoch as numbers.

A few bytes each, and an example with its texts when it is asked for.
"""

from array import array
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from common.progress import track
from common.records import Question
from datamodules.examples import chains, triples
from datamodules.examples.chains import ChainExample
from datamodules.examples.computed import Computed
from datamodules.examples.triple_batches import NOTHING, THE_END, TripleNumbers, TripleRequest, TripleTexts
from datamodules.examples.triples import Triple
from datamodules.formats.expansions import Expansion
from datamodules.formats.mined_negatives import Mined
from datamodules.stored.cache import Arrays
from datamodules.stored.candidates import Candidates
from datamodules.stored.token_rows import TokenRows
from models.drrag.triple_tokenizer import END, PAIRS, TripleEncoder, special_tokens

Example = Triple | ChainExample
Draw = Callable[[Question, Mined, list[Expansion]], Sequence[Example]]

KINDS: tuple[str, ...] = (*get_args(triples.Kind), *get_args(chains.Kind))
POSITIVE = np.array([kind in ("gold_gold", "gold", "complete") for kind in KINDS])


def draw_examples(candidates: Candidates, draw: Draw, documents: int, what: str) -> Arrays:
    """Draw the examples of all questions.

    Args:
        candidates: The questions' passages.
        draw: Draws the examples of one question.
        documents: Most passages of an example.
        what: Description for the progress.

    Returns:
        Of every example the place of its `question`, the numbers of its `passages`, (E, documents), its `kind` in
        `KINDS`, and its `group` among the question's.
    """
    question, passages, kind, group = array("i"), array("i"), array("b"), array("i")
    for place in track(range(len(candidates.ids)), len(candidates.ids), what):
        for example in draw(*candidates.light(place)):
            numbers = [THE_END if each is END else int(each.id) for each in example.texts[1:]]
            question.append(place)
            passages.extend([*numbers, *[NOTHING] * (documents - len(numbers))])
            kind.append(KINDS.index(example.kind))
            group.append(example.group if isinstance(example, ChainExample) else 0)
    columns = {"question": question, "kind": kind, "group": group}
    return {name: np.array(values) for name, values in columns.items()} | {
        "passages": np.array(passages, np.int32).reshape(-1, documents)
    }


class DrawnExamples:
    """Examples by row, with their token ids.

    Args:
        candidates: The questions' passages.
        tokens: Of `Candidates.texts`.
        drawn: Of `draw_examples`.
        chain: Whether they are chains; else triples.
        encode: Joins the token ids.
    """

    def __init__(
        self, candidates: Candidates, tokens: TokenRows, drawn: Arrays, chain: bool, encode: TripleEncoder
    ) -> None:
        self._candidates, self._tokens, self._drawn, self._chain = candidates, tokens, drawn, chain
        self.texts, self._max_tokens = TripleTexts(candidates.questions, tokens, encode), encode.max_tokens
        self.positive = POSITIVE[drawn["kind"]]
        self.examples: Computed[Example] = Computed(len(self), self._example)

    def __len__(self) -> int:
        return len(self._drawn["kind"])

    @property
    def documents(self) -> NDArray[np.int64]:
        """Passages of every example, its end counted, (E,)."""
        return (self._drawn["passages"] != NOTHING).sum(axis=1)

    @property
    def pairs(self) -> NDArray[np.bool_]:
        """Which examples are two passages, neither of them the end, (E,)."""
        return (self.documents == PAIRS) & (self._drawn["passages"] != THE_END).all(axis=1)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The first example of each group, and at last the number of examples.

        The examples of a group follow one another.
        """
        if not self._chain:
            return np.arange(len(self) + 1)
        question, group = self._drawn["question"], self._drawn["group"]
        first = np.ones(len(self), bool)
        first[1:] = (question[1:] != question[:-1]) | (group[1:] != group[:-1])
        return np.append(np.flatnonzero(first), len(self))

    def untruncated(self) -> NDArray[np.int64]:
        """Tokens of every example before truncation, as `TripleEncoder.untruncated`, (E,)."""
        lengths = self._tokens.lengths
        own, passages = self._candidates.first[self._drawn["question"]], self._drawn["passages"]
        of_passages = np.where(passages >= 0, lengths[(own[:, None] + 1 + passages).clip(0, len(lengths) - 1)], 0)
        of_passages[passages == THE_END] = len(self.texts.end_ids)
        return special_tokens(0) + self.documents + lengths[own] + of_passages.sum(axis=1)

    def lengths(self) -> NDArray[np.int64]:
        """Tokens of every example, (E,)."""
        return np.minimum(self.untruncated(), self._max_tokens)

    def numbers(self, rows: Sequence[int]) -> TripleNumbers:
        """Some examples by the numbers of their texts."""
        question, passages = (self._drawn[name][rows].astype(np.int64) for name in ("question", "passages"))
        own = self._candidates.first[question]
        return TripleNumbers(question, own, np.where(passages >= 0, own[:, None] + 1 + passages, passages))

    def request(
        self, rows: Sequence[int], weight: float, step_triples: int, groups: Sequence[int], step_groups: int
    ) -> TripleRequest:
        """Of a batch of some examples; the other fields are those of `TripleBatch`."""
        return TripleRequest(self.numbers(rows), self.positive[rows], weight, step_triples, rows, groups, step_groups)

    def encoded(self, row: int) -> list[int]:
        """Token ids of an example.  Raises as `TripleEncoder.join`."""
        return self.texts.encoded(self.numbers([row]))[0]

    def _example(self, row: int) -> Example:
        question, known = self._candidates.whole(int(self._drawn["question"][row]))
        numbers = [number for number in self._drawn["passages"][row].tolist() if number != NOTHING]
        passages = tuple(END if number == THE_END else known[number] for number in numbers)
        kind = KINDS[self._drawn["kind"][row]]
        if self._chain:
            return ChainExample(question, passages, kind, int(self._drawn["group"][row]))
        return Triple(question, passages[0], passages[1], kind)
