"""Layout of retrieved contexts (`question`, `answers`, `ctxs`): FiD (Izacard and Grave, 2021), DPR (Karpukhin et al.,
2020), and the `nq-open-*` files of "Lost in the Middle" (Liu et al., 2024)."""

from common.answer_metrics import has_answer
from common.records import Passage, Question
from datamodules.formats import row_fields as fields
from datamodules.formats.row_fields import Row

REQUIRED_FIELDS = ("question", "ctxs")
CONSISTENT_FIELDS = ("answers",)
ROWS_JOIN = True

HAS_ANSWER = "hasanswer|has_answer"


def question(row: Row) -> Question:
    """A question with retrieved passages, whose own ids (`id`) and retriever scores (`score`) are kept.

    A score is a number or a numeric string.

    Gold passages are those with `isgold`; if there are none, those with `hasanswer`; if no passage has this field,
    those that contain an answer by DPR's rule (`common.answer_metrics.has_answer`).

    Raises:
        DataError: If a field is missing or of the wrong type, or a score is not a finite number.
    """
    items = fields.optional_objects(row, "ctxs")
    passages = [
        Passage.of(
            fields.optional_text(item, "title"),
            fields.text_or_empty(item, "text"),
            corpus_id=fields.corpus_id(item, "id")[0],
        )
        for item in items
    ]
    answers = fields.answers(fields.optional_texts(row, "answers"))
    gold = [fields.flag(item, "isgold") for item in items]
    if not any(gold) and any(fields.key(item, HAS_ANSWER) for item in items):
        gold = [fields.flag(item, HAS_ANSWER) for item in items]
    elif not any(gold):
        gold = [has_answer(passage.text, answers) for passage in passages]
    text = fields.filled_text(row, "question")
    return Question(
        id=fields.id_or_hash(row, "id", text),
        text=text,
        answers=answers,
        passages=fields.distinct_passages(passages),
        support=tuple(dict.fromkeys(p.id for p, is_gold in zip(passages, gold, strict=True) if is_gold)),
        scores=fields.distinct_scores(passages, [fields.optional_number(item, "score") for item in items]),
    )
