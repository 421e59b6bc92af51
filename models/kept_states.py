"""Key and value states of tokens that several rows of a causal LM begin with: read once, repeated for every row.

Kept states stand where the row's tokens would: rows are padded on the left alone, so a window of attention reaches as
far back as without them. A row that is shorter than others has fewer kept tokens, and reads more of its own again.

Shape legend: U rows that were read, P rows that go on, S slots (padding and tokens) before those that are read now.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

WORTHWHILE = 32  # tokens that rows must have in common
CHEAPER = 8  # a kept token needs memory and no computation: it counts as an eighth of one that is read


@dataclass(frozen=True, slots=True)
class KeptStates:
    """The states of U left-padded rows of tokens."""

    cache: DynamicCache  # all tokens of each layer, also of those that look back no further than a window
    lengths: Sequence[int]  # tokens of each row

    def repeated(self, rows: Sequence[int], starts: Sequence[int], slots: int) -> DynamicCache:
        """A cache of the first `slots` slots of P rows.

        Args:
            rows: Which row each one begins with.
            starts: Slot of each one's first token.
            slots: S, at most as many as hold kept tokens of every row.
        """
        cache = DynamicCache()
        rows_P, first_P = torch.tensor(rows), torch.tensor(starts)
        for number, layer in enumerate(self.cache.layers):
            assert isinstance(layer, DynamicLayer)
            width, device = layer.keys.shape[2], layer.keys.device
            offset_P = width - torch.tensor(self.lengths)[rows_P] - first_P
            source_PS = (torch.arange(slots) + offset_P[:, None]).clamp(min=0).to(device)  # 0: padding, never looked at
            from_P1 = rows_P[:, None].to(device)
            keys, values = (states[from_P1, :, source_PS].transpose(1, 2) for states in (layer.keys, layer.values))
            cache.update(keys, values, number)
        return cache


def can_keep(network: PreTrainedModel) -> bool:
    """Whether the states of a network are the key and value states of each token, and nothing else."""
    known = (DynamicLayer, DynamicSlidingWindowLayer)
    return network._supports_default_dynamic_cache() and all(
        type(layer) in known for layer in DynamicCache(config=network.config).layers
    )


def common_prefix(sequences: Sequence[Sequence[int]]) -> int:
    """Number of tokens that all sequences begin with, at least one less than the shortest has."""
    if not sequences:
        return 0
    low, high = min(map(tuple, sequences)), max(map(tuple, sequences))  # no two have less in common
    shortest = min(map(len, sequences))
    different = (place for place, (one, other) in enumerate(zip(low, high, strict=False)) if one != other)
    return min(next(different, shortest), shortest - 1)
