"""Layout of MasQA's question banks (HiQA; Chen et al., 2024).

CSV files with the columns `Question`, `Answer` and, in some, `Context`; most are Chinese. No passages.
"""

import re
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

from common.errors import DataError
from common.records import Gold, GoldSegment, Question, clean, nfkc
from common.words import CJK
from datamodules.formats import row_fields as fields
from datamodules.formats.row_fields import Row

REQUIRED_FIELDS = ("Question",)
SIGNATURE_FIELDS = ("Question", "Answer")
BY_NAME = True  # a table of questions and answers is most often no question bank

CHOICE, TRUE_OR_FALSE = "choice", "true or false"
_KINDS = {
    "单选题": CHOICE, "多选题": CHOICE, "选择题": CHOICE, "判断题": TRUE_OR_FALSE, "填空题": "cloze",
    "简答题": "short answer", "问答题": "short answer", "计算题": "calculation", "single choice": CHOICE,
    "multiple choice": CHOICE, "choice": CHOICE, "true or false": TRUE_OR_FALSE, "true/false": TRUE_OR_FALSE,
    "fill in the blank": "cloze", "cloze": "cloze", "short answer": "short answer", "calculation": "calculation",
}  # fmt: skip
_PREFIX = re.compile(rf"({'|'.join(map(re.escape, _KINDS))})(?: questions?)?\s*[:：]\s*", re.IGNORECASE)
_OPTION = re.compile(r"(?:(?<=\s)|^)([A-H\uff21-\uff28])\s*[.:、)\uff0e：\uff09]\s*")
_LETTERS = re.compile(  # of the right options, alone or before their text
    r"([A-H\uff21-\uff28](?:\s*(?:[,\uff0c、和&\uff06]|and\b)?\s*[A-H\uff21-\uff28])*)(?=\s*(?:$|[.:,、)]|[^\x00-\x7f]))\s*[.:。、),\uff0e：\uff09\uff0c]?\s*"
)
_TRUE, _FALSE = ("true", "yes", "√", "正确", "对"), ("false", "no", "\u00d7", "错误", "错")
_SIGNS = {**dict.fromkeys((*_TRUE, "✓", "✔", "是"), _TRUE), **dict.fromkeys((*_FALSE, "x", "✗", "✕", "否"), _FALSE)}
_PATH = re.compile(r"\s*\[desc\](.*?)\[desc\]", re.DOTALL)
_LEVEL = " __ "  # between document and headings
_SUFFIX = ".pdf"  # MasQA's documents are PDF files, which its contexts name without a suffix
_SENTENCE_END = re.compile(r"\n|(?<=[。\uff01\uff1f])|(?<=[.!?])\s+(?=[A-Z])")
_UNIT = re.compile(rf"[{CJK}]|[^\W_{CJK}]+")


def question(row: Row) -> Question:
    """A question without passages.

    Its kind is the word before it, in Chinese or English, e.g. `choice` for 单选题; empty without one.

    Accepted to a choice are the letters, the text of the options where there is one letter, and the answer as it is
    written; to a question for true or false the usual words and signs. A `Context` names document and headings of a
    gold segment (`[desc] document __ heading [desc]`); its evidence is the sentence of the context that shares most
    words with question and answer.

    Raises:
        DataError: If a column is missing, or a context does not name its document.
    """
    if "Answer" not in row:
        raise DataError("column 'Answer' is missing")
    given = fields.filled_text(row, "Question")
    prefix = _PREFIX.match(given)
    kind = _KINDS[prefix[1].lower()] if prefix else ""
    text = given[prefix.end() :] if prefix else given
    answer = clean(fields.optional_text(row, "Answer"))
    context = fields.optional_text(row, "Context")
    accepted: tuple[str, ...] = (answer,)
    if kind == CHOICE:
        accepted = _choices(text, answer)
    elif kind == TRUE_OR_FALSE:
        accepted = _SIGNS.get(nfkc(answer).lower().rstrip(".。"), (answer,))
    return Question(
        id=fields.id_or_hash(row, "id", given),
        text=text,
        answers=fields.answers(accepted),
        kind=kind,
        gold=Gold(segments=(_gold_segment(context, f"{text} {answer}"),) if context else ()),
    )


def options_of(text: str) -> Mapping[str, str]:
    """The options of a choice by letter."""
    marks = [*_OPTION.finditer(text)]
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    return {nfkc(mark[1]): text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)}


def _choices(text: str, answer: str) -> tuple[str, ...]:
    found = _LETTERS.match(answer)
    if found is None:
        return (answer,)
    letters = re.sub(r"[^A-H]", "", nfkc(found[1]))
    said = answer[found.end() :]
    if len(letters) > 1:
        return (letters, ", ".join(letters), answer)
    option = options_of(text).get(letters, "")
    # an answer whose text is that of another option contradicts itself, as one of the published files does: only its
    # letter counts
    others = {each for letter, each in options_of(text).items() if letter != letters}
    return (letters, *([] if said in others else [option, answer]))


def _gold_segment(context: str, asked: str) -> GoldSegment:
    path = _PATH.match(context)
    names = [clean(name) for name in path[1].split(_LEVEL)] if path else []
    if path is None or not names or not names[0]:
        raise DataError("column 'Context' does not begin with its document: [desc] document __ heading [desc]")
    found = [clean(each.strip().lstrip("*-•#")) for each in _SENTENCE_END.split(context[path.end() :])]
    sentences = [each for each in found if _UNIT.search(each)]
    if not sentences:
        raise DataError("column 'Context' holds no text behind its headings")
    document = names[0] if "." in names[0] else names[0] + _SUFFIX
    return GoldSegment(document, (max(sentences, key=lambda each: _overlap(each, asked)),), headings=tuple(names[1:]))


def _overlap(sentence: str, asked: str) -> float:
    """F1 of words and of pairs of neighbouring ones; in Chinese, of characters."""
    one, other = _pairs(sentence), _pairs(asked)
    return 2 * (one & other).total() / max(1, one.total() + other.total())


def _pairs(text: str) -> Counter[tuple[str, ...]]:
    units = _UNIT.findall(nfkc(text).casefold())
    return Counter([*pairwise(units), *((unit,) for unit in units)])
