"""Corpora with one passage per row: BEIR's `{_id, title, text}` and the like, or FlashRAG's `{id, contents}`, where the
first line of `contents` is the quoted title.  JSON Lines or one JSON list."""

from common.records import Passage
from datamodules.formats import row_fields as fields
from datamodules.formats.row_fields import Row

REQUIRED = ("text|contents",)
SETTLED = ()
SIGNS = ("text|contents",)


def passage(row: Row) -> Passage:
    """A passage.  The corpus's own id is dropped: identity follows from title and text.

    Raises:
        DataError: If a field is missing or of the wrong type.
    """
    if fields.key(row, "text"):
        return Passage.of(fields.optional_text(row, "title"), fields.text(row, "text"))
    title, line_break, text = fields.text(row, "contents").partition("\n")
    if not line_break:
        return Passage.of("", title)
    return Passage.of(title.removeprefix('"').removesuffix('"'), text)
