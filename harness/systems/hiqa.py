"""HiQA at inference: segments of documents by multi-route retrieval, as many as fit the context, one reader call.

q -> s_1, s_2, ... -> the first that fit the budget -> answer, with the tables and images among them
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from common.ranges import PositiveInt
from common.records import Answer, Passage, Ranked
from common.words import word_count
from harness.interfaces import Reader, Retriever
from harness.runtime.citation import images_of, tables_of
from harness.systems.retrieve_read import RetrieveRead

_count = lru_cache(maxsize=2**16)(word_count)  # a study fills contexts of several lengths from the same passages


class HiQa(RetrieveRead):
    """Retrieves segments of documents, keeps those that fit the context, and generates an answer from them.

    The evidence is in the retriever's order, with its scores. The notes name what is returned with the answer beside
    its text (appendix A.3): `tables`, the ids of the tables in the evidence, and `images`, the image files; and
    `left_out`, the number of segments that did not fit.

    Args:
        retriever: Normally `harness.retrievers.multi_route.MultiRouteRetriever` over an index of documents (`infer.py
            index --documents`).
        k: Most segments.
        max_words: Most words of all segments together, metadata included; 1,500 words are about the paper's 2,000
            tokens. The first segment is always kept; one that does not fit is left out, and a shorter one behind it may
            still be kept.
        reader: Generates the answer; without a reader only the evidence is returned.
    """

    study = "harness.evaluation.hiqa.study:Study"  # names, because imports run from evaluations to systems
    tuning = "harness.tuning.hiqa:Tuning"

    retriever: Retriever

    def __init__(
        self, retriever: Retriever, k: PositiveInt = 5, max_words: PositiveInt = 1500, reader: Reader | None = None
    ) -> None:
        super().__init__(retriever, k, reader)
        self.max_words = max_words

    def shown(self, answer: Answer) -> Answer:
        """An answer with the evidence that fits the context, and notes on it."""
        kept = within_budget(answer.evidence, self.max_words)
        left_out = len(answer.evidence) - len(kept)
        notes = {**answer.notes, **_returned(kept), **({"left_out": left_out} if left_out else {})}
        return replace(answer, evidence=tuple(kept), notes=notes)


def within_budget(hits: Sequence[Ranked], max_words: int) -> list[Ranked]:
    """The hits whose words fit together, in their order; the first one always.

    Args:
        hits: Best first.
        max_words: Of titles and texts of all.
    """
    return [hits[place] for place in fitting([shown_words(hit.passage) for hit in hits], max_words)]


def fitting(words: Sequence[int], max_words: int) -> list[int]:
    """Places of the passages that fit together, in order.

    Each that the ones before leave room for, the first one always.

    Args:
        words: Of each passage, best first.
        max_words: Of all together.
    """
    kept: list[int] = []
    left = max_words
    for place, count in enumerate(words):
        if count <= left or not kept:
            kept.append(place)
            left -= count
    return kept


def shown_words(passage: Passage) -> int:
    """Number of words of a passage with its title, as a reader gets it."""
    return _count(passage.title) + _count(passage.text)


def _returned(hits: Sequence[Ranked]) -> dict[str, object]:
    """The tables and images among the evidence."""
    tables = [id_ for hit in hits for id_ in tables_of(hit.passage)]
    images = list(dict.fromkeys(file for hit in hits for file in images_of(hit.passage)))
    return {name: value for name, value in (("tables", tables), ("images", images)) if value}
