"""What each selection chose for a question and why, as in DR-RAG's Table 8."""

from collections.abc import Mapping, Sequence

from common.records import Answer, Question
from harness.evaluation.page import Case

COLUMNS = ("selection", "document", "gold", "stage", "why")


def selection_case(question: Question, answers: Mapping[str, Answer]) -> Case:
    """One row per selection and chosen document, in the order of the selection.

    Args:
        question: With its gold passages.
        answers: What each selection chose and the reader answered, by the selection's name.
    """
    rows: list[tuple[str, ...]] = []
    for name, answer in answers.items():
        titles = {hit.passage.id: hit.passage.title for hit in answer.evidence}
        documents = answer.notes.get("documents")
        notes = {each["id"]: each for each in documents} if isinstance(documents, list) else {}
        for place, hit in enumerate(answer.evidence):
            note = notes.get(hit.passage.id, {})
            gold = "gold" if hit.passage.id in question.support else ""
            stage = str(note.get("stage", "first"))
            rows.append((name if place == 0 else "", hit.passage.title, gold, stage, _why(note, titles)))
        rows.append(("" if answer.evidence else name, _summary(question, answer), "", "", ""))
    note = "P: the classifier's probability that two documents together answer the question, of the best pair chosen."
    return Case("What each selection chose (Table 8)", COLUMNS, tuple(rows), note)


def _why(note: Mapping[str, object], titles: Mapping[str, str]) -> str:
    if note.get("partner") is None:
        return "similarity to the question" if note.get("stage", "first") == "first" else "similarity to q*"
    return f"P {note['probability']:.3f} with {titles.get(str(note['partner']), '')}"


def _summary(question: Question, answer: Answer) -> str:
    found = len({hit.passage.id for hit in answer.evidence} & set(question.support))
    read = f"; answer: {answer.text}" if answer.text else ""
    return f"{found} of {len(set(question.support))} gold passages{read}"


def cases_of(questions: Sequence[Question], variants: Mapping[str, Sequence[Answer]]) -> list[list[Case]]:
    """One case per question."""
    return [
        [selection_case(question, {name: answers[number] for name, answers in variants.items()})]
        for number, question in enumerate(questions)
    ]
