"""Answer metrics: four normalization functions, exact match, F1, inclusion, and DPR's has-answer rule.

Data sets and papers normalize answers differently, so every metric takes the normalization as an argument.  Pure
functions; standard library only, except that `has_answer` and `characters` import the package `regex` when they are
called.
"""

import functools
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from common.records import nfkc

if TYPE_CHECKING:
    import regex

Normalize = Callable[[str], str]

_PUNCTUATION = frozenset(string.punctuation)
_TRIVIAQA_PUNCTUATION = _PUNCTUATION | frozenset("\u2018\u2019\u00b4`")  # curly quotes, acute, grave
_OF_NO_PASSAGE = frozenset(("yes", "no", "true", "false", "noanswer", "no answer"))  # words of any text
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ASCII_TOKENS = re.compile(r"[a-z0-9]+|[!-~]").findall
# Letters and marks of the scripts without blanks between words, and of Korean, which writes particles on to words:
# KorQuAD's own F1 counts characters, too.
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u0edc-\u0edf"  # Thai, Lao
    "\u1000-\u103f\u1050-\u108f\u109a-\u109d\ua9e0-\ua9ef\uaa60-\uaa7f"  # Burmese
    "\u1780-\u17d3\u17d7\u17dc\u17dd"  # Khmer
    "\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Chinese
    "\u3041-\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb\uffa0-\uffdc"  # Hangul
)
# zero-width joiners as stored texts have them: within a word of Persian or Hindi, which may be written without
_JOINER = re.compile("(?<=[\u0590-\u1dff\ua800-\uabff])[\u200c\u200d]")
# what NFKC makes such letters of: 人 as a radical, (株) in one character, months, kana and Hangul in circles
_COMPATIBLE = (
    "\u2f00-\u2fd5\u3200-\u321e\u3220-\u3247\u3260-\u327e\u3280-\u32b0\u32c0-\u32cb\u32d0-\u3370\u337b-\u337f"
    "\u33e0-\u33fe"
)
_is_unspaced = re.compile(f"[{_UNSPACED}{_COMPATIBLE}]").search
_RARE = "\U00020000-\U0003ffff"  # Chinese characters, by themselves: a class with them is searched ten times slower
_is_rare = re.compile(f"[{_RARE}]").search


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


def characters(text: str) -> str:
    """As `squad`, but every character of a script without blanks between words is a word: 北京市 is 北 京 市.

    Of Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese, with the marks of a character. Full-width forms are
    plain, and no script's punctuation counts.
    """
    kept = "".join(
        character
        for character in nfkc(text).lower()
        if character not in _PUNCTUATION and not unicodedata.category(character).startswith("P")
    )
    spaced = _pattern(rf"[{_UNSPACED}{_RARE}]\p{{M}}*").sub(r" \g<0> ", kept)
    return " ".join(_ARTICLES.sub(" ", spaced).split())


def is_unspaced(text: str) -> bool:
    """Whether a text has letters of a script without blanks between words; see `characters`."""
    return _is_unspaced(text) is not None or _is_rare(text) is not None


Normalization = Literal["squad", "triviaqa", "re_rag", "characters"]
NORMALIZATIONS: dict[Normalization, Normalize] = {
    "squad": squad,
    "triviaqa": triviaqa,
    "re_rag": re_rag,
    "characters": characters,
}


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


def usual_scores(prediction: str, golds: Sequence[str]) -> tuple[float, float]:
    """Exact match and F1 under the default normalization, both sides in NFKC.

    Each gold answer is compared by its own script: by `characters` if it needs that, else by `squad`.

    Raises:
        ValueError: If there is no gold answer.
    """
    predicted = nfkc(prediction)
    pairs = [([gold], characters if is_unspaced(gold) else squad) for gold in map(nfkc, _not_empty(golds))]
    return max(exact_match(predicted, *pair) for pair in pairs), max(f1(predicted, *pair) for pair in pairs)


def inclusion(prediction: str, golds: Sequence[str], normalize: Normalize = squad) -> float:
    """1.0 if a normalized gold answer is a substring of the normalized prediction, else 0.0 (Adaptive-RAG's accuracy).

    A gold answer that is empty after normalization matches an empty prediction only.

    Raises:
        ValueError: If there is no gold answer.
    """
    predicted = normalize(prediction)
    normalized = [normalize(gold) for gold in _not_empty(golds)]
    return float(any(gold in predicted if gold else not predicted for gold in normalized))


def findable(answers: Sequence[str]) -> list[str]:
    """The answers that has-answer looks for: not yes, no, true, false and noanswer, which a passage says of anything.

    A question without one is none that has-answer says something about.
    """
    return [answer for answer in answers if squad(answer) not in _OF_NO_PASSAGE]


def one_character(answers: Sequence[str]) -> bool:
    """Whether has-answer looks for answers of one letter or digit alone, which many passages have by chance."""
    looked_for = findable(answers)
    signs = [sum(map(str.isalnum, nfkc(answer))) for answer in looked_for]
    return max(signs, default=0) == 1 and not any(map(is_unspaced, looked_for))


def has_answer(text: str, answers: Sequence[str]) -> bool:
    """Whether a passage contains one of the answers, by DPR's rule (`qa_validation.py`, match type "string").

    Answers that are not `findable` are in no passage.

    Both are NFD-normalized, split into tokens (runs of letters, digits and marks, or other single visible characters)
    and lower-cased; the answer's tokens must occur contiguously.  Titles are not searched.  No tokens, no match. DPR is
    made for English: in a text with a script without blanks between words, each of its characters is a token, as in
    `characters`, and text and answer are compared in NFKC: full-width forms are plain, m² is m2.
    """
    by_characters = is_unspaced(text)
    folded, known = _folded(text), [_answer_tokens(answer, by_characters) for answer in answers]
    possible = [tokens for tokens, parts in known if tokens and all(part in folded for part in parts)]
    if not possible:  # most passages, at a tenth of the time
        return False
    found = _tokens(text, by_characters)
    return any(_occurs(tokens, found) for tokens in possible)


def yes_or_no(text: str) -> str:
    """The answer of a text to a yes-or-no question, by its first word.

    `yes` for yes and true, `no` for no and false, else empty.
    """
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
def _pattern(pattern: str) -> "regex.Pattern[str]":
    import regex  # `re` does not support Unicode categories

    return regex.compile(pattern)


def _tokens(text: str, by_characters: bool) -> list[str]:
    """DPR's tokens of a text, or those in which a character of a script without blanks is a token."""
    if text.isascii():  # the same several times faster
        return _ASCII_TOKENS(text.lower())
    pattern = r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]"
    if by_characters:  # before NFD, which would take syllables of Hangul apart
        alone = f"[{_UNSPACED}{_RARE}]"
        pattern = rf"{alone}\p{{M}}*|(?:(?!{alone})[\p{{L}}\p{{N}}\p{{M}}])+|[^\p{{Z}}\p{{C}}]"
        found = [unicodedata.normalize("NFD", token) for token in _pattern(pattern).findall(nfkc(text))]
    else:
        found = _pattern(pattern).findall(unicodedata.normalize("NFD", _without_joiners(text)))
    return [token.lower() for token in found]


def _without_joiners(text: str) -> str:
    return _JOINER.sub("", text) if "\u200c" in text or "\u200d" in text else text


@functools.lru_cache(maxsize=4096)  # a question's answers are looked for in many passages, one after the other
def _answer_tokens(answer: str, by_characters: bool) -> tuple[list[str], list[str]]:
    """The tokens of an answer, and each as it is a part of the `_folded` text that holds it."""
    tokens = _tokens(answer, by_characters) if findable([answer]) else []
    return tokens, [token.casefold() for token in tokens]


def _folded(text: str) -> str:
    """A text in which every token of it is found in one look, whatever its place: σ and ς are one letter."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFD", nfkc(text) if is_unspaced(text) else _without_joiners(text)).casefold()


def _occurs(needle: list[str], haystack: list[str]) -> bool:
    size, place = len(needle), -1
    for _ in range(haystack.count(needle[0]) if needle else 0):
        place = haystack.index(needle[0], place + 1)
        if haystack[place : place + size] == needle:
            return True
    return False
