"""The options `--run` and `--corpus` of `infer.py evaluate`: another program's run in the place of a system."""

import inspect
from pathlib import Path
from typing import Any

from common.errors import UserError
from datamodules.formats.trec import corpus_beside
from harness.systems.run_file import RunFile

HELP = {
    "run": "A run in TREC's format, which another program made, in the place of a system.",
    "corpus": "With --run, the corpus of its documents; null: of a folder of BEIR the corpus in it.",
}


def add_run(parser: Any) -> None:
    """Give the jsonargparse parser of `evaluate` the options."""
    if any(action.dest == "studies" for action in parser._actions):
        parser.add_argument("--run", type=Path | None, default=None, help=HELP["run"])
        parser.add_argument("--corpus", type=str | None, default=None, help=HELP["corpus"])


def move_to_system(options: Any) -> None:
    """Make the options of a parsed command its system, before anything is built.

    Args:
        options: The command's, from jsonargparse; changed in place.

    Raises:
        UserError: If there is both a system and a run, or none of them, or no corpus.
    """
    from jsonargparse import Namespace

    if "run" not in options:  # another command
        return
    run, corpus = options.pop("run"), options.pop("corpus")
    if (run is None) == (options.system is None):
        raise UserError(
            "Give one of a system, such as --config configs/infer/retrieve_read.yaml, and another program's run, "
            "--run FILE."
        )
    if run is None:
        if corpus is not None:
            raise UserError("--corpus is of the documents of --run FILE, and a system has its index: omit it.")
        return
    questions = options.questions if isinstance(options.questions, str) else next(iter(options.questions or ()), "")
    if (corpus := corpus or corpus_beside(questions)) is None:
        raise UserError("--run needs the corpus of its documents: type --corpus FILE.")
    k = inspect.signature(RunFile).parameters["k"].default
    arguments = Namespace(run=run, corpus=corpus, k=k)
    options.system = Namespace(class_path=f"{RunFile.__module__}.{RunFile.__qualname__}", init_args=arguments)
