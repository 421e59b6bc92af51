"""Passages under a budget of words: whole passages, best first, the last one cut.  Standard library only."""

from collections.abc import Sequence
from dataclasses import replace

from common.records import Passage, Ranked


def within_words(ranked: Sequence[Ranked], most_words: int) -> tuple[Ranked, ...]:
    """The first passages, at most `most_words` words of text together; the last one may be cut.

    A cut passage keeps its id, so that it can be found in its corpus.
    """
    kept: list[Ranked] = []
    left = most_words
    for hit in ranked:
        words = hit.passage.text.split()
        if left <= 0:
            break
        kept.append(hit if len(words) <= left else replace(hit, passage=_cut(hit.passage, words[:left])))
        left -= len(words)
    return tuple(kept)


def of_source(ranked: Sequence[Ranked], source: str) -> tuple[Ranked, ...]:
    """The passages with the name of their source, where they have none."""
    return tuple(
        hit if hit.passage.source else replace(hit, passage=replace(hit.passage, source=source)) for hit in ranked
    )


def _cut(passage: Passage, words: Sequence[str]) -> Passage:
    return replace(passage, text=" ".join(words))
