"""A sequence whose items are computed on request; few of them are kept."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar, overload

Item = TypeVar("Item", covariant=True)


class LazySequence(Sequence[Item]):
    """Items by place.

    Args:
        count: Number of items.
        compute: Place, from 0 -> item; the same item whenever it is called.
        kept: How many of the items used last are not computed again.
    """

    def __init__(self, count: int, compute: Callable[[int], Item], kept: int = 0) -> None:
        self._count = count
        self._compute = lru_cache(kept)(compute) if kept else compute

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> list[Item]: ...
    def __getitem__(self, place: int | slice) -> Item | list[Item]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(self._count))]
        if not -self._count <= place < self._count:
            raise IndexError(place)
        return self._compute(place % self._count)
