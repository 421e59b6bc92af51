"""Layout of HotpotQA (Yang et al., 2018; hotpotqa.github.io): train v1.1, dev distractor and fullwiki v1, test files
without answers, and the Hugging Face copy, with or without paragraphs."""

from common.errors import DataError
from common.records import Gold, Passage, Question, clean, nfkc
from datamodules.formats import row_fields as fields
from datamodules.formats.row_fields import Row

REQUIRED_FIELDS = ("_id|id", "question", "context|supporting_facts")
CONSISTENT_FIELDS = ("context", "supporting_facts", "answer")
SIGNATURE_FIELDS = ("question", "supporting_facts")


def question(row: Row) -> Question:
    """A question of HotpotQA, whose sentences after the first start with a space.

    Raises:
        DataError: If a field is missing or of the wrong type.
    """
    return multi_hop_question(row, between_sentences="")


def multi_hop_question(row: Row, between_sentences: str) -> Question:
    """A question of HotpotQA or 2WikiMultiHopQA, which use the same fields.

    Args:
        row: The row.
        between_sentences: Separator of the sentences of a paragraph.

    Raises:
        DataError: If a field is missing or of the wrong type.
    """
    paragraphs = [
        (Passage.of(title, between_sentences.join(sentences)), len(sentences)) for title, sentences in _context(row)
    ]
    support, unshipped = _support(paragraphs, _facts(row))
    return Question(
        id=fields.identity(row, "_id|id"),
        text=fields.filled_text(row, "question"),
        answers=fields.answers([fields.optional_text(row, "answer")]),
        passages=fields.distinct_passages(passage for passage, _ in paragraphs),
        support=support,
        kind=fields.optional_text(row, "type"),
        gold=Gold(titles=unshipped),
    )


def _context(row: Row) -> list[tuple[str, list[str]]]:
    """Title and sentences of each paragraph, from `[[title, [sentence]]]` or `{title: [], sentences: [[]]}`."""
    return [
        (_text(title, "a title of field 'context'"), _sentences(sentences))
        for title, sentences in _pairs(row, "context", "title", "sentences")
    ]


def _sentences(value: object) -> list[str]:
    """A null one is an empty one, so that those after it keep their numbers."""
    what, whole = "a sentence of field 'context'", "a paragraph of field 'context'"
    return [_text(sentence, what) for sentence in fields.as_list(value, whole)] if fields.is_there(value, whole) else []


def _text(value: object, what: str) -> str:
    return fields.as_text(value, what) if value is not None or fields.is_there(value, what) else ""


def _facts(row: Row) -> dict[str, int]:
    """The maximum sentence index of each supporting title, from `[[title, index]]` or `{title: [], sent_id: []}`."""
    greatest: dict[str, int] = {}
    for title, index in _pairs(row, "supporting_facts", "title", "sent_id"):
        if not fields.is_there(title, "a title of field 'supporting_facts'"):
            continue
        if not fields.is_there(index, "a sentence index of field 'supporting_facts'"):
            index = 0
        if not isinstance(index, int):
            raise DataError(f"a sentence index of field 'supporting_facts' is {fields.json_name(index)}, not a number")
        title = clean(fields.as_text(title, "a title of field 'supporting_facts'"))
        greatest[title] = max(index, greatest.get(title, index))
    return greatest


def _pairs(row: Row, field: str, first: str, second: str) -> list[tuple[object, object]]:
    """The pairs of a field in either form; empty if the field is absent or null."""
    value = fields.structure(row.get(field), f"field '{field}'")
    if isinstance(value, dict):
        columns = {name: value.get(name) for name in (first, second)}
        return [(each[first], each[second]) for each in fields.records(columns, f"field '{field}'")]
    pairs = [pair for pair in fields.optional_list(row, field) if fields.is_there(pair, f"an item of field '{field}'")]
    for number, pair in enumerate(pairs, 1):
        if not isinstance(pair, list) or len(pair) != 2:
            raise DataError(f"item {number} of field '{field}' is not a list of two, [{first}, {second}]")
    return [(one, other) for one, other in pairs]


def _support(paragraphs: list[tuple[Passage, int]], facts: dict[str, int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Ids of the gold passages, and the gold titles without a paragraph.

    If several paragraphs have a gold title, those long enough for the supporting sentences are gold; if none is (some
    indices of 2Wiki are out of range), all of them.
    """
    support: list[str] = []
    unshipped: list[str] = []
    for title, sentence in facts.items():
        named = [(passage.id, size) for passage, size in paragraphs if nfkc(passage.title) == nfkc(title)]
        support += [identity for identity, size in named if sentence < size] or [identity for identity, _ in named]
        unshipped += [] if named else [title]
    return tuple(dict.fromkeys(support)), tuple(unshipped)
