"""Batching by length under a token budget, padding, and fair truncation.  Shape legend: P rows, T tokens."""

from collections.abc import Sequence

import torch
from torch import Tensor

PAD_TO_MULTIPLE = 8
IGNORE = -100  # label of a padded target token, as in torch.nn.functional.cross_entropy


def length_batches(lengths: Sequence[int], tokens_per_batch: int) -> list[list[int]]:
    """Row indices in batches, longest rows first, so that each batch's padded size stays within a token budget.

    Args:
        lengths: Tokens of each sequence, padding included where it is known.
        tokens_per_batch: Maximum of rows times longest row; a sequence that exceeds it gets its own batch.
    """
    batches: list[list[int]] = []
    width = 0
    for row in sorted(range(len(lengths)), key=lambda row: (-lengths[row], row)):
        if not batches or (len(batches[-1]) + 1) * width > tokens_per_batch:
            batches.append([])
            width = lengths[row]
        batches[-1].append(row)
    return batches


def pad(
    sequences: Sequence[Sequence[int]], pad_id: int, max_tokens: int, length: int | None = None, left: bool = False
) -> tuple[Tensor, Tensor]:
    """Padded token ids and attention mask, both (P, T) int64; padded on the right, or with `left` on the left.

    T is `length`, or the longest row rounded up to a multiple of 8 (at most `max_tokens`): it suits tensor cores,
    and few distinct shapes keep allocator and kernel caches from growing by gigabytes over a run.
    """
    longest = max(map(len, sequences))
    T = length or max(longest, min(-(-longest // PAD_TO_MULTIPLE) * PAD_TO_MULTIPLE, max_tokens))
    ids_PT = torch.full((len(sequences), T), pad_id)
    attention_PT = torch.zeros(len(sequences), T, dtype=torch.long)
    for row, sequence in enumerate(sequences):
        place = slice(T - len(sequence), T) if left else slice(len(sequence))
        ids_PT[row, place] = torch.tensor(sequence)
        attention_PT[row, place] = 1
    return ids_PT, attention_PT


def fair_shares(lengths: Sequence[int], budget: int) -> list[int]:
    """Tokens to keep of each text within a total budget, max-min fair: what short texts leave goes to longer ones.

    A remainder that cannot be split evenly goes to the last texts.

    Raises:
        ValueError: If the budget is negative.
    """
    if budget < 0:
        raise ValueError(f"the budget must not be negative, got {budget}")
    level, rest = 0, budget
    while (longer := [row for row, length in enumerate(lengths) if length > level]) and rest >= len(longer):
        rise = min(rest // len(longer), min(lengths[row] for row in longer) - level)
        level, rest = level + rise, rest - rise * len(longer)
    kept = [min(length, level) for length in lengths]
    for row in longer[len(longer) - min(rest, len(longer)) :]:
        kept[row] += 1
    return kept
