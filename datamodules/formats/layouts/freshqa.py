"""Layout of FreshQA (Vu et al., 2024), the CSV export of its spreadsheet.

`answer_0` to `answer_9`, `false_premise`, `fact_type`; no passages. `FILE:TEST` and `FILE:DEV` read one split.
"""

from common.errors import DataError
from common.records import Question
from datamodules.formats import row_fields as fields
from datamodules.formats.row_fields import Row

REQUIRED_FIELDS = ("id", "question", "answer_0", "false_premise", "fact_type")
SIGNATURE_FIELDS = ("question", "answer_0", "false_premise", "fact_type")

FALSE_PREMISE = "false-premise"
_ANSWERS = tuple(f"answer_{number}" for number in range(10))
_TRUTH = {"true": True, "false": False}


def question(row: Row) -> Question:
    """A question without passages.

    Its kind is one of the four of the paper: `false-premise` where its premise is false, else the `fact_type`:
    `never-changing`, `slow-changing` or `fast-changing`.

    Raises:
        DataError: If a field is missing or of the wrong type.
    """
    premise = fields.text(row, "false_premise").strip()
    if premise.lower() not in _TRUTH:
        raise DataError(f"field 'false_premise' is {premise[:40]!r}, not TRUE or FALSE")
    return Question(
        id=fields.identity(row, "id"),
        text=fields.filled_text(row, "question"),
        answers=fields.answers(fields.optional_text(row, name) for name in _ANSWERS),
        kind=FALSE_PREMISE if _TRUTH[premise.lower()] else fields.filled_text(row, "fact_type"),
    )
