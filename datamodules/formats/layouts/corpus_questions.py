"""Layout of questions over a corpus: the gold passages are named by the corpus's own ids and are not in the file.

JSON Lines or a JSON list of `{id, question, answer, answer_aliases, hops, gold_doc_ids}`, of which question and
gold_doc_ids are needed.
"""

from common.records import Gold, Question
from datamodules.formats import row_fields as fields
from datamodules.formats.row_fields import Row

REQUIRED_FIELDS = ("question", "gold_doc_ids")
CONSISTENT_FIELDS = ("id", "answer")
ROWS_JOIN = True


def question(row: Row) -> Question:
    """A question; its kind is the number of its hops, e.g. 2hop.

    Raises:
        DataError: If a field is missing or of the wrong type.
    """
    text = fields.filled_text(row, "question")
    hops = fields.optional_number(row, "hops")
    return Question(
        id=fields.id_or_hash(row, "id", text),
        text=text,
        answers=fields.answers([fields.optional_text(row, "answer"), *fields.optional_texts(row, "answer_aliases")]),
        kind="" if hops is None else f"{hops:g}hop",
        gold=Gold(corpus_ids=tuple(dict.fromkeys(fields.optional_ids(row, "gold_doc_ids")))),
    )
