"""Command `python -m datamodules.world --out data/world --seed 1`: writes a synthetic data set in official layouts."""

import time
from pathlib import Path

from jsonargparse import ArgumentParser

from common.command_line import CommandLine
from common.errors import exit_code
from common.progress import Progress
from datamodules.world.world import WorldConfig
from datamodules.world.writing import write_world

COMMAND = "python -m datamodules.world"


class WorldParser(CommandLine, ArgumentParser):  # type: ignore[misc]
    """ArgumentParser with one-line errors."""

    command = COMMAND


def main(args: list[str] | None = None) -> None:
    """Run the command."""
    parser = WorldParser(prog=COMMAND, description=__doc__, allow_abbrev=False)
    parser.add_argument("--out", type=Path, required=True, help="output folder; replaced if it holds a world")
    parser.add_class_arguments(WorldConfig)
    given = vars(parser.parse_args(args))
    started, out = time.perf_counter(), given.pop("out")
    with Progress("generating the world"):
        record = write_world(WorldConfig(**given), out)
    counts = {split: sum(kinds.values()) for split, kinds in record["questions"].items()}
    print(f"{out}: questions {counts}, passages {record['passages']}, {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    raise SystemExit(exit_code(COMMAND, main))
