"""A teacher's scores of questions' passages, from a file that any program can write.

Rows of JSON Lines, JSON, a table or Parquet: {"query", "score"} and the passage by "passage_id" (that of
`common.records.passage_id`, or the corpus's own) or by its "text". A score is any finite number that is higher for more
relevant passages: log-odds, or a cosine.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from common.errors import DataError, MissingInputError
from common.records import Passage, nfkc
from datamodules.formats import row_fields as fields
from datamodules.formats.open_data import rows


class TeacherScores:
    """Scores by question and passage; the last of several of one pair counts.

    Args:
        paths: The files.

    Raises:
        MissingInputError: If a file does not exist.
        DataError: If a row has no query, names no passage, or has a score that is no finite number.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = list(paths)
        self._by_query: dict[str, dict[str, float]] = {}
        for path in self.paths:
            if not Path(path).exists():
                raise MissingInputError(f"{path} does not exist: data.teacher names files of a teacher's scores.")
            for place, row in rows(path):
                try:
                    query, score = fields.filled_text(row, "query"), fields.optional_number(row, "score")
                    passage = _passage_key(row)
                    if score is None or passage is None:
                        lacking = "score" if score is None else "passage: give passage_id or text"
                        raise DataError(f"the row has no {lacking}")
                except DataError as error:
                    raise DataError(f"{path}, {place}: {error}") from error
                self._by_query.setdefault(nfkc(query), {})[passage] = score

    def __contains__(self, query: str) -> bool:
        """Whether a question has scores."""
        return nfkc(query) in self._by_query

    def __len__(self) -> int:
        return len(self._by_query)

    def of(self, query: str, passages: Sequence[Passage]) -> tuple[float, ...]:
        """The score of each passage; NaN without one. By its id, else the corpus's, else its text."""
        own: Mapping[str, float] = self._by_query.get(nfkc(query), {})
        keys = ((p.id, p.corpus_id, _text_key(p.text)) for p in passages)
        return tuple(next((own[key] for key in each if key in own), math.nan) for each in keys)


def _passage_key(row: fields.Row) -> str | None:
    """What a row calls its passage; None if it names none."""
    if fields.has(row, "passage_id"):
        return fields.identity(row, "passage_id")
    return _text_key(fields.filled_text(row, "text")) if fields.has(row, "text") else None


def _text_key(text: str) -> str:
    return f"text:{nfkc(text)}"
