"""Layout of IRCoT and Adaptive-RAG, `processed_data/*/*_subsampled.jsonl` (Trivedi et al. 2023; Jeong et al. 2024)."""

from collections.abc import Iterator

from common.records import Passage, Question
from datamodules.formats import row_fields as fields
from datamodules.formats.row_fields import Row

REQUIRED_FIELDS = ("question_id", "question_text")
CONSISTENT_FIELDS = ("contexts", "answers_objects")


def question(row: Row) -> Question:
    """A question with its paragraphs; every span of every answer object is an accepted answer.

    Raises:
        DataError: If a field is missing or of the wrong type.
    """
    paragraphs = [
        (
            Passage.of(fields.optional_text(item, "title"), fields.text_or_empty(item, "paragraph_text")),
            fields.flag(item, "is_supporting"),
        )
        for item in fields.optional_objects(row, "contexts")
    ]
    return Question(
        id=fields.identity(row, "question_id"),
        text=fields.filled_text(row, "question_text"),
        answers=fields.answers(_answers(row)),
        passages=fields.distinct_passages(passage for passage, _ in paragraphs),
        support=tuple(dict.fromkeys(passage.id for passage, is_gold in paragraphs if is_gold)),
        kind=fields.optional_text(row, "type"),
    )


def _answers(row: Row) -> Iterator[str]:
    """Answers of DROP-style answer objects: spans, a number, or a date."""
    for item in fields.optional_objects(row, "answers_objects"):
        yield from fields.optional_texts(item, "spans")
        yield fields.optional_text(item, "number")
        date = fields.as_object(item.get("date") or {}, "'date' of field 'answers_objects'")
        yield " ".join(fields.optional_text(date, part) for part in ("day", "month", "year"))
