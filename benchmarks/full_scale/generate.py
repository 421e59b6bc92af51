"""Writes files in the official layouts at the data sets' own sizes, or a share of them.

Their texts are generated, and mean nothing.

    python -m benchmarks.full_scale.generate --data hotpotqa --out data/full/hotpot_train.json
    python -m benchmarks.full_scale.generate --data nq --split dev --share 0.01 --out data/full/nq_dev.json
    python -m benchmarks.full_scale.generate --data corpus --share 0.24 --out data/full/corpus.jsonl

HotpotQA, NQ and TriviaQA are one JSON list, as their releases; a corpus is JSON Lines. The same arguments write the
same bytes.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.full_scale.rows import ROWS, SPLITS, Size, rows
from common.errors import UserError, exit_code
from common.files import write_atomically
from common.progress import Progress, in_bytes, say

COMMAND = "python -m benchmarks.full_scale.generate"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(
        COMMAND, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--data", choices=ROWS, required=True)
    options.add_argument("--split", choices=SPLITS, default="train")
    options.add_argument("--share", type=float, default=1.0, help="of the rows: above 0, at most 1")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path, required=True)
    return options


def write_rows(size: Size, out: Path) -> int:
    """Write a file, row by row; the number of its rows.

    Raises:
        UserError: If the data set has no such split, or the share is out of range.
        ArtifactError: If the file cannot be written.
    """
    if size.split not in ROWS[size.data]:
        raise UserError(f"--split {size.split}: {size.data} has only {', '.join(ROWS[size.data])}.")
    if not 0 < size.share <= 1:
        raise UserError(f"--share {size.share}: give a number above 0, at most 1.")
    start, between, end = ("", "\n", "\n") if size.data == "corpus" else ("[", ", ", "]")

    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8") as file, Progress(f"writing {out}", size.rows) as progress:
            for number, row in enumerate(rows(size)):
                file.write((between if number else start) + json.dumps(row))
                progress.advance()
            file.write(end)

    write_atomically(out, write)
    return size.rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    given = parser().parse_args(arguments)
    count = write_rows(Size(given.data, given.split, given.share, given.seed), given.out)
    say(f"{given.out}: {count:,} rows, {in_bytes(given.out.stat().st_size)}.")


if __name__ == "__main__":
    raise SystemExit(exit_code(COMMAND, main))
