"""Layout of this project for judgements of passages, one a row: clicks, grades.  The case of the names does not count.

    query        the question; needed
    passage      the id of a passage in a corpus, or its text where it has more than five words, in a script without
                 blanks more than ten characters or the end of a sentence; `passage_id` and `text` say which it is
    title        of the passage whose text is given
    label        0: not relevant; 1, or a grade above: relevant, which is so where it is missing, as in a log of clicks
    group        what belongs together, such as a customer: a group is never in both training and validation

JSON Lines, a JSON list, CSV or TSV.  The rows of one query are one question: of several labels of a passage the
highest counts.
"""

from common.answer_metrics import characters, is_unspaced
from common.records import Gold, Passage, Question, Source, clean
from datamodules.formats import row_fields as fields
from datamodules.formats.row_fields import EmptyFieldError, Row

FIELDS = (
    "query", "question", "passage", "passage_id", "doc_id", "docid", "document_id", "text", "title", "label", "grade",
    "relevance", "clicked", "group", "id",
)  # fmt: skip
REQUIRED_FIELDS = ("query|question", "passage|passage_id|doc_id|docid|document_id|text")
ROWS_JOIN = ALWAYS_JOIN = ANY_CASE = True
_LONGEST_ID = 5  # words


def question(row: Row) -> Question:
    """A query with one judged passage.

    Raises:
        DataError: If a field is missing or of the wrong type.
    """
    row = fields.plain(row)
    query = fields.filled_text(row, "query|question")
    given = fields.grade(row, "label|grade|relevance|clicked")
    grade = 1.0 if given is None else max(0.0, given)
    own, text = fields.corpus_id(row, "passage_id|doc_id|docid|document_id")[0], fields.optional_text(row, "text")
    if not own and not text:
        either = fields.as_id(fields.get(row, "passage"), "field 'passage'")
        own, text = ("", either) if _is_text(either) else (either, "")
    passage = Passage.of(fields.optional_text(row, "title"), text, corpus_id=own) if text else None
    if passage is not None and not passage.text:
        raise EmptyFieldError("field 'text' is empty")
    id_ = clean(own) if passage is None else passage.id
    return Question(
        id=fields.id_or_hash(row, "id", query),
        text=query,
        passages=() if passage is None else (passage,),
        support=(id_,) if passage is not None and grade else (),
        gold=Gold(
            corpus_ids=(id_,) if passage is None and grade else (),
            grades=((id_, grade),) if (grade > 0 and grade != 1) or (passage is None and not grade) else (),
        ),
        source=Source(group=fields.corpus_id(row, "group")[0]),
    )


def _is_text(either: str) -> bool:
    """Whether a value is the text of a passage, not an id."""
    unspaced = len(characters(either).split()) if is_unspaced(either) else 0  # two are a word
    ends = "\u3002", "\uff01", "\uff1f"  # of sentences in Chinese and Japanese
    return len(either.split()) > _LONGEST_ID or unspaced > 2 * _LONGEST_ID or either.endswith(ends)
