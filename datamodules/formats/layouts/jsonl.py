"""Layout of corpora, one passage per row: BEIR's `{_id, title, text}` or FlashRAG's `{id, contents}`, where the first
line of `contents` is the quoted title.  JSON Lines or a JSON list."""

from common.records import Passage
from datamodules.formats import row_fields as fields
from datamodules.formats.row_fields import Row

REQUIRED_FIELDS = ("text|contents",)
CONSISTENT_FIELDS = ()
SIGNATURE_FIELDS = ("text|contents",)


def passage(row: Row) -> Passage:
    """A passage.  Its id is computed from title and text; the corpus's id is ignored.

    Raises:
        DataError: If a field is missing or of the wrong type.
    """
    if fields.key(row, "text"):
        return Passage.of(fields.optional_text(row, "title"), fields.text(row, "text"))
    title, line_break, text = fields.text(row, "contents").partition("\n")
    if not line_break:
        return Passage.of("", title)
    return Passage.of(title.removeprefix('"').removesuffix('"'), text)
