"""Layout of MuSiQue (Trivedi et al., 2022): Answerable and Full, with or without paragraphs."""

from common.records import Passage, Question, Source
from datamodules.formats import row_fields as fields
from datamodules.formats.row_fields import Row

REQUIRED_FIELDS = ("id", "question", "paragraphs|answer_aliases")
CONSISTENT_FIELDS = ("paragraphs", "answer")
SIGNATURE_FIELDS = ("question", "question_decomposition")


def question(row: Row) -> Question:
    """A question of MuSiQue.

    An unanswerable question (`answerable` false in MuSiQue-Full) has no answers, `withheld` ones, and the gold passages
    that are left, possibly none.  Both variants of a question have the same id, as in the release.

    Raises:
        DataError: If a field is missing or of the wrong type.
    """
    paragraphs = [
        (
            Passage.of(fields.text_or_empty(item, "title"), fields.text_or_empty(item, "paragraph_text")),
            fields.flag(item, "is_supporting"),
        )
        for item in fields.optional_objects(row, "paragraphs")
    ]
    identity = fields.identity(row, "id")
    said = fields.answers([fields.optional_text(row, "answer"), *fields.optional_texts(row, "answer_aliases")])
    answerable = row.get("answerable") is None or fields.flag(row, "answerable")
    hops, found, _ = identity.partition("__")  # 2hop__482757_12019, 3hop1__..., 4hop3__...
    return Question(
        id=identity,
        text=fields.filled_text(row, "question"),
        answers=said if answerable else (),
        passages=fields.distinct_passages(passage for passage, _ in paragraphs),
        support=tuple(dict.fromkeys(passage.id for passage, is_gold in paragraphs if is_gold)),
        kind=hops if found else "",
        source=Source(withheld=() if answerable else said or ("",)),
    )
