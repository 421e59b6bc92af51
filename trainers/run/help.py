"""Help of train.py, printed from a text, for importing Lightning takes several seconds.

`python -m scripts.train_help` writes the text from the real parser; a test compares both.
"""

from collections.abc import Sequence
from pathlib import Path

from common.errors import as_typed
from common.version import VERSION

FILE = Path(__file__).with_suffix(".txt")
GROUPS = ("trainer", "checkpoint", "early_stopping", "card")  # of options; the page has the keys of each


def quick_answer(arguments: Sequence[str]) -> str | None:
    """What to print for a command line that asks for help or for the version; else None."""
    if "--version" in arguments:
        return as_typed(f"train.py {VERSION}")
    asks = {"-h", "--help"} & {*arguments} or {"--model.help", "--data.help"} & {*arguments[-1:]}
    return as_typed(FILE.read_text(encoding="utf-8").rstrip()) if asks else None
