"""Files of mined negatives, written and read whole."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from datamodules.formats.mined_negatives import Mined, mined_line, mined_rows


def write_mined(path: Path, mined: Iterable[tuple[str, Mined]]) -> None:
    """Write (question id, passages and hits) rows."""
    path.write_text("".join(mined_line(id, found) + "\n" for id, found in mined), encoding="utf-8")


def read_mined(paths: Sequence[str]) -> dict[str, Mined]:
    """Mined passages by question id."""
    mined: dict[str, Mined] = {}
    for question_id, found in mined_rows(paths):
        mined.setdefault(question_id, Mined()).add(found)
    return mined
