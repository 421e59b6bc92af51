"""File format of mined hard negatives, written by `infer.py mine` and read by training.

JSON Lines, one question per line:

    {"question_id", "passages": [{"title", "text"}, ...], "hits": {id: [id, ...]}, "copies", "text_version"}

`passages` has no gold one, best ranked first. `hits` says what the search with the question and a passage found, best
first: the ids are of `passages` and of the question's gold passages. `copies` is the number of passages that were found
and left out because they have a gold passage's text. Where false negatives were looked for there are `scores`,
P(relevant) of each passage by a cross-encoder, and `relevant`, the number of passages that were left out.
`text_version` is `common.records.TEXT_VERSION`: files with texts and ids of another one are refused.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from common.errors import DataError, MissingInputError
from common.records import OTHER_TEXTS, TEXT_VERSION, Passage
from datamodules.formats import row_fields as fields
from datamodules.formats.open_data import first_fields, rows

Hits = Mapping[str, Sequence[str]]


class Mined(list[Passage]):
    """A question's mined passages, best ranked first.

    Args:
        passages: None of them gold.
        hits: By the id of a passage d, of these or gold, the ids of those that the search with Concat(q, d) found.
        copies: Passages that were left out because they have a gold passage's text.
        scores: P(relevant) of each passage, where a cross-encoder looked for false negatives.
        relevant: Passages that were left out because they may be relevant.
    """

    def __init__(
        self,
        passages: Iterable[Passage] = (),
        hits: Hits | None = None,
        copies: int = 0,
        scores: Sequence[float] = (),
        relevant: int = 0,
    ) -> None:
        super().__init__(passages)
        self.copies, self.scores, self.relevant = copies, scores, relevant
        self.hits: dict[str, list[str]] = {anchor: list(found) for anchor, found in (hits or {}).items()}

    def add(self, other: "Mined") -> None:
        """Add what another file has on the same question."""
        self.extend(other)
        for anchor, found in other.hits.items():
            self.hits[anchor] = list(dict.fromkeys([*self.hits.get(anchor, ()), *found]))


def is_mined(path: Path) -> bool:
    """Whether a file is one of mined negatives, by its first line."""
    return first_fields(path) - {"hits", "copies", "text_version", "scores", "relevant"} == {"question_id", "passages"}


def mined_line(id: str, found: Mined) -> str:
    """The line of a question, without its line break."""
    passages = [{"title": p.title, "text": p.text} for p in found]
    row = {"question_id": id, "passages": passages, "hits": found.hits, "copies": found.copies}
    if found.scores or found.relevant:
        row |= {"scores": [round(score, 6) for score in found.scores], "relevant": found.relevant}
    return json.dumps(row | {"text_version": TEXT_VERSION}, ensure_ascii=False)


def mined_rows(paths: Sequence[str]) -> Iterator[tuple[str, Mined]]:
    """Question id and mined passages of every line of the files, in order.

    Raises:
        MissingInputError: If a file does not exist.
        DataError: If a line is invalid; names file and line.
    """
    for path in paths:
        if not Path(path).exists():
            raise MissingInputError(f"{path} does not exist: write it with `python infer.py mine --out {path} ...`.")
        for place, row in rows(path):
            try:
                found = Mined((Passage.of(p["title"], p["text"]) for p in row["passages"]), _hits(row))
                question_id = fields.identity(row, "question_id")
            except (DataError, ValueError, KeyError, TypeError, AttributeError) as error:
                reason = error if isinstance(error, DataError) else repr(error)
                raise DataError(
                    f"{path}, {place}: invalid row ({reason}); run `python infer.py mine` again."
                ) from error
            if row.get("text_version") != TEXT_VERSION:
                raise DataError(f"{path}, {place}: {OTHER_TEXTS} Run `python infer.py mine` again.")
            yield question_id, found


def _hits(row: Mapping[str, Hits]) -> Hits:
    hits = row["hits"]
    if not all(isinstance(id_, str) for anchor, found in hits.items() for id_ in (anchor, *found)):
        raise TypeError("hits must be lists of passage ids by passage id")
    return hits
