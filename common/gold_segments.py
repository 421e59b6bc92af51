"""Relevance judgement for questions over documents.

Whether a passage holds the evidence of a gold segment, however the document was cut.
"""

import html
import re
from functools import lru_cache

from common.records import GoldSegment, Passage, nfkc
from common.words import CJK

_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)  # within a cell of a Markdown table
# a hyphen in a word or at the end of a line; PDFium writes the last two
_JOINING = re.compile("(?<=[^\\W_])[-\u2010\u2011\u0002\ufffe]\\s*(?=[^\\W_])")
_WORD = re.compile(rf"[{CJK}]|[^\W_{CJK}]+")  # a Chinese character stands alone: blanks beside it do not count


def is_relevant(passage: Passage, gold: GoldSegment) -> bool:
    """Whether the passage is of the gold segment's document and its text contains every piece of the evidence.

    Words are compared, in order, without case; white space, punctuation, Markdown's marks and escapes, and hyphens do
    not count, so that a sentence that was broken over lines, or a row of a table in any notation, is found. Only the
    text counts, not the passage's title: a heading says where the evidence stands, it is not the evidence.

    Args:
        passage: Its metadata names its `document`; a passage without one is not relevant.
        gold: The gold segment.
    """
    if gold.document not in documents_of(passage):
        return False
    text = _words(passage.text)
    return all(_words(piece) in text for piece in gold.evidence)


def documents_of(passage: Passage) -> tuple[str, ...]:
    """The document that a passage is of, and others with the same content; none for another passage."""
    about = passage.metadata or {}
    document, copies = about.get("document"), about.get("copies")
    others = map(str, copies) if isinstance(copies, list) else ()
    named = isinstance(document, str | int) and not isinstance(document, bool)
    return (str(document), *others) if named else tuple(others)


@lru_cache(maxsize=2**16)  # a study asks for the same passages for every question and every row
def _words(text: str) -> str:
    """The words, a blank before and after each; a blank alone if there are none."""
    plain = _JOINING.sub("", nfkc(_LINE_BREAK.sub(" ", html.unescape(text))))
    return " ".join(["", *_WORD.findall(plain.casefold()), ""])
