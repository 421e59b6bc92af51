"""Copies of gold passages: other passages with the same text.

They answer the question, too, and must not be negatives.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from common.records import Passage, nfkc

_BETWEEN = " .:;,|-\"'"  # what may stand between a title and the text behind it
_ALIKE = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201b\u02bc`", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb", '"')
    | dict.fromkeys("\u2010\u2012\u2013\u2014\u2212", "-")
)


@dataclass(frozen=True, slots=True)
class GoldCopies:
    """The texts of a question's gold passages.  `passage in copies` says whether a passage has one of them.

    Texts are compared in NFKC. Case, the form of quotes and dashes, the mark at the end, and a title before the text do
    not count. The titles of two copies may differ. A passage without a text is no copy.
    """

    titles: tuple[str, ...]
    texts: frozenset[str]  # whole
    bare: frozenset[str]  # without the title before them

    @classmethod
    def of(cls, gold: Iterable[Passage]) -> "GoldCopies":
        """The copies of these passages, which include the passages themselves."""
        known = [(_form(passage.title), _form(passage.text)) for passage in gold]
        return cls(
            tuple(filter(None, {title: None for title, _ in known})),
            frozenset(text for _, text in known if text),
            frozenset(bare for title, text in known for bare in _without(text, (title,))),
        )

    def __contains__(self, passage: Passage) -> bool:
        text = _form(passage.text)
        return (
            text in self.texts
            or text in self.bare
            or any(bare in self.texts for bare in _without(text, (_form(passage.title), *self.titles)))
        )


def _form(text: str) -> str:
    return nfkc(text).casefold().translate(_ALIKE).strip(" .\"'")


def _without(text: str, titles: Iterable[str]) -> Iterator[str]:
    """The text without each title that stands before it."""
    for title in filter(None, titles):
        if text.startswith(title) and (bare := text[len(title) :].lstrip(_BETWEEN)):
            yield bare
