"""Earlier turns of a question: which systems read them, and the question with them in one text."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from common.records import Question
from harness.runtime.long_questions import cutting_models, longest_fitting
from models.long_questions import HISTORY_NOTE


def reads_history(system: object) -> bool:
    """Whether a system or retriever takes the earlier turns of a question: its rewriter has `reads_history`."""
    return bool(getattr(getattr(system, "rewriter", None), "reads_history", False))


def joined(turns: Sequence[str], question: str) -> str:
    """A question with its earlier turns before it, oldest first."""
    return " ".join([*filter(None, turns), question])


def with_turns(question: Question, system: object = None) -> Question:
    """The question with its earlier turns as a part of its text, for what reads a text alone.

    Args:
        question: The question.
        system: What reads it, loaded. If a model of it would cut the text, the oldest words of the turns are left out,
            never words of the question.
    """
    if not question.history:
        return question
    models = [model for _, model in cutting_models(system)]
    words = " ".join(filter(None, question.history)).split()

    def text(kept: int) -> str:
        return joined(words[len(words) - kept :], question.text)

    whole = joined(question.history, question.text)
    if not all(_fits(each, whole) for each in models):
        kept = longest_fitting(0, len(words) - 1, lambda count: all(_fits(each, text(count)) for each in models))
        whole = text(kept or 0)
    return replace(question, text=whole, history=())


def turn_notes(system: object, question: Question) -> dict[str, str]:
    """For which models `with_turns` leaves words of earlier turns out, each with a note."""
    whole = joined(question.history, question.text)
    models = cutting_models(system) if question.history else []
    return {name: HISTORY_NOTE for name, each in models if not _fits(each, whole)}


def _fits(model: Any, text: str) -> bool:
    """Whether a model reads a text as a whole, and a reader's context has room for more."""
    return not model.cut_note(text) and getattr(model, "leaves_room", lambda _: True)(text)
