"""Questions that are too long for a model: where they are cut, and the note that says so.

A question that leaves no room for the passages beside it keeps its first tokens, half of the input's room; one that is
read alone keeps as many as fit.  Earlier turns lose their oldest words first.  What fits is never changed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def first_tokens(tokenizer: "PreTrainedTokenizerBase", text: str, most: int) -> str:
    """The beginning of a text that has `most` tokens; the text itself if it has no more."""
    if surely_fits(text, most):
        return text
    spans = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)["offset_mapping"]
    return text if len(spans) <= most else text[: spans[most - 1][1]] if most else ""


def surely_fits(text: str, room: int) -> bool:
    """Whether a text has at most `room` tokens, which its length shows: a token has at least one byte."""
    return len(text.encode()) <= room


def token_count(tokenizer: "PreTrainedTokenizerBase", text: str) -> int:
    """Number of tokens of a text, without special tokens."""
    return len(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])


def longest_fitting(least: int, most: int, fits: Callable[[int], bool]) -> int | None:
    """The greatest number from `least` to `most` that fits, found by bisection; None if `least` does not."""
    found = None
    while least <= most:
        middle = (least + most) // 2
        if fits(middle):
            found, least = middle, middle + 1
        else:
            most = middle - 1
    return found


def question_note(kept: int, tokens: int, which: str = "first") -> str:
    """The note on a question of which only the first tokens are read, or the last."""
    return f"reads the {which} {kept:,} of the question's {tokens:,} tokens"


HISTORY_NOTE = "reads the question without the oldest words of its earlier turns"
