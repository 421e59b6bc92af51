"""The search of `data.search`: commands of `infer.py` that write what a data module reads, before training.

Each runs in a process of its own, which gives its memory back, once the options of the training are known to be right.
"""

import os
import subprocess
import sys
from pathlib import Path

from common.errors import UserError
from common.locks import exclusive
from common.progress import say
from datamodules.cache.record_cache import WAIT_SECONDS
from datamodules.cache.search_results import SearchResults

_INFER = Path(__file__).resolve().parents[2] / "infer.py"
_OF_RANKS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "NODE_RANK")


def search(results: SearchResults) -> None:
    """Write the files that are not there; the first process does it, and the others wait for each file.

    Raises:
        MissingInputError: If the retriever's configuration or the indexes do not exist.
        UserError: If a command fails, which has said why.
    """
    alone = {name: value for name, value in os.environ.items() if name not in _OF_RANKS}
    for source, file, command in zip(results.sources, results.files, results.commands, strict=True):
        with exclusive(Path(f"{file}.search"), wait_seconds=WAIT_SECONDS):  # perhaps of another machine of this run
            if Path(file).exists():
                say(f"{source.path}: what the retriever finds was written before, to {file}.")
            elif code := subprocess.run([sys.executable, str(_INFER), *command], env=alone).returncode:
                raise UserError(
                    f"python infer.py {' '.join(command)} ended with exit code {code}, see above: what it writes is "
                    "needed for data.search."
                )
