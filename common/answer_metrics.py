"""Comparing answers: three named normalization protocols, exact match, F1, inclusion, and DPR's "has answer".

There is no "the" normalizer: systems and papers differ, so every measure takes the protocol as a function.  Pure functions;
standard library only, but for `has_answer`, which imports the package `regex` when it is called.
"""

import functools
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

Normalize = Callable[[str], str]

_PUNCTUATION = frozenset(string.punctuation)
_TRIVIAQA_PUNCTUATION = _PUNCTUATION | frozenset("\u2018\u2019\u00b4`")  # curly quotes, acute, grave
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def squad(text: str) -> str:
    """SQuAD's protocol, also HotpotQA's and FiD's: lower case, punctuation deleted, articles out, single blanks."""
    kept = "".join(character for character in text.lower() if character not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", kept).split())


def triviaqa(text: str) -> str:
    """TriviaQA's own protocol: as `squad`, but punctuation, the underscore and curly quotes become blanks."""
    blanked = "".join(" " if character in _TRIVIAQA_PUNCTUATION else character for character in text.lower())
    return " ".join(_ARTICLES.sub(" ", blanked).split())


def re_rag(text: str) -> str:
    """RE-RAG's released protocol: a leading "Answer: " off, lower case, articles deleted, then all that is neither word
    character nor white space (the underscore stays), single blanks."""
    bare = _ARTICLES.sub("", text.removeprefix("Answer: ").lower())
    return " ".join(re.sub(r"[^\w\s]", "", bare).split())


def exact_match(prediction: str, golds: Sequence[str], normalize: Normalize = squad) -> float:
    """1.0 if the prediction equals a gold answer after normalization, else 0.0.

    Raises:
        ValueError: If there is no gold answer.
    """
    return float(normalize(prediction) in map(normalize, _some(golds)))


def f1(prediction: str, golds: Sequence[str], normalize: Normalize = squad, yes_no_rule: bool = False) -> float:
    """Token F1 against the closest gold answer, in [0, 1]; 1.0 if both sides normalize to nothing (SQuAD 2).

    Args:
        prediction: The answer to judge.
        golds: The accepted answers.
        normalize: The protocol.
        yes_no_rule: HotpotQA's rule: if either side is yes, no or noanswer, only equality counts.

    Raises:
        ValueError: If there is no gold answer.
    """
    predicted = normalize(prediction)
    return max(_token_f1(predicted, normalize(gold), yes_no_rule) for gold in _some(golds))


def inclusion(prediction: str, golds: Sequence[str], normalize: Normalize = squad) -> float:
    """1.0 if a normalized gold answer is a sub-string of the normalized prediction, else 0.0: Adaptive-RAG's accuracy.

    A gold answer that normalizes to nothing is included in nothing but itself.

    Raises:
        ValueError: If there is no gold answer.
    """
    predicted = normalize(prediction)
    normalized = [normalize(gold) for gold in _some(golds)]
    return float(any(gold in predicted if gold else not predicted for gold in normalized))


def has_answer(text: str, answers: Sequence[str]) -> bool:
    """Does a passage hold one of the answers, by DPR's rule (`qa_validation.py`, match type "string")?

    Both are NFD-normalized, cut into runs of letters, digits and marks or single other visible characters, and lower-cased;
    an answer is held if its tokens occur in a row.  DPR looks at the passage's text alone, not at its title.  An answer
    without tokens is held by nothing.
    """
    tokens = _dpr_tokens(text)
    return any(_occurs(_dpr_tokens(answer), tokens) for answer in answers)


def _some(golds: Sequence[str]) -> Sequence[str]:
    if not golds:
        raise ValueError("no gold answer to compare with")
    return golds


def _token_f1(prediction: str, gold: str, yes_no_rule: bool) -> float:
    if prediction == gold:
        return 1.0
    if yes_no_rule and {prediction, gold} & {"yes", "no", "noanswer"}:
        return 0.0
    predicted, golden = prediction.split(), gold.split()
    common = (Counter(predicted) & Counter(golden)).total()
    return 2 * common / (len(predicted) + len(golden)) if common else 0.0


@functools.cache
def _dpr_token_pattern() -> Callable[[str], list[str]]:
    import regex  # `re` knows no Unicode categories

    return regex.compile(r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]").findall


def _dpr_tokens(text: str) -> list[str]:
    return [token.lower() for token in _dpr_token_pattern()(unicodedata.normalize("NFD", text))]


def _occurs(needle: list[str], haystack: list[str]) -> bool:
    size = len(needle)
    return size > 0 and any(haystack[i : i + size] == needle for i in range(len(haystack) - size + 1))
