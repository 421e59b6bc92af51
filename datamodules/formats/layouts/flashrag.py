"""Layout of FlashRAG's questions (Jin et al., 2024): `id`, `question`, `golden_answers`, `metadata`; no passages."""

from common.records import Question
from datamodules.formats import row_fields as fields
from datamodules.formats.row_fields import Row

REQUIRED_FIELDS = ("question", "golden_answers")
CONSISTENT_FIELDS = ("id",)
SIGNATURE_FIELDS = ("question", "golden_answers")


def question(row: Row) -> Question:
    """A question without passages; its kind is the `type` of the metadata.

    Raises:
        DataError: If a field is missing or of the wrong type.
    """
    text = fields.filled_text(row, "question")
    metadata = fields.as_object(row.get("metadata") or {}, "field 'metadata'")
    return Question(
        id=fields.id_or_hash(row, "id", text),
        text=text,
        answers=fields.answers(fields.optional_texts(row, "golden_answers")),
        kind=fields.optional_text(metadata, "type"),
    )
