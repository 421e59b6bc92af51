"""Layout of this project for questions: JSON Lines, a JSON list, CSV or TSV.  The case of the names does not count.

    question     the question; needed
    id           its id; else a hash of its text and earlier turns
    answers      accepted answers
    gold         ids of the passages of a corpus, or of those below, that hold the answer
    passages     candidates: a text, or {"text", "title", "id", "label", "score"}, of which only text is needed; those
                 with a label above 0 are gold, and where it is no 0 or 1 it is a grade
    history      earlier turns of a dialogue, oldest first
    group        what belongs together, such as a customer: a group is never in both training and validation

A list may be a single value.  In a cell of a table several values are parted by |, or are a list as JSON,
Python, pandas or numpy write it.  Rows of one
question are one question.
"""

from common.records import Gold, Passage, Question, Source, clean
from datamodules.formats import row_fields as fields
from datamodules.formats.row_fields import Row

FIELDS = (
    "question", "query", "id", "answers", "answer", "gold", "gold_ids", "passages", "history", "group"
)  # fmt: skip
REQUIRED_FIELDS = ("question|query",)
ROWS_JOIN = ANY_CASE = True


def question(row: Row) -> Question:
    """A question of this project's own format.

    Raises:
        DataError: If a field is missing or of the wrong type.
    """
    row = fields.plain(row)
    text = fields.filled_text(row, "question|query")
    items = [_item(value, number) for number, value in enumerate(fields.listed(row, "passages", parted=False), 1)]
    passages = [
        Passage.of(fields.optional_text(item, "title"), fields.text(item, "text"), corpus_id=_id(item, "id"))
        for item in items
    ]
    grades = {
        passage.id: max(0.0, grade)
        for passage, item in zip(passages, items, strict=True)
        if (grade := fields.grade(item, "label")) is not None
    }
    ids = (fields.as_id(value, "an id of field 'gold'") for value in fields.listed(row, "gold|gold_ids", number=True))
    named = dict.fromkeys(map(clean, ids))
    own = {clean(passage.corpus_id): passage.id for passage in passages if passage.corpus_id}
    gold = [*(id_ for id_, grade in grades.items() if grade), *(own[id_] for id_ in named if id_ in own)]
    graded = any(grade not in (0, 1) for grade in grades.values())
    history = tuple(filter(None, map(clean, _texts(row, "history"))))
    return Question(
        id=fields.id_or_hash(row, "id", "\n".join((*history, text))),
        text=text,
        answers=fields.answers(
            fields.answers_of(fields.listed(row, "answers|answer"), "an item of field 'answers|answer'")
        ),
        passages=fields.distinct_passages(passages),
        support=tuple(dict.fromkeys(gold)),
        scores=fields.distinct_scores(passages, [fields.optional_number(item, "score") for item in items]),
        history=history,
        gold=Gold(
            corpus_ids=tuple(id_ for id_ in named if id_ not in own),
            grades=tuple((id_, grade) for id_, grade in grades.items() if grade) if graded else (),
        ),
        source=Source(group=_id(row, "group")),
    )


def _item(value: object, number: int) -> Row:
    what = f"item {number} of field 'passages'"
    if isinstance(value, str):
        return {"text": value}
    return fields.plain(fields.as_object(value, what))


def _texts(row: Row, field: str) -> list[str]:
    return [fields.as_text_of(value, f"an item of field '{field}'") for value in fields.listed(row, field)]


def _id(row: Row, field: str) -> str:
    return fields.corpus_id(row, field)[0]
