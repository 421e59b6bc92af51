"""`infer.py ask`: one question, its documents with scores, and its answer."""

import json as json_format
from dataclasses import asdict

from datamodules.errors import UserError
from datamodules.records import Answer, Question, clean
from harness.strategy import Strategy

_TEXT_CHARACTERS = 300  # of a document, in readable output


def ask(strategy: Strategy, question: str, json: bool = False) -> None:
    """Answer one question and print the documents with their scores, and the answer where a reader is configured.

    Args:
        strategy: The system that answers.
        question: What to ask.
        json: Print the whole answer record as JSON.
    """
    text = clean(question)
    if not text:
        raise UserError('question is empty: type one, e.g. --question "Who wrote Hamlet?"')
    (answer,) = strategy.answer([Question(id="asked", text=text)])
    if json:
        print(json_format.dumps(asdict(answer), indent=2, ensure_ascii=False))
    else:
        print(readable(text, answer))


def readable(question: str, answer: Answer) -> str:
    """An answer for people: the documents in order, what is known of each, the text, the costs."""
    notes = answer.notes.get("documents")
    by_id = {note["id"]: note for note in notes} if isinstance(notes, list) else {}
    titles = {hit.passage.id: hit.passage.title for hit in answer.evidence}
    lines = [f"Question: {question}", ""]
    for number, hit in enumerate(answer.evidence, start=1):
        facts = [f"score {hit.score:.3f}"]
        note = by_id.get(hit.passage.id, {})
        if note.get("stage"):
            facts.insert(0, f"{note['stage']} stage")
        if note.get("partner"):
            facts.append(f"P {note['probability']:.3f} with {titles[note['partner']]!r}")
        body = hit.passage.text
        lines.append(f"{number}. {hit.passage.title}  ({', '.join(facts)})")
        lines.append(f"   {body[:_TEXT_CHARACTERS]}{'...' if len(body) > _TEXT_CHARACTERS else ''}")
    if not answer.evidence:
        lines.append("No document was found.")
    lines += ["", f"Answer: {answer.text}" if answer.text else "Answer: none, no reader is configured."]
    lines.append("; ".join(f"{name.replace('_', ' ')} {value:.6g}" for name, value in answer.costs.items()))
    return "\n".join(lines)
