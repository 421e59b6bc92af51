"""What batches have in common: their size, and a copy in pinned memory, which a GPU fetches while it computes."""

from dataclasses import fields
from typing import Any, Self

from torch import Tensor


class Batch:
    """A base class of dataclasses that hold tensors, other batches, and lists of either."""

    def pin_memory(self) -> Self:
        """A copy with all tensors in pinned memory.  Lightning moves each of them to the GPU without waiting for it."""
        values = {each.name: _pinned(getattr(self, each.name)) for each in fields(self)}  # type: ignore[arg-type]
        return type(self)(**values)


class TokenBatch(Batch):
    """The size of a batch of P sequences of at most T tokens; a base class."""

    ids_PT: Tensor

    @property
    def examples(self) -> int:
        """Number of sequences: triples, pairs, rewrites, questions."""
        return len(self.ids_PT)

    @property
    def tokens(self) -> int:
        """Number of tokens, padding included; those of an encoder-decoder's targets are not among the input's."""
        return self.ids_PT.numel()


def _pinned(value: Any) -> Any:
    if isinstance(value, list):
        return [_pinned(each) for each in value]
    return value.pin_memory() if isinstance(value, Tensor | Batch) else value
