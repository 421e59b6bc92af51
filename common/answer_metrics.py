"""Answer metrics: three normalization functions, exact match, F1, inclusion, and DPR's has-answer rule.

Data sets and papers normalize answers differently, so every metric takes the normalization as an argument.  Pure
functions; standard library only, except that `has_answer` imports the package `regex` when it is called.
"""

import functools
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

Normalize = Callable[[str], str]

_PUNCTUATION = frozenset(string.punctuation)
_TRIVIAQA_PUNCTUATION = _PUNCTUATION | frozenset("\u2018\u2019\u00b4`")  # curly quotes, acute, grave
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def squad(text: str) -> str:
    """SQuAD's normalization, also HotpotQA's and FiD's: lower case, no punctuation, no articles, single spaces."""
    kept = "".join(character for character in text.lower() if character not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", kept).split())


def triviaqa(text: str) -> str:
    """TriviaQA's official normalization: as `squad`, but punctuation, underscore and curly quotes become spaces."""
    blanked = "".join(" " if character in _TRIVIAQA_PUNCTUATION else character for character in text.lower())
    return " ".join(_ARTICLES.sub(" ", blanked).split())


def re_rag(text: str) -> str:
    """Normalization of RE-RAG's released code: no leading "Answer: ", lower case, no articles, no characters other than
    word characters (underscore included) and white space, single spaces."""
    unprefixed = _ARTICLES.sub("", text.removeprefix("Answer: ").lower())
    return " ".join(re.sub(r"[^\w\s]", "", unprefixed).split())


Normalization = Literal["squad", "triviaqa", "re_rag"]
NORMALIZATIONS: dict[Normalization, Normalize] = {"squad": squad, "triviaqa": triviaqa, "re_rag": re_rag}


def exact_match(prediction: str, golds: Sequence[str], normalize: Normalize = squad) -> float:
    """1.0 if the prediction equals a gold answer after normalization, else 0.0.

    Raises:
        ValueError: If there is no gold answer.
    """
    return float(normalize(prediction) in map(normalize, _not_empty(golds)))


def f1(prediction: str, golds: Sequence[str], normalize: Normalize = squad, yes_no_rule: bool = False) -> float:
    """Token F1 against the closest gold answer, in [0, 1]; 1.0 if both sides normalize to nothing (SQuAD 2).

    Args:
        prediction: The predicted answer.
        golds: The accepted answers.
        normalize: The normalization, applied to both sides.
        yes_no_rule: HotpotQA's rule: if either side is yes, no or noanswer, F1 is 0 unless both are equal.

    Raises:
        ValueError: If there is no gold answer.
    """
    predicted = normalize(prediction)
    return max(_token_f1(predicted, normalize(gold), yes_no_rule) for gold in _not_empty(golds))


def inclusion(prediction: str, golds: Sequence[str], normalize: Normalize = squad) -> float:
    """1.0 if a normalized gold answer is a substring of the normalized prediction, else 0.0 (Adaptive-RAG's accuracy).

    A gold answer that is empty after normalization matches an empty prediction only.

    Raises:
        ValueError: If there is no gold answer.
    """
    predicted = normalize(prediction)
    normalized = [normalize(gold) for gold in _not_empty(golds)]
    return float(any(gold in predicted if gold else not predicted for gold in normalized))


def has_answer(text: str, answers: Sequence[str]) -> bool:
    """Whether a passage contains one of the answers, by DPR's rule (`qa_validation.py`, match type "string").

    Both are NFD-normalized, split into tokens (runs of letters, digits and marks, or other single visible characters)
    and lower-cased; the answer's tokens must occur contiguously.  Titles are not searched.  No tokens, no match.
    """
    tokens = _dpr_tokens(text)
    return any(_occurs(_dpr_tokens(answer), tokens) for answer in answers)


def yes_or_no(text: str) -> str:
    """What a text answers to a question for yes or no, by its first word: `yes` for yes and true, `no` for no and false, else empty."""
    first = squad(text).partition(" ")[0]
    return {"yes": "yes", "true": "yes", "no": "no", "false": "no"}.get(first, "")


def _not_empty(golds: Sequence[str]) -> Sequence[str]:
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
    import regex  # `re` does not support Unicode categories

    return regex.compile(r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]").findall


def _dpr_tokens(text: str) -> list[str]:
    return [token.lower() for token in _dpr_token_pattern()(unicodedata.normalize("NFD", text))]


def _occurs(needle: list[str], haystack: list[str]) -> bool:
    size = len(needle)
    return size > 0 and any(haystack[i : i + size] == needle for i in range(len(haystack) - size + 1))
