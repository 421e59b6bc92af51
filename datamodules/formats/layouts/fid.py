"""FiD's and DPR's retrieved files (Izacard and Grave, 2021; Karpukhin et al., 2020) and the `nq-open-*` files of "Lost in
the Middle" (Liu et al., 2024): a question, its answers and `ctxs`."""

from common.answer_metrics import has_answer
from common.records import Passage, Question
from datamodules.formats import row_fields as fields
from datamodules.formats.row_fields import Row

REQUIRED = ("question", "ctxs")
SETTLED = ("answers",)
SIGNS = ("question", "ctxs")

STORED = "hasanswer|has_answer"


def question(row: Row) -> Question:
    """A question with retrieved passages.

    Gold are the passages marked `isgold`; where none is, those stored as holding an answer; where that is not stored,
    those that hold one by DPR's rule (`common.answer_metrics.has_answer`).

    Raises:
        DataError: If a field is missing or of the wrong type.
    """
    items = fields.optional_objects(row, "ctxs")
    passages = [Passage.of(fields.optional_text(item, "title"), fields.text(item, "text")) for item in items]
    answers = fields.spellings(fields.optional_texts(row, "answers"))
    gold = [fields.flag(item, "isgold") for item in items]
    if not any(gold) and any(fields.key(item, STORED) for item in items):
        gold = [fields.flag(item, STORED) for item in items]
    elif not any(gold):
        gold = [has_answer(passage.text, answers) for passage in passages]
    text = fields.filled_text(row, "question")
    return Question(
        id=fields.identity_or_hash(row, "id", text),
        text=text,
        answers=answers,
        passages=fields.distinct(passages),
        support=tuple(dict.fromkeys(p.id for p, is_gold in zip(passages, gold, strict=True) if is_gold)),
    )
