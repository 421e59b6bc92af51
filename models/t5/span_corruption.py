"""T5's span corruption (Raffel et al., Section 3.1.4): spans of a text are replaced by sentinels and form the target.

    text      Thank you for inviting me to your party last week
    input     Thank you <extra_id_0> me to your party <extra_id_1> week </s>
    target    <extra_id_0> for inviting <extra_id_1> last <extra_id_2> </s>

As in the released code, a random mask begins with kept tokens and ends with a span, so its target has no
final sentinel, unlike in the paper's example above.
"""

import random
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from common.errors import UserError
from common.ranges import at_least

TEXT_FORMAT = "title. text, passages joined, spans as <extra_id_n>; nfkc, single blanks; v1"
if TYPE_CHECKING:
    SpanTokens = int
    SpanLength = float
else:
    SpanTokens = at_least(8)  # maximum length of a corrupted text
    SpanLength = at_least(1, float)


def span_counts(length: int, noise_share: float, mean_span: float) -> tuple[int, int]:
    """Number of noise tokens and of spans in a text of `length` tokens.

    Args:
        length: Tokens, at least 2.
        noise_share: Share of noise tokens, in (0, 1).
        mean_span: Mean span length, in tokens, at least 1.
    """
    noise = min(max(round(length * noise_share), 1), length - 1)
    spans = min(max(round(noise / mean_span), 1), noise, length - noise)
    return noise, spans


def text_length(max_tokens: int, noise_share: float, mean_span: float, sentinels: int) -> int:
    """Length, in tokens, of the longest text whose corrupted input, end token included, has at most `max_tokens`.

    Raises:
        UserError: If the tokenizer has too few sentinels.
    """
    length = max_tokens - 1
    while _input_length(length + 1, noise_share, mean_span) <= max_tokens:
        length += 1
    spans = span_counts(length, noise_share, mean_span)[1]
    if spans > sentinels:
        raise UserError(
            f"max_tokens {max_tokens} needs {spans} sentinels, the tokenizer has {sentinels}: "
            "lower max_tokens or raise mean_span."
        )
    return length


def random_mask(length: int, noise_share: float, mean_span: float, rng: random.Random) -> list[bool]:
    """Noise mask (True for noise): alternating kept and noise runs of random lengths.

    Raises:
        ValueError: If `length` is below 2.
    """
    if length < 2:
        raise ValueError(f"a text of {length} tokens cannot be corrupted")
    noise, spans = span_counts(length, noise_share, mean_span)
    runs = zip(_random_lengths(length - noise, spans, rng), _random_lengths(noise, spans, rng), strict=True)
    return [is_noise for kept, noise in runs for is_noise in (*[False] * kept, *[True] * noise)]


def corrupt(
    tokens: Sequence[int], is_noise: Sequence[bool], sentinel_ids: Sequence[int], end_id: int
) -> tuple[list[int], list[int]]:
    """Input and target token ids of a text.  Every token is in exactly one of them.

    Args:
        tokens: Token ids of the text.
        is_noise: Noise mask of the same length; the first entry is False.
        sentinel_ids: Ids of <extra_id_0>, <extra_id_1>, ...: one per span, one more if kept tokens end the text.
        end_id: Id of the end token, appended to both.

    Raises:
        ValueError: If the mask has another length, begins with noise, or has too many spans.
    """
    if len(tokens) != len(is_noise) or is_noise[0]:
        raise ValueError("the mask must be as long as the text and begin with a kept token")
    runs = [(noise, [t for t, _ in run]) for noise, run in groupby(zip(tokens, is_noise, strict=True), lambda p: p[1])]
    if (len(runs) + 1) // 2 > len(sentinel_ids):
        raise ValueError(f"{len(runs) // 2} spans need more than {len(sentinel_ids)} sentinels")
    source: list[int] = []
    target: list[int] = []
    for number, (noise, run) in enumerate(runs):  # kept, noise, kept, noise, ...
        sentinel = sentinel_ids[number // 2]
        holder, other = (target, source) if noise else (source, target)
        holder.extend(run)
        other.append(sentinel)
    return [*source, end_id], [*target, end_id]


def _input_length(length: int, noise_share: float, mean_span: float) -> int:
    noise, spans = span_counts(length, noise_share, mean_span)
    return length - noise + spans + 1


def _random_lengths(count: int, parts: int, rng: random.Random) -> list[int]:
    """Lengths of `parts` non-empty runs that sum to `count`, drawn uniformly."""
    ends = [*sorted(rng.sample(range(1, count), parts - 1)), count]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]
