"""T5's span corruption by hand and by property."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.t5.span_corruption import corrupt, random_mask, span_counts, text_length

SENTINELS, END = list(range(1099, 999, -1)), 1


def test_the_papers_example() -> None:
    words = ["Thank", "you", "for", "inviting", "me", "to", "your", "party", "last", "week"]
    ids = list(range(10, 20))
    gone = {"for", "inviting", "last"}
    source, target = corrupt(ids, [word in gone for word in words], SENTINELS, END)
    word = dict(zip([*ids, 1099, 1098, 1097, END], [*words, "<X>", "<Y>", "<Z>", "</s>"], strict=True))
    assert " ".join(word[i] for i in source) == "Thank you <X> me to your party <Y> week </s>"
    assert " ".join(word[i] for i in target) == "<X> for inviting <Y> last <Z> </s>"


@pytest.mark.parametrize(
    ("max_tokens", "share", "mean", "text", "target"), [(512, 0.15, 3.0, 568, 114), (1024, 0.15, 3.0, 1137, 229)]
)  # 568 and 114 are those of the released configuration
def test_lengths_are_t5s(max_tokens: int, share: float, mean: float, text: int, target: int) -> None:
    length = text_length(max_tokens, share, mean, 100)
    noise, spans = span_counts(length, share, mean)
    assert (length, noise + spans + 1) == (text, target)
    assert length - noise + spans + 1 == max_tokens


@given(length=st.integers(2, 300), share=st.floats(0.01, 0.95), mean=st.floats(1, 20), seed=st.integers(0, 2**32))
def test_every_token_is_in_the_input_or_the_target(length: int, share: float, mean: float, seed: int) -> None:
    tokens = list(range(2000, 2000 + length))
    sentinels = list(range(9999, 9000, -1))
    mask = random_mask(length, share, mean, random.Random(seed))
    noise, spans = span_counts(length, share, mean)
    assert (len(mask), sum(mask)) == (length, noise)
    assert (mask[0], mask[-1]) == (False, True)
    assert len([1 for value, _ in itertools.groupby(mask) if value]) == spans
    source, target = corrupt(tokens, mask, sentinels, END)
    assert (len(source), len(target)) == (length - noise + spans + 1, noise + spans + 1)
    filling: dict[int, list[int]] = {}
    for token in target[:-1]:
        if token in sentinels[:spans]:
            filling[token] = []
        else:
            filling[list(filling)[-1]].append(token)
    assert [t for s in source[:-1] for t in filling.get(s, [s])] == tokens
