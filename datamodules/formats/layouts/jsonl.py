"""Layout of corpora, one passage per row.

BEIR's `{_id, title, text}` (or `id`, or `doc_id`) or FlashRAG's `{id, contents}`, where the first line of `contents` is
the quoted title. Further fields (url, metadata, ...) are the passage's metadata. JSON Lines or a JSON list.
"""

from common.records import Passage
from datamodules.formats import row_fields as fields
from datamodules.formats.row_counts import NOT_READ, NOT_SEARCHED
from datamodules.formats.row_fields import Row

REQUIRED_FIELDS = ("text|contents",)
ANY_CASE = True
_ID, _TEXTS = "_id|id|doc_id|passage_id", ("title", "text", "contents")


def passage(row: Row) -> Passage:
    """A passage.  Its id is computed from title and text; the row's own id and its other fields are kept beside it.

    Raises:
        DataError: If a field is missing or of the wrong type.
    """
    given, row = row, fields.plain(row)
    corpus_id, id_field = fields.corpus_id(row, _ID)
    used = (*_TEXTS, id_field)
    metadata = fields.metadata(given, [name for name in given if fields.plain_name(name) in used])
    if "title" in _read(row):
        title, text = fields.optional_text(row, "title"), fields.optional_text(row, "text")
    else:
        title, line_break, text = fields.text(row, "contents").partition("\n")
        title, text = (title.removeprefix('"').removesuffix('"'), text) if line_break else ("", title)
    return Passage.of(title, text, corpus_id=corpus_id, metadata=metadata)


def unread_fields(row: Row) -> dict[str, str]:
    """What becomes of the fields of a row with plain names that are not its id, title and text."""
    own = (*_read(row), fields.key(row, _ID, number=True))
    others = [name for name, value in row.items() if name not in own and not fields.is_null(value)]
    return {name: NOT_READ if name in _TEXTS else NOT_SEARCHED for name in others}


def _read(row: Row) -> tuple[str, ...]:
    """The fields of title and text."""
    by_contents = fields.key(row, "text") is None and fields.key(row, "contents") is not None
    return ("contents",) if by_contents else ("title", "text")
