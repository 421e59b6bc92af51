"""Layout of StrategyQA (Geva et al., 2021): questions for yes or no.

Its `facts`, `decomposition` and `evidence` are gold annotations and are not read: no passages are made of them, so that
they cannot be indexed.
"""

from common.errors import DataError
from common.records import Question
from datamodules.formats import row_fields as fields
from datamodules.formats.row_fields import Row

REQUIRED_FIELDS = ("qid", "question")
CONSISTENT_FIELDS = ("answer",)  # the test file has none
SIGNATURE_FIELDS = ("qid", "question", "term")


def question(row: Row) -> Question:
    """A question without passages, whose answer is yes or no.

    Raises:
        DataError: If a field is missing or of the wrong type.
    """
    answer = row.get("answer")
    if answer is not None and not isinstance(answer, bool):
        raise DataError(f"field 'answer' is {fields.json_name(answer)}, not true or false")
    answers = () if answer is None else ("yes",) if answer else ("no",)
    return Question(id=fields.identity(row, "qid"), text=fields.filled_text(row, "question"), answers=answers)
