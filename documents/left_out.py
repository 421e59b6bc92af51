"""Texts that the reading of a document left out or moved, for the report: each rule once, with its counts."""

from common.words import word_count
from documents.normal_form import one_line

_EXAMPLE = 40  # characters of the first text that a rule took


class LeftOut:
    """Collects texts that a reader leaves out or moves."""

    def __init__(self) -> None:
        self._rules: dict[str, tuple[int, int, str]] = {}  # times, words, the first text
        self._parts: list[str] = []

    def append(self, part: str) -> None:
        """Add a line about a part that could not be read, e.g. "page 7: no text (scanned?)"."""
        self._parts.append(part)

    def text(self, rule: str, text: str) -> None:
        """Count a text that a rule took from its place; one without words does not count.

        Args:
            rule: The texts and their treatment, e.g. "hidden text left out", "notes put behind their text".
            text: The text.
        """
        if count := word_count(text):
            times, words, first = self._rules.get(rule, (0, 0, text[: 4 * _EXAMPLE]))
            self._rules[rule] = (times + 1, words + count, first)

    @property
    def lines(self) -> tuple[str, ...]:
        """For `Document.left_out`: a line for each rule in the order of their first texts, then the parts."""
        return (*(_line(rule, *counts) for rule, counts in self._rules.items()), *self._parts)


def _line(rule: str, times: int, words: int, first: str) -> str:
    example = one_line(first)
    example = example if len(example) <= _EXAMPLE else f"{example[:_EXAMPLE].rstrip()} ..."
    return f'{rule}: {times:,} x, {words:,} word{"s" * (words != 1)}, e.g. "{example}"'
