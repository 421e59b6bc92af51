"""Earlier turns of a question: who reads them, and the question with them in one text."""

from collections.abc import Sequence
from dataclasses import replace

from common.records import Question


def reads_history(system: object) -> bool:
    """Whether a system or retriever takes the earlier turns of a question.

    Its rewriter has `reads_history`, or the rewriter around which that one is built.
    """
    rewriter = getattr(system, "rewriter", None)
    if rewriter is None:
        return False
    return bool(getattr(rewriter, "reads_history", False)) or reads_history(rewriter)


def joined(turns: Sequence[str], question: str) -> str:
    """A question with its earlier turns before it, oldest first."""
    return " ".join([*filter(None, turns), question])


def with_turns(question: Question) -> Question:
    """The question with its earlier turns as a part of its text, for what reads a text alone."""
    return replace(question, text=joined(question.history, question.text), history=()) if question.history else question
