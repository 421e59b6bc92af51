"""A rewriting strategy of DMQR-RAG, a strict parser of the outputs by strategies, and the queries in a rewrite."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from common.records import clean, nfkc
from common.words import word_texts

SEPARATOR = "; "  # between the queries of a strategy that makes several
_SEMICOLON, _COLON = "[;\uff1b]", "[:：]"  # also as they are written among Chinese
REASON = "reason"  # what the line with the reason of a choice begins with
_BULLET = re.compile(r"^(?:(?:\d{1,3}[.)]|[-*•])\s+)+")  # before a title, as language models write lists


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way to rewrite a question."""

    name: str  # in configs, files and reports
    title: str  # in prompts and in their outputs
    description: str  # what the rewriter does
    guideline: str  # for which questions, for the adaptive choice
    several: bool = False  # whether it makes several queries


@dataclass(frozen=True, slots=True)
class ParsedRewrites:
    """The output of a prompt, parsed."""

    queries: dict[str, tuple[str, ...]]  # by strategy
    malformed: tuple[str, ...]  # lines that hold no rewrite by one of the strategies
    reason: str
    empty: tuple[str, ...] = ()  # strategies whose lines hold no query


def parse_output(text: str, chosen: Sequence[Strategy]) -> ParsedRewrites:
    """Parse `Title: rewrite` lines and the `reason: ` line.

    A line with another title, without a rewrite, or with a title that stood before is malformed; empty lines do not
    count. A title may have a list's mark before it and asterisks around it. The queries of a strategy that makes
    several are separated by semicolons, and repeated ones are dropped.
    """
    titles = {label_of(strategy.title): strategy for strategy in chosen}
    queries: dict[str, tuple[str, ...]] = {}
    malformed: list[str] = []
    empty: dict[str, None] = {}
    reason = ""
    for line in filter(str.strip, text.splitlines()):
        before, after = [*re.split(_COLON, clean(line), maxsplit=1), ""][:2]
        label, value = label_of(before), after.lstrip("* ").removesuffix("**")
        if label == REASON and value and not reason:
            reason = value
            continue
        strategy = titles.get(label)
        found = queries_of(value, strategy.several) if strategy else ()
        if strategy is None or not found or strategy.name in queries:
            malformed.append(clean(line))
            if strategy is not None and not found:
                empty[strategy.name] = None
            continue
        queries[strategy.name] = found
    return ParsedRewrites(queries, tuple(malformed), reason, tuple(name for name in empty if name not in queries))


def queries_of(text: str, several: bool) -> tuple[str, ...]:
    """The distinct queries in a rewrite; one, unless the strategy makes several, which semicolons separate.

    Queries are repeated if they differ only in case and punctuation; the first is kept. A text without a word is no
    query.
    """
    parts = re.split(_SEMICOLON, text) if several else [text]
    queries: dict[tuple[str, ...], str] = {}
    for query in map(clean, parts):
        if words := words_of(query):
            queries.setdefault(words, query)
    return tuple(queries.values())


def words_of(query: str) -> tuple[str, ...]:
    """The words of a query as they are compared: queries with the same words count as one."""
    return tuple(word_texts(query))


def label_of(text: str) -> str:
    """A title as it is compared: lower case, without a list's mark and asterisks."""
    return without_bullet(text).strip("* ").lower()


def without_bullet(line: str) -> str:
    """A line in NFKC without the mark of a list before it, such as "1. " or "- "."""
    return _BULLET.sub("", nfkc(line))
