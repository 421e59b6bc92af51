"""Layout of training files of DPR (Karpukhin et al., 2020) and Tevatron: positive and negative passages of a question.

DPR's fields are `positive_ctxs`, `hard_negative_ctxs` and `negative_ctxs`, Tevatron's `positive_passages` and
`negative_passages`.
"""

from common.records import Passage, Question
from datamodules.formats import row_fields as fields
from datamodules.formats.row_fields import Row

REQUIRED_FIELDS = ("question|query", "positive_ctxs|positive_passages")
CONSISTENT_FIELDS = ("answers", "hard_negative_ctxs", "negative_ctxs|negative_passages")


def question(row: Row) -> Question:
    """A question whose positive passages are gold; the negative ones follow, the hard ones first.

    Raises:
        DataError: If a field is missing or of the wrong type.
    """
    text, gold = fields.filled_text(row, "question|query"), _passages(row, REQUIRED_FIELDS[1])
    return Question(
        id=fields.id_or_hash(row, "query_id|id", text),
        text=text,
        answers=fields.answers(fields.optional_texts(row, "answers")),
        passages=fields.distinct_passages(sum((_passages(row, field) for field in CONSISTENT_FIELDS[1:]), gold)),
        support=tuple(dict.fromkeys(passage.id for passage in gold)),
    )


def _passages(row: Row, field: str) -> list[Passage]:
    found = []
    for each in fields.optional_objects(row, field):
        own, _ = fields.corpus_id(each, "passage_id|psg_id|docid|id")
        found.append(Passage.of(fields.optional_text(each, "title"), fields.text(each, "text"), corpus_id=own))
    return found
