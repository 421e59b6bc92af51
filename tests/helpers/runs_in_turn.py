"""Several runs of train.py one after another in the same processes, which start once: a program for torchrun.

Its argument is a JSON file with one list of options per run.  The first run that fails ends it.
"""

import json
import sys
from pathlib import Path

import train


def main(file: Path) -> None:
    """Run `train.py fit --config config.yaml` with each list of options."""
    for options in json.loads(file.read_text()):
        print("run:", *options, flush=True)
        train.main(["fit", "--config", "config.yaml", *options])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
