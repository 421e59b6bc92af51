"""Layout of AmbigNQ (Min et al., 2020), light and full: `annotations` of each question; no passages."""

from common.errors import DataError
from common.records import Question
from datamodules.formats import row_fields as fields
from datamodules.formats.row_fields import EmptyFieldError, Row

REQUIRED_FIELDS = ("id", "question", "annotations")
SIGNATURE_FIELDS = ("question", "annotations")

SINGLE, SEVERAL = "singleAnswer", "multipleQAs"


def question(row: Row) -> Question:
    """A question without passages.

    Accepted are the answers of all annotations, to all meanings that they find in the question.

    Its kind is `multipleQAs` if an annotation finds several meanings, else `singleAnswer`.

    Raises:
        DataError: If a field is missing or of the wrong type, or there is no annotation.
    """
    annotations = fields.records(fields.get(row, "annotations"), "field 'annotations'")
    if not annotations:
        raise EmptyFieldError("field 'annotations' is empty")
    accepted: list[str] = []
    several = False
    for annotation in annotations:
        kind = fields.text(annotation, "type")
        if kind not in (SINGLE, SEVERAL):
            raise DataError(f"field 'type' is {kind[:40]!r}, not {SINGLE} or {SEVERAL}")
        pairs = [annotation]
        if kind == SEVERAL:
            several = True
            pairs = fields.records(fields.get(annotation, "qaPairs"), "field 'qaPairs'")
        accepted += [text for pair in pairs for text in fields.optional_texts(pair, "answer")]
    return Question(
        id=fields.identity(row, "id"),
        text=fields.filled_text(row, "question"),
        answers=fields.answers(accepted),
        kind=SEVERAL if several else SINGLE,
    )
