"""Command `python -m datamodules.world --out data/world --seed 1`: writes a synthetic data set in official layouts."""

import argparse
import sys
import time
from pathlib import Path

from common.errors import UserError
from datamodules.world.world import WorldConfig
from datamodules.world.writing import write_world

MIN_QUESTIONS = 50


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    default = WorldConfig()
    parser = argparse.ArgumentParser(prog="python -m datamodules.world", description=__doc__, allow_abbrev=False)
    parser.add_argument("--out", type=Path, required=True, help="output folder; replaced if it holds a world")
    parser.add_argument("--seed", type=int, default=default.seed, help="same seed, same files")
    parser.add_argument(
        "--questions", type=int, default=default.questions, help="of train (60%%), validation (12%%), test (28%%)"
    )
    parser.add_argument("--singles", type=int, default=default.singles, help="single-hop questions in the FiD files")
    parser.add_argument(
        "--open-singles", type=int, default=default.open_singles, help="more of these, half without gold passage"
    )
    parser.add_argument(
        "--web-questions", type=int, default=default.web_questions, help="with passages in the web corpus only"
    )
    parser.add_argument("--manuals", type=int, default=default.manuals, help="product manuals in Markdown")
    given = parser.parse_args(arguments)
    try:
        if given.questions < MIN_QUESTIONS:
            raise UserError(f"--questions {given.questions}: at least {MIN_QUESTIONS}, so that every kind occurs.")
        for option in ("singles", "open_singles", "web_questions", "manuals"):
            if getattr(given, option) < 0:
                raise UserError(f"--{option.replace('_', '-')} {getattr(given, option)}: must not be negative.")
        started = time.perf_counter()
        config = WorldConfig(
            given.seed, given.questions, given.singles, given.open_singles, given.web_questions, given.manuals
        )
        record = write_world(config, given.out)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    counts = {split: sum(kinds.values()) for split, kinds in record["questions"].items()}
    print(f"{given.out}: questions {counts}, passages {record['passages']}, {time.perf_counter() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
