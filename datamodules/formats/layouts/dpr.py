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
    text = fields.filled_text(row, "question|query")
    gold, *others = (
        [_passage(item) for item in fields.optional_objects(row, field)]
        for field in (REQUIRED_FIELDS[1], *CONSISTENT_FIELDS[1:])
    )
    return Question(
        id=fields.id_or_hash(row, "query_id|id", text),
        text=text,
        answers=fields.answers(fields.optional_texts(row, "answers")),
        passages=fields.distinct_passages(sum(others, gold)),
        support=tuple(dict.fromkeys(passage.id for passage in gold if passage.text)),
    )


def _passage(item: Row) -> Passage:
    own, _ = fields.corpus_id(item, "passage_id|psg_id|docid|id")
    return Passage.of(fields.optional_text(item, "title"), fields.text_or_empty(item, "text"), corpus_id=own)
