"""Rows of a data file drawn by the hash of their text: the same rows in whatever order they stand.

    python -m scripts.reproduce_lm.sample FILE --parts OUT=COUNT [OUT=COUNT ...]

FILE is of any form that the readers know.  The parts share no row, each is JSON Lines in the order of the hashes, and
the first COUNT rows of a part are the same when it is longer.
"""

import argparse
import hashlib
import json
from pathlib import Path

from common.errors import DataError, UserError, exit_code
from common.files import write_text
from datamodules.formats.open_data import rows

COMMAND = "python -m scripts.reproduce_lm.sample"


def part(text: str) -> tuple[Path, int]:
    """File and number of rows of a part."""
    out, _, count = text.rpartition("=")
    if not out or not count.isdecimal():
        raise UserError(f"--parts {text}: give OUT=COUNT, a file to write and its number of rows.")
    return Path(out), int(count)


def main() -> None:
    """Write the parts.

    Raises:
        DataError: If the file has too few rows.
    """
    options = argparse.ArgumentParser(description=__doc__, prog=COMMAND)
    options.add_argument("file")
    options.add_argument("--parts", nargs="+", required=True, metavar="OUT=COUNT")
    given = options.parse_args()
    parts = [part(each) for each in given.parts]
    lines = {json.dumps(row, ensure_ascii=False) for _, row in rows(given.file)}
    drawn = sorted(lines, key=lambda line: hashlib.sha256(line.encode()).hexdigest())
    if len(drawn) < (needed := sum(count for _, count in parts)):
        raise DataError(f"{given.file} has {len(drawn)} different rows, and the parts take {needed}.")
    for out, count in parts:
        write_text(out, "".join(f"{line}\n" for line in drawn[:count]))
        del drawn[:count]


if __name__ == "__main__":
    raise SystemExit(exit_code(COMMAND, main))
