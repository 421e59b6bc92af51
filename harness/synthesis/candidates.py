"""Answer candidates of a passage, by rule: titles of other passages, names, dates and numbers.

    titles     titles of other passages that the text mentions
    names      runs of capitalized words, joined by `of`, `de`, `van` or `von`; a function word that begins a sentence
               is left out, and a single word that begins a sentence counts only if it is capitalized within a sentence
               too
    dates      `July 5, 2018`, `5 July 2018`, `July 2018`
    numbers    all others, such as 1986 or 3,500

Of candidates that overlap, titles count first, then the longest; of more than eight words none counts. Words of the
passage's own title are none.
"""

import re
from collections.abc import Iterable

from common.answer_metrics import squad
from common.records import Passage

_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = re.compile(rf"\b(?:\d{{1,2}} {_MONTH} \d{{4}}|{_MONTH} \d{{1,2}}, \d{{4}}|{_MONTH} \d{{4}})\b")
_NUMBER = re.compile(r"(?<![\w.,-])\d+(?:[.,]\d+)*(?![\w-])")
_UPPER = r"[^\W\d_a-z]"
# initials, or a word without 's
_CAPITALIZED = rf"(?:(?:{_UPPER}\.)+(?= )|(?:{_UPPER}\.)*{_UPPER}[\w&-]*(?:['\u2019](?!s\b)\w+)*)"
_NAME = re.compile(rf"(?<![\w-]){_CAPITALIZED}(?: (?:(?:of|de|van|von) )?{_CAPITALIZED}| \d+\b)*")
_SENTENCE_BEGINS = re.compile(r"(?:^|[.!?:;]\s+[\"“(]?)$")
_MAX_WORDS = 8  # of a candidate: longer runs are headings
_FUNCTION_WORD = re.compile(
    r"(?:a|an|the|this|that|these|those|he|she|it|they|we|i|you|his|her|its|their|our|your|in|on|at|by"
    r"|for|from|of|to|with|after|before|during|since|until|as|and|but|or|if|when|while|where|who|what"
    r"|which|there|here|most|many|much|some|all|both|each|no|not|one|two|although|because|however|also)",
    re.IGNORECASE,
)


def answer_candidates(passage: Passage, titles: Iterable[str] = ()) -> list[str]:
    """The answer candidates of a passage, in the order of the text, each once.

    Args:
        passage: The passage.
        titles: Titles of other passages that its text mentions, as they stand there.
    """
    text = passage.text
    mentioned = [m.span() for title in titles for m in re.finditer(rf"(?<!\w){re.escape(title)}(?!\w)", text)]
    rest = text
    for start, end in mentioned:
        rest = rest[:start] + "|" * (end - start) + rest[end:]
    others = [match.span() for match in _DATE.finditer(rest)]
    others += [span for match in _NAME.finditer(rest) if (span := _name_span(rest, *match.span()))]
    others += [match.span() for match in _NUMBER.finditer(rest)]
    spans = [*sorted(mentioned, key=_shortness), *sorted(others, key=_shortness)]
    own = set(squad(passage.title).split())
    kept: list[tuple[int, int]] = []
    for start, end in spans:  # of those that overlap, titles count first, then the longest
        if all(end <= other or start >= until for other, until in kept):
            kept.append((start, end))
    found: dict[str, str] = {}
    for start, end in sorted(kept):
        words = squad(text[start:end])
        if words and not set(words.split()) <= own and len(words.split()) <= _MAX_WORDS:
            found.setdefault(words, text[start:end])
    return list(found.values())


def _shortness(span: tuple[int, int]) -> int:
    return span[0] - span[1]


def _name_span(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The span of a name without the function word that begins its sentence; None if nothing is left."""
    if not _SENTENCE_BEGINS.search(text[:start]):
        return start, end
    first, _, rest = text[start:end].partition(" ")
    if _FUNCTION_WORD.fullmatch(first):
        return (end - len(rest), end) if rest else None
    if not rest:
        within = re.finditer(rf"(?<![\w-]){re.escape(first)}(?![\w-])", text)
        if not any(match.start() != start and not _SENTENCE_BEGINS.search(text[: match.start()]) for match in within):
            return None
    return start, end
