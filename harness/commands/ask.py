"""`infer.py ask`: answer one question and print the documents with their scores."""

import json as json_format
import math
from dataclasses import asdict
from typing import Any

from common.errors import UserError
from common.records import Answer, Question, clean
from harness.interfaces import Strategy

_TEXT_CHARACTERS = 300  # printed of each document
_OTHER_CANDIDATES = 3  # candidate answers printed besides the answer


def ask(strategy: Strategy, question: str, json: bool = False) -> None:
    """Answer one question and print the documents with their scores, and the answer if a reader is configured.

    Args:
        strategy: The system that answers.
        question: The question.
        json: Print the whole answer record as JSON.
    """
    check_question(question)
    text = clean(question)
    (answer,) = strategy.answer([Question(id="asked", text=text)])
    if json:
        print(json_format.dumps(asdict(answer), indent=2, ensure_ascii=False))
    else:
        print(readable(text, answer))


def check_question(question: str) -> None:
    """Raise UserError if the question is empty; called before anything is loaded."""
    if not clean(question):
        raise UserError('question is empty: type one, e.g. --question "Who wrote Hamlet?"')


def readable(question: str, answer: Answer) -> str:
    """An answer as text: the documents in order with scores and notes, the answer, the costs."""
    pairs, contexts = _by_id(answer.notes.get("documents")), _by_id(answer.notes.get("contexts"))
    titles = {hit.passage.id: hit.passage.title for hit in answer.evidence}
    lines = [f"Question: {question}", ""]
    for number, hit in enumerate(answer.evidence, start=1):
        facts = [f"score {hit.score:.3f}"]
        note = pairs.get(hit.passage.id, {})
        if note.get("stage"):
            facts.insert(0, f"{note['stage']} stage")
        if note.get("partner"):
            facts.append(f"P {note['probability']:.3f} with {titles[note['partner']]!r}")
        context = contexts.get(hit.passage.id, {})
        if context.get("probability") is not None:
            facts.append(f"P(relevant) {context['probability']:.3f}")
        if context.get("share") is not None:
            facts.append(f"share {context['share']:.3f} of the answer, answer from it alone {context['alone']!r}")
        body = hit.passage.text
        own_id = f"[{hit.passage.corpus_id}] " if hit.passage.corpus_id else ""
        lines.append(f"{number}. {own_id}{hit.passage.title}  ({', '.join(facts)})")
        lines.append(f"   {_shortened(body)}")
        if hit.passage.metadata:
            lines.append(f"   {_shortened(json_format.dumps(hit.passage.metadata, ensure_ascii=False))}")
    if not answer.evidence:
        lines.append("No document was found.")
    lines += ["", *_answer_lines(answer)]
    lines.append("; ".join(f"{name.replace('_', ' ')} {value:.6g}" for name, value in answer.costs.items()))
    return "\n".join(lines)


def _shortened(text: str) -> str:
    return text[:_TEXT_CHARACTERS] + ("..." if len(text) > _TEXT_CHARACTERS else "")


def _by_id(notes: object) -> dict[str, dict[str, Any]]:
    return {note["id"]: note for note in notes} if isinstance(notes, list) else {}


def _answer_lines(answer: Answer) -> list[str]:
    """The answer with its probability, other candidates, and a warning if it is likely unanswerable."""
    if answer.logprob is not None:
        lines = [f"Answer: {answer.text or '(empty)'}  (P {math.exp(answer.logprob):.3f})"]
    elif answer.text:
        lines = [f"Answer: {answer.text}"]
    else:
        lines = ["Answer: none, " + ("no reader is configured." if answer.evidence else "no document to read.")]
    candidates = answer.notes.get("candidates")
    if isinstance(candidates, dict):
        others = [f"{text!r} (P {p:.3f})" for text, p in candidates.items() if text != answer.text][:_OTHER_CANDIDATES]
        lines += [f"Other candidates: {', '.join(others)}"] if others else []
    if answer.notes.get("answerable") is False:
        lines.append(f"No context reaches P(relevant) {answer.notes['threshold']:.3f}: likely unanswerable.")
    return lines
