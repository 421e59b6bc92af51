"""Passages under a budget of words: whole passages, best first, the last one cut.  Standard library only."""

from collections.abc import Sequence
from dataclasses import replace

from common.records import Ranked
from common.words import first_words


def within_words(ranked: Sequence[Ranked], max_words: int) -> tuple[Ranked, ...]:
    """The first passages, at most `max_words` words of text together; the last one may be cut.

    A cut passage keeps its id, so that it can be found in its corpus.
    """
    kept: list[Ranked] = []
    left = max_words
    for hit in ranked:
        if left <= 0:
            break
        text = first_words(hit.passage.text, left)
        kept.append(hit if text == hit.passage.text else replace(hit, passage=replace(hit.passage, text=text)))
        left -= len(hit.passage.text.split())
    return tuple(kept)


def of_source(ranked: Sequence[Ranked], source: str) -> tuple[Ranked, ...]:
    """The passages with the name of their source, where they have none."""
    return tuple(
        hit if hit.passage.source else replace(hit, passage=replace(hit.passage, source=source)) for hit in ranked
    )
