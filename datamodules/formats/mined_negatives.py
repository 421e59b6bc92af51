"""File format of mined hard negatives, written by `infer.py mine` and read by training.

JSON Lines, one question per line: {"question_id", "passages": [{"title", "text"}, ...]}, best ranked first.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from common.errors import DataError, MissingInputError
from common.files import write_text
from common.records import Passage


def is_mined(path: Path) -> bool:
    """Whether a file is one of mined negatives, by its first line."""
    try:
        with path.open(encoding="utf-8") as file:
            return json.loads(file.readline()).keys() == {"question_id", "passages"}
    except (ValueError, AttributeError):  # not UTF-8, not JSON, or not an object
        return False


def write_mined(path: Path, mined: Iterable[tuple[str, Sequence[Passage]]]) -> None:
    """Write (question id, passages) rows atomically.  Raises as `write_text`."""
    rows = ({"question_id": id, "passages": [{"title": p.title, "text": p.text} for p in found]} for id, found in mined)
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def read_mined(paths: Sequence[str]) -> dict[str, list[Passage]]:
    """Mined passages by question id, from one or several files.

    Raises:
        MissingInputError: If a file does not exist.
        DataError: If a line is invalid; names file and line.
    """
    mined: dict[str, list[Passage]] = {}
    for path in paths:
        if not Path(path).is_file():
            raise MissingInputError(f"{path} does not exist: write it with `python infer.py mine --out {path} ...`.")
        with Path(path).open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    row = json.loads(line)
                    found = [Passage.of(p["title"], p["text"]) for p in row["passages"]]
                    mined.setdefault(row["question_id"], []).extend(found)
                except (ValueError, KeyError, TypeError) as error:
                    raise DataError(
                        f"{path}, line {number}: invalid row ({error!r}); run `python infer.py mine` again."
                    ) from error
    return mined
