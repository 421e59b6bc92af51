"""Lexical analysis: splits text into the words of a BM25 index."""

import re
from typing import Literal

from common.sealed_json import fingerprint
from common.words import CJK

StopWords = Literal["english", "none"]
Cjk = Literal["runs", "bigrams"]

_CJK_OR_OTHER = rf"([{CJK}]+)|[^\W{CJK}]{{2,}}"  # as _WORD where there is no Chinese, Japanese or Korean
_WORD = r"(?u)\b\w\w+\b"  # bm25s's default: at least two letters or digits


class Analyser:
    """Splits text into words: lower case, stop words removed, no stemming.

    Args:
        stop_words: `english` (bm25s's list of 33) or `none`.
        cjk: What is a word of Chinese, Japanese and Korean: `runs`, all up to a blank or a punctuation mark, or
            `bigrams`, every pair of neighbouring characters, as in Lucene's CJKAnalyzer.
    """

    def __init__(self, stop_words: StopWords = "english", cjk: Cjk = "runs") -> None:
        from bm25s.stopwords import STOPWORDS_EN

        self._stop = frozenset(STOPWORDS_EN if stop_words == "english" else ())
        self._find = re.compile(_WORD).findall if cjk == "runs" else _with_bigrams
        pattern = _WORD if cjk == "runs" else f"{_CJK_OR_OTHER}, bigrams"
        self.options = (stop_words, cjk)
        self.recipe = {"stop_words": stop_words, "sha256": fingerprint([pattern, "lower", sorted(self._stop)])}
        self.recipe |= {"cjk": cjk} if cjk != "runs" else {}

    def __call__(self, text: str) -> list[str]:
        return [word for word in self._find(text.lower()) if word not in self._stop]


def _with_bigrams(text: str) -> list[str]:
    """The words of a text, and of Chinese, Japanese and Korean every pair of neighbouring characters.

    One that stands alone is a word.
    """
    found: list[str] = []
    for match in re.finditer(_CJK_OR_OTHER, text):
        run = match[1]
        found += [run[n : n + 2] for n in range(max(1, len(run) - 1))] if run else [match[0]]
    return found
