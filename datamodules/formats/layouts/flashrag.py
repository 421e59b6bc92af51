"""Layout of FlashRAG's questions (Jin et al., 2024): `id`, `question`, `golden_answers`, `metadata`; no passages but
gold ones in the metadata."""

from typing import get_args

from common.errors import DataError
from common.records import Gold, GoldSegment, Kind, Passage, Question, clean
from datamodules.formats import row_fields as fields
from datamodules.formats.row_fields import EmptyFieldError, Row

REQUIRED_FIELDS = ("question", "golden_answers")
CONSISTENT_FIELDS = ("id",)
ROWS_JOIN = True
KINDS = get_args(Kind)  # of gold segments


def question(row: Row) -> Question:
    """A question; its kind is the `type` of the metadata, which may also hold what answers it.

    That is `gold_passages` of a corpus, `{"title": "Tarn", "text": "A tarn is a mountain lake."}`, or `gold_segments`
    of documents, `{"document": "a.pdf", "evidence": "a sentence" or ["cell", "cell"], "kind": "text", "headings": ["2
    Setup"], "page": 4}`, of which the first two are needed.

    Raises:
        DataError: If a field is missing or of the wrong type.
    """
    text = fields.filled_text(row, "question")
    metadata = fields.as_object(row.get("metadata") or {}, "field 'metadata'")
    gold = fields.distinct_passages(
        Passage.of(fields.optional_text(one, "title"), fields.text_or_empty(one, "text"))
        for one in fields.optional_objects(metadata, "gold_passages")
    )
    return Question(
        id=fields.id_or_hash(row, "id", text),
        text=text,
        answers=fields.answers(fields.optional_texts(row, "golden_answers")),
        passages=gold,
        support=tuple(passage.id for passage in gold),
        kind=fields.optional_text(metadata, "type"),
        gold=Gold(segments=tuple(map(_gold_segment, fields.optional_objects(metadata, "gold_segments")))),
    )


def _gold_segment(row: Row) -> GoldSegment:
    kind = fields.optional_text(row, "kind") or "text"
    if kind not in KINDS:
        raise DataError(f"field 'kind' of a gold segment is {kind!r}: one of {', '.join(KINDS)}")
    several = isinstance(row.get("evidence"), list)
    evidence = tuple(map(clean, fields.optional_texts(row, "evidence") if several else [fields.text(row, "evidence")]))
    if not any(evidence):
        raise EmptyFieldError("field 'evidence' of a gold segment is empty")
    page = fields.optional_number(row, "page")
    headings = tuple(map(clean, fields.optional_texts(row, "headings")))
    return GoldSegment(fields.identity(row, "document"), evidence, kind, headings, None if page is None else int(page))
