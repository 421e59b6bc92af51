"""An answer in words, on the terminal and on the page: passages with why they were chosen, notes, answer, costs.

What any system can put into an answer so that it is shown:

    notes    JSON types, shown by their names. Every list of dictionaries that have the `id` of a passage, whatever its
             key, explains these passages: `stage` (first, second, web, ...), `rank` (in the retriever's list for the
             question, from 1), `partner` (id of another passage), `probability` (that both, or the passage alone, are
             relevant), `share` (of the answer's probability, 0 to 1), `alone` (the answer from this passage alone) or
             `error` (why there is none). None and empty values are not shown, ids of passages as their places.
             `error`: why there is no answer.
    costs    `seconds/<stage>` are times, `usd` is in US dollars; all others are counts, named in the plural:
             retriever_calls, model_calls, tokens.
"""

import json
import math
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from common.records import Answer, Passage, Question
from common.shown_text import terminal
from common.words import first_characters
from harness.runtime.citation import citation, images_of

MIN_WIDTH = 20  # columns
_METADATA_CHARACTERS = 300  # shown of a passage's metadata
_LABELS = {"probability": "P(relevant)", "rank": "retriever's rank"}
_PASSAGE_ID = re.compile("[0-9a-f]{16}")
_INSTEAD_OF_SCORES = {"stage", "probability"}  # what chose a passage: scores of several searches do not compare


def answer_text(question: Question, answer: Answer, width: int = 80, characters: int | None = None) -> str:
    """An answer as text for the terminal.

    Args:
        question: What was asked.
        answer: The answer to it.
        width: Columns at which lines are wrapped, between words; a longer word has a line to itself.
        characters: At most this many of each passage, cut between words; all when None.
    """
    names = {hit.passage.id: f"passage {place}" for place, hit in enumerate(answer.evidence, start=1)}
    why, others = explanations(answer.notes, names)
    rows = [row for value in answer.notes.values() for row in _of_passages(value)]
    by_score = any(hit.score for hit in answer.evidence) and not any(
        row.get(name) is not None for row in rows for name in _INSTEAD_OF_SCORES
    )
    lines = [*wrapped(f"Question: {question.text}", width, ""), ""]
    for place, hit in enumerate(answer.evidence, start=1):
        reasons = [*filter(None, [why.get(hit.passage.id)]), *([f"score {hit.score:.3f}"] if by_score else [])]
        lines += passage_lines(f"{place}.", hit.passage, reasons, width, characters)
    if not answer.evidence and answer.costs.get("retriever_calls", 1) and not {"sources", "error"} & {*answer.notes}:
        lines += ["No document was found.", ""]
    noted = {name: told for name, told in others.items() if name != "error"}
    for name, told in noted.items():
        told = [f"{name.capitalize()}: {told[0]}"] if len(told) == 1 else [f"{name.capitalize()}:", *told]
        for number, row in enumerate(told):
            lines += wrapped(row, width, "      ", first="  " if number else "")
    lines += [""] if noted else []
    for line in _answer_lines(question, answer):
        lines += wrapped(line, width, "")
    if answer.costs:
        lines += wrapped(f"Cost: {costs_text(answer.costs)}", width, "")
    return "\n".join(lines)


def explanations(notes: Mapping[str, object], names: Mapping[str, str]) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The notes on each passage, by its id, and of each other note its rows, in words.

    Args:
        notes: An answer's.
        names: What to call a passage, by its id.
    """
    why: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for name, value in notes.items():
        for row in (of_passages := _of_passages(value)):
            told = words({key: each for key, each in row.items() if key != "id"}, names)
            why.setdefault(str(row["id"]), []).extend([told] if told else [])
        rows = value if isinstance(value, list) and all(isinstance(each, dict) for each in value) else [value]
        if not of_passages and (told_rows := [told for row in rows if (told := words(row, names))]):
            others[name.replace("_", " ")] = told_rows
    return {id_: "; ".join(told) for id_, told in why.items()}, others


def words(value: object, names: Mapping[str, str]) -> str:
    """A JSON value as words; empty without a value.  Ids of passages without a name are counted."""
    if isinstance(value, dict):
        if value.keys() == {"id", "title"}:
            return names.get(value["id"]) or value["title"]
        told = {key: words(each, names) for key, each in value.items() if key != "id" or "title" not in value}
        return "; ".join(f"{_LABELS.get(key, key.replace('_', ' '))}: {each}" for key, each in told.items() if each)
    if isinstance(value, list | tuple):
        named = [each for each in value if not _PASSAGE_ID.fullmatch(str(each)) or each in names]
        others = [f"{len(value) - len(named)} more"] if len(named) < len(value) else []
        return ", ".join(filter(None, [*(words(each, names) for each in named), *others]))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, str):
        return names.get(value, value)
    return "" if value is None else str(value)


def costs_text(costs: Mapping[str, float]) -> str:
    """Costs in words: `2 retriever calls, 12 model calls, 1.3 s: retrieval 0.2, scoring 1.1`."""
    seconds = {name.partition("/")[2]: value for name, value in costs.items() if name.startswith("seconds/")}
    parts = [
        _counted(name.replace("_", " "), count)
        for name, count in costs.items()
        if not name.startswith("seconds/") and name != "usd"
    ]
    if "usd" in costs:
        parts.append(f"{costs['usd']:.6f} US dollars")
    if seconds:
        total = sum(seconds.values())
        digits = 1 if total >= 1 else 3
        stages = ", ".join(f"{name.replace('_', ' ')} {round(value, digits):g}" for name, value in seconds.items())
        parts.append(f"{stages} s" if len(seconds) == 1 else f"{round(total, digits):g} s: {stages}")
    return ", ".join(parts)


def _of_passages(value: object) -> list[dict[str, Any]]:
    """The rows of a note that says something of passages; of another one none."""
    is_of = isinstance(value, list) and all(isinstance(row, dict) and "id" in row for row in value)
    return value if is_of else []  # type: ignore[return-value]


def _counted(name: str, count: float) -> str:
    """A number and what it counts; the plural ending goes where it is 1."""
    if count == 1:
        name = " ".join(word[:-1] if word.endswith("s") and not word.endswith("ss") else word for word in name.split())
    return f"{count:,.0f} {name}" if count == round(count) else f"{count:,.1f} {name}"


def _answer_lines(question: Question, answer: Answer) -> Iterator[str]:
    """The answer with its probability, or why there is none; gold answers."""
    error = answer.notes.get("error")
    if answer.logprob is not None:
        yield f"Answer: {answer.text or '(empty)'}  (P {math.exp(answer.logprob):.3f})"
    elif answer.text:
        yield f"Answer: {answer.text}"
    elif error or (answer.evidence and answer.costs.get("failed_calls")):
        yield f"Answer: none, {str(error or 'all calls of the language model failed').rstrip('.')}."
    else:
        yield "Answer: none, " + ("no reader is configured." if answer.evidence else "no document to read.")
    if question.answers:
        yield f"Gold: {' | '.join(question.answers)}"


def passage_lines(
    number: str, passage: Passage, reasons: Sequence[str], width: int, characters: int | None
) -> Iterator[str]:
    """A passage in lines: title, reasons, text, image and metadata, then an empty line.

    The title is followed by the corpus's own id or the place in a document.

    Args:
        number: Stands before the title.
        passage: The passage.
        reasons: Why it was chosen.
        width: Columns at which lines are wrapped; rows of tables are not.
        characters: At most this many of the text, cut between words; all when None.
    """
    about = passage.metadata or {}
    own_id = f"[{passage.corpus_id}] " if passage.corpus_id else ""
    indent = " " * (len(number) + 1)
    cited = citation(passage)
    title = f"{about.get('document_title') or ''} [{cited}]" if cited else passage.title or "(no title)"
    yield from wrapped(f"{number} {own_id}{title.strip()}", width, indent, first="")
    if reasons:
        yield from wrapped(f"({'; '.join(reasons)})", width, indent)
    text = passage.text if characters is None else first_characters(passage.text, characters)
    for line in text.split("\n"):
        yield from [indent + terminal(line)] if line.startswith("|") else wrapped(line, width, indent)
    if cited:
        yield from (indent + terminal(f"Image: {image}") for image in images_of(passage))
    elif about:
        metadata = first_characters(json.dumps(about, ensure_ascii=False), _METADATA_CHARACTERS)
        yield from wrapped(metadata, width, indent)
    yield ""


def wrapped(text: str, width: int, indent: str, first: str | None = None) -> list[str]:
    """Lines of at most `width` columns, broken between words; see `common.shown_text.terminal`."""
    return textwrap.wrap(
        terminal(text),
        max(width, MIN_WIDTH),
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
