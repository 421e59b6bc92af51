"""What a system has found so far, told to who follows it, such as a page in a browser.  Standard library only."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from common.records import Answer

Listener = Callable[[str, Sequence[Answer]], None]
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def followed_by(listener: Listener) -> Iterator[None]:
    """What systems find within is told to `listener`: the stage's name, and an answer so far for each question."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def stage_ended(stage: str, answers: Sequence[Answer]) -> None:
    """Tell what a stage has found: evidence, notes and costs of some questions, without a text."""
    if (listener := _LISTENER.get()) is not None:
        listener(stage, answers)
