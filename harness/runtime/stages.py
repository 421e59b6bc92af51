"""Tells a listener, such as a page in a browser, the results of each stage of a system.  Standard library only."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from common.records import Answer

Listener = Callable[[str, Sequence[Answer]], None]
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def followed_by(listener: Listener) -> Iterator[None]:
    """Within this context, `listener` gets each stage's name, and the answer so far of each question."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def stage_ended(stage: str, answers: Sequence[Answer]) -> None:
    """Tell the listener the results of a stage: evidence, notes and costs of some questions, without a text."""
    if (listener := _LISTENER.get()) is not None:
        listener(stage, answers)
