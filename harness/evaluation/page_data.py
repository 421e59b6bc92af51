"""Data of the page's browser of questions, as blocks of JSON: an index, details of questions, passages (each once).

The browser reads the index when it opens, and the blocks of details and passages when a question is chosen: parsing all
passages of 5,000 questions at once would take most of the time in which the page opens.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.answer_metrics import has_answer
from common.gold_segments import is_relevant
from common.records import Answer, GoldSegment, Passage, Question
from common.shown_text import terminal
from harness.runtime.answer_text import explanations, words
from harness.runtime.citation import citation, images_of

QUESTIONS_PER_BLOCK = 100
PASSAGES_PER_BLOCK = 200
_ESCAPED = {character: f"\\u{ord(character):04x}" for character in "<>&"}


@dataclass(frozen=True, slots=True)
class QuestionCase:
    """A small text table about one question, such as what each selection chose and why."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def browser_data(
    questions: Sequence[Question],
    systems: Mapping[str, Sequence[Answer]],
    measures: Mapping[str, Mapping[str, Iterable[float]]],
    cases: Sequence[Sequence[QuestionCase]] = (),
) -> Iterator[tuple[str, str]]:
    """(id, JSON) of every block; see `harness.evaluation.page.page` for the arguments.

    index          systems, measures, question texts, answers, values [system][measure][question], sizes of the blocks
    questions-I    details of QUESTIONS_PER_BLOCK questions: gold passages, evidence, notes, costs, cases
    passages-I     title, text and labels of PASSAGES_PER_BLOCK passages; elsewhere a passage is its number
    """
    given = [(name, values) for own in measures.values() for name, values in own.items()]
    known = {name for name, values in given if any(map(math.isfinite, values))}
    names = [name for name in dict.fromkeys(name for name, _ in given) if name in known]
    values = [
        [[_number(value, 6) for value in measures.get(system, {}).get(name, ())] for name in names]
        for system in systems
    ]  # fmt: skip
    index = {
        "systems": list(systems),
        "measures": names,
        "values": values,
        "questions": [{"id": q.id, "text": q.text, "kind": q.kind, "answers": q.answers} for q in questions],
        "answers": [[answer.text for answer in answers] for answers in systems.values()],
        "questions_per_block": QUESTIONS_PER_BLOCK,
        "passages_per_block": PASSAGES_PER_BLOCK,
    }
    yield "index", _json(index)
    passages = _Passages()
    details = [
        _details(question, [answers[i] for answers in systems.values()], passages, cases[i] if cases else ())
        for i, question in enumerate(questions)
    ]
    for name, rows, size in (
        ("questions", details, QUESTIONS_PER_BLOCK),
        ("passages", list(passages.rows()), PASSAGES_PER_BLOCK),
    ):
        for start in range(0, len(rows), size):
            yield f"{name}-{start // size}", _json(rows[start : start + size])


class _Passages:
    """Numbers of passages by id, in the order of their first use."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[int, Passage]] = {}

    def number(self, passage: Passage) -> int:
        number, first = self.found.setdefault(passage.id, (len(self.found), passage))
        if passage.labels and not first.labels:  # an index has the corpus's own ids, a question's file often has not
            self.found[passage.id] = number, passage
        return number

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Title, text, and a line of labels."""
        for id_, (_, passage) in self.found.items():
            origin = {"source": passage.source} if passage.source else {}
            cited = citation(passage)
            about = {"document": cited, "image": ", ".join(images_of(passage))} if cited else passage.labels
            yield passage.title, passage.text, words({"id": id_, **about, **origin}, {})


def _details(
    question: Question, answers: Sequence[Answer], passages: _Passages, cases: Sequence[QuestionCase]
) -> dict[str, object]:
    """The details of one question for the browser."""
    gold = {passage.id: passage for passage in question.gold_passages}
    held: dict[str, bool] = {}  # whether a passage contains an answer, where no passage is known to be gold

    def mark(passage: Passage) -> str:
        if gold or question.gold.segments:
            is_gold = passage.id in gold or any(is_relevant(passage, each) for each in question.gold.segments)
            return "gold" if is_gold else ""
        if passage.id not in held:
            held[passage.id] = has_answer(passage.text, question.answers)
        return "answer" if held[passage.id] else ""

    systems = []
    for answer in answers:
        names = {
            hit.passage.id: f"{hit.passage.title} (rank {rank})" if hit.passage.title else f"rank {rank}"
            for rank, hit in enumerate(answer.evidence, start=1)
        }
        why, others = explanations(answer.notes, names)
        notes = [[name, ", ".join(rows)] for name, rows in others.items()]
        evidence = [
            (passages.number(hit.passage), _number(hit.score, 6), mark(hit.passage), why.get(hit.passage.id, ""))
            for hit in answer.evidence
        ]
        costs = {name.replace("_", " "): _number(cost, 6) for name, cost in answer.costs.items()}
        logprob = None if answer.logprob is None else _number(answer.logprob, 6)
        systems.append({"evidence": evidence, "notes": notes, "costs": costs, "logprob": logprob})
    return {
        "gold": [passages.number(passage) for passage in gold.values()],
        "elsewhere": question.gold.titles,
        "segments": [_place_of(each) for each in question.gold.segments],
        "systems": systems,
        "cases": [{"title": c.title, "columns": c.columns, "rows": c.rows, "note": c.note} for c in cases],
    }


def _place_of(gold: GoldSegment) -> str:
    """The place of a gold segment, and its text."""
    page = f", page {gold.page}" if gold.page else ""
    return f"{gold.document}{page}: {' > '.join(gold.headings)}: {' | '.join(gold.evidence)}"


def _number(value: float, digits: int) -> float | None:
    """The value with that many significant digits; None where it is no finite number, which JSON does not have."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None


def _json(value: object) -> str:
    """JSON that cannot end the script element it is in, nor be taken for markup; its texts are for showing alone."""
    text = json.dumps(_shown(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, escaped in _ESCAPED.items():
        text = text.replace(character, escaped)
    return text


def _shown(value: Any) -> Any:
    """A value whose texts turn no direction of writing and can be encoded as UTF-8."""
    if isinstance(value, str):
        return terminal(value)
    if isinstance(value, dict):
        return {_shown(key): _shown(each) for key, each in value.items()}
    return [_shown(each) for each in value] if isinstance(value, list | tuple) else value
