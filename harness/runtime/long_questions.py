"""Questions and passages that a system's models cut, and earlier turns, which are put before a question.

Earlier turns lose their oldest words first, then a question its last tokens; a note says which model read less.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from common.records import Answer, Question
from models.long_questions import HISTORY_NOTE, longest_fitting

CUT = "cut"  # note of an answer: which models read a part of the question alone
_DEPTH = 6  # of parts within parts, where a model is looked for
_OURS = ("harness.", "models.", "tests.")


def reads_history(system: object) -> bool:
    """Whether a system or retriever takes the earlier turns of a question: its rewriter has `reads_history`."""
    return bool(getattr(getattr(system, "rewriter", None), "reads_history", False))


def as_read(system: object, questions: Sequence[Question]) -> tuple[list[Question], list[dict[str, str]]]:
    """The questions as a system reads them, and by model a note where words of earlier turns are left out.

    Turns are put before the question's text, unless the system reads them.
    """
    if reads_history(system):
        return [*questions], [{} for _ in questions]
    return [with_turns(each, system) for each in questions], [turn_notes(system, each) for each in questions]


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
    words = " ".join(question.history).split()

    def text(kept: int) -> str:
        return " ".join([*words[len(words) - kept :], question.text])

    whole = _whole(question)
    if not all(_fits(each, whole) for each in models):
        kept = longest_fitting(0, len(words) - 1, lambda count: all(_fits(each, text(count)) for each in models))
        whole = text(kept or 0)
    return replace(question, text=whole, history=())


def turn_notes(system: object, question: Question) -> dict[str, str]:
    """For which models `with_turns` leaves words of earlier turns out, each with a note."""
    models = cutting_models(system) if question.history else []
    return {name: HISTORY_NOTE for name, each in models if not _fits(each, _whole(question))}


def _whole(question: Question) -> str:
    return " ".join([*filter(None, question.history), question.text])


def _fits(model: Any, text: str) -> bool:
    """Whether a model reads a text as a whole, and a reader's context has room for more."""
    return not model.cut_note(text) and getattr(model, "leaves_room", lambda _: True)(text)


def with_cut_notes(system: object, questions: Sequence[Question], answers: Sequence[Answer]) -> list[Answer]:
    """The answers, with a note which models of the system read only a part of the question."""
    models = dict(cutting_models(system))
    noted = []
    for question, answer in zip(questions, answers, strict=True):
        cut = {name: note for name, each in models.items() if (note := each.cut_note(question.text, question.history))}
        noted.append(with_cuts(answer, cut))
    return noted


def with_cuts(answer: Answer, cut: Mapping[str, str]) -> Answer:
    """An answer with further notes by model on what was cut; those that it has stay."""
    known = answer.notes.get(CUT)
    cut = {**cut, **(known if isinstance(known, dict) else {})}
    return replace(answer, notes={**answer.notes, CUT: cut}) if cut else answer


def cut_passages(system: object) -> list[str]:
    """A line on the inputs of which models of a system have cut a passage since they were loaded, if there are any."""
    cutting = {id(each): (name, each) for name, each in cutting_models(system) if getattr(each, "inputs_cut", 0)}
    told = [
        f"{each.inputs_cut:,} of {each.inputs_read:,} for {name} ({each.max_tokens} tokens)"
        for name, each in cutting.values()
    ]
    return [f"inputs that lost the end of a passage: {', '.join(told)}"] if told else []


def cutting_models(system: object) -> list[tuple[str, Any]]:
    """The models that cut questions which are too long, those with a `cut_note`, and the name of each one's class."""
    return [each for part in getattr(system, "__dict__", {}).values() for each in _cutting(part, _DEPTH)]


def _cutting(part: object, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(part, Mapping | list | tuple):
        # a look at the first one is enough: a list of parts is short, one of texts may have millions
        values = [*islice(part.values() if isinstance(part, Mapping) else part, 100)]
        for each in values if values and type(values[0]).__module__.startswith(_OURS) else ():
            yield from _cutting(each, depth)
    elif depth and type(part).__module__.startswith(_OURS):
        own = getattr(part, "__dict__", {})
        cutting = next((each for each in (part, own.get("encode")) if hasattr(each, "cut_note")), None)
        if cutting is not None:
            yield type(part).__name__, cutting
        for name, each in own.items():
            yield from _cutting(each, depth - 1) if name != "encode" else ()
