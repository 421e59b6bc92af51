"""Text fidelity: the share of a source's words that a conversion lost, and how much of their order.

And the share of the conversion's words that the source lacks.
"""

import re
import unicodedata
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

# Hyphens between letters vanish, with a line break after them: whether a line was broken there must not count.
_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u2010\u2011](?:[ \t]*\n\s*)?(?=[^\W\d_])")
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+"
)  # scripts without blanks: one character


class Fidelity(NamedTuple):
    """Shares from 0 (perfect) to 1."""

    lost: float  # of the source's words
    invented: float  # of the result's words


def words(text: str) -> list[str]:
    """A text's words for comparison: compatibility forms such as ligatures resolved, small letters, no punctuation.

    "well-known", "wellknown" and "well-" + line break + "known" are one word; "a_b" and "a\\_b" are two.
    """
    plain = unicodedata.normalize("NFKC", text).casefold().replace("\u00ad", "")
    return _WORD.findall(_HYPHEN.sub("", plain))


def fidelity(source: str, result: str, in_a_row: int = 1) -> Fidelity:
    """The shares of a source's text that a result lost, and of the result's text that the source lacks.

    Repetitions count: a word that stands three times in the source and once in the result is lost twice.

    Args:
        source: The text that was converted.
        result: What the conversion gave, without markup that itself has words.
        in_a_row: Words in a row that are compared at once. 1 allows any order; 2 or more also count text that was torn
            apart or mixed, as lost and as invented.

    Raises:
        ValueError: If `in_a_row` is below 1.
    """
    if in_a_row < 1:
        raise ValueError(f"in_a_row is {in_a_row}; it must be 1 or more")
    of_source, of_result = _runs(words(source), in_a_row), _runs(words(result), in_a_row)
    common = (of_source & of_result).total()
    return Fidelity(_missing(of_source.total(), common), _missing(of_result.total(), common))


def shares(source: str, result: str) -> dict[str, float]:
    """The figures of a conversion for a report: the shares `lost`, `invented` and `torn`, to four digits."""
    lost, invented = fidelity(source, result)
    return {"lost": round(lost, 4), "invented": round(invented, 4), "torn": round(torn(source, result), 4)}


def torn(source: str, result: str) -> float:
    """The share of a source's pairs of neighbouring words that a result does not have, though it has their words.

    A word that was lost excuses the two pairs that it was in. A block that was moved tears a pair at each of its ends;
    lines of two columns that were mixed tear one in some eight; a paragraph mixed word by word tears nearly all. The
    source's own order counts as right: of a PDF file that in which it draws its text.

    Args:
        source: The text that was converted.
        result: What the conversion gave, without markup that itself has words.
    """
    of_source, of_result = words(source), words(result)
    left, excused = Counter(pairwise(of_result)), Counter(of_source) - Counter(of_result)
    excused += excused
    count = 0
    for pair in pairwise(of_source):
        if left[pair]:
            left[pair] -= 1
        elif excused[pair[0]]:
            excused[pair[0]] -= 1
        elif excused[pair[1]]:
            excused[pair[1]] -= 1
        else:
            count += 1
    return count / max(len(of_source) - 1, 1)


def _runs(of_text: list[str], in_a_row: int) -> Counter[tuple[str, ...]]:
    """All runs of so many words; a shorter text is one run."""
    return Counter(zip(*(of_text[start:] for start in range(min(in_a_row, len(of_text)))), strict=False))


def _missing(total: int, common: int) -> float:
    return 1 - common / total if total else 0.0
