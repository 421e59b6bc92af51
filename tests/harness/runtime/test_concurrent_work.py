"""Calls at the same time: they overlap unless they share a part; an error is raised when all have ended."""

import threading

import pytest

from common.errors import UserError
from harness.runtime.concurrent_work import run_together


class Part:
    """An object of the project that may hold another one."""

    def __init__(self, inner: object = None) -> None:
        self.inner = inner


class Shareable(Part):
    concurrent_calls = True


def meets(barrier: threading.Barrier):
    """Ends only when the others are at work, too."""

    def call() -> str:
        barrier.wait(timeout=20)
        return threading.current_thread().name

    return call


def test_calls_of_different_parts_are_at_work_together() -> None:
    barrier = threading.Barrier(3)
    done = run_together({name: meets(barrier) for name in "abc"}, {name: Part(Part()) for name in "abc"})
    assert len({*done.values()}) == 3
    barrier, shared = threading.Barrier(2), Shareable()  # a part that several threads may call can be shared
    run_together({name: meets(barrier) for name in "ab"}, {"a": Part(shared), "b": Part(Part(shared))})


def test_calls_that_share_a_part_are_not() -> None:
    shared, lock = Part(), threading.Lock()
    parts = {"a": Part(shared), "b": Part(Part([shared])), "c": Part()}

    def exclusive() -> int:
        assert lock.acquire(blocking=False)  # fails if another one holds it
        threading.Event().wait(0.05)
        lock.release()
        return threading.get_ident()

    done = run_together({"a": exclusive, "b": exclusive, "c": threading.get_ident}, parts)
    assert done["a"] == done["b"] != done["c"]
    everyone = run_together({name: exclusive for name in "ab"}, {"a": Part(), "b": Part()}, together=False)
    assert {*everyone.values()} == {threading.get_ident()}


def test_the_first_error_is_raised_when_all_calls_have_ended() -> None:
    ended: list[str] = []

    def wrong() -> None:
        raise UserError("wrong key")

    with pytest.raises(UserError, match="wrong key"):
        run_together({"a": wrong, "b": lambda: ended.append("b")}, {"a": Part(), "b": Part()})
    assert ended == ["b"]
