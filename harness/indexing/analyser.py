"""Lexical analysis: splits text into the terms of a BM25 index."""

from collections.abc import Container
from typing import Literal

from common.sealed_json import fingerprint
from common.words import WORDS, terms_of

StopWords = Literal["english", "none"]


class Analyser:
    """Splits text into terms (`common.words.terms_of`), no stemming.

    Stop words are terms of an index. In a query they count only if the index knows nothing else of it.

    Args:
        stop_words: `english` (bm25s's list of 33) or `none`.
    """

    def __init__(self, stop_words: StopWords = "english") -> None:
        from bm25s.stopwords import STOPWORDS_EN

        self._stop = frozenset(STOPWORDS_EN if stop_words == "english" else ())
        self.stop_words = stop_words
        self.recipe = {"stop_words": stop_words, "sha256": fingerprint([sorted(self._stop)]), "words": WORDS}

    def __call__(self, text: str) -> list[str]:
        return terms_of(text)

    def of_query(self, text: str, known: Container[str]) -> list[str]:
        """The terms of a query, without its stop words if one of the others is known."""
        terms = self.terms_that_count(text)
        return terms if any(term in known for term in terms) else terms_of(text)

    def terms_that_count(self, text: str) -> list[str]:
        """The terms of a query without its stop words; these if there is nothing else."""
        terms = terms_of(text)
        return [term for term in terms if term not in self._stop] or terms
