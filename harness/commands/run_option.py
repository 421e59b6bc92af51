"""The options `--run` and `--corpus` of `infer.py evaluate`: another program's run in the place of a system."""

from pathlib import Path
from typing import Any

from common.errors import UserError
from datamodules.formats.trec import corpus_beside

RUN = "A run in TREC's format, which another program made, in the place of a system."
CORPUS = "With --run, the corpus of its documents; null: of a folder of BEIR the corpus in it."


def add_run(parser: Any) -> None:
    """Give the jsonargparse parser of `evaluate` the options."""
    known = {action.dest: action for action in parser._actions}
    if "studies" in known:
        parser.add_argument("--run", type=Path | None, default=None, help=RUN)
        parser.add_argument("--corpus", type=str | None, default=None, help=CORPUS)
        known["system"].required = False  # `move_to_system` makes one


def move_to_system(options: Any) -> None:
    """Make the options of a parsed command its system, before anything is built.

    Args:
        options: The command's, from jsonargparse; changed in place.

    Raises:
        UserError: If there is both a system and a run, or none of them, or a corpus alone or none.
    """
    from jsonargparse import Namespace

    if "run" not in options:  # another command
        return
    run, corpus, questions = options.pop("run"), options.pop("corpus"), options.questions
    if (run is None) == (options.system is None):
        config = "--config configs/infer/retrieve_read.yaml"
        raise UserError(f"Give one of a system, such as {config}, and another program's run, --run FILE.")
    if run is not None:
        corpus = corpus or corpus_beside(questions if isinstance(questions, str) else [*questions, ""][0])
        made = Namespace(run=run, corpus=corpus)
        options.system = Namespace(class_path="harness.systems.run_file.RunFile", init_args=made)
    if (run is None) != (corpus is None):
        raise UserError("--corpus FILE is of the documents of --run FILE: give both, or none of them.")
