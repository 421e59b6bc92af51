"""The option `--llm` of every command of a system: a language model as the reader of that system, whatever that is."""

import importlib
import inspect
from typing import Any

from common.errors import UserError
from harness.interfaces import LanguageModel
from harness.readers.llm import LlmReader

READER = f"{LlmReader.__module__}.{LlmReader.__qualname__}"
HELP = "Language model that reads, in the place of the system's reader: a class, or a file of configs/llm."


def add_llm(parser: Any) -> None:
    """Give a command's jsonargparse parser the option, if the command has a system."""
    if any(action.dest == "system" for action in parser._actions):
        parser.add_argument("--llm", type=LanguageModel | None, default=None, sub_configs=True, help=HELP)


def move_to_reader(options: Any) -> None:
    """Make the option of a parsed command the language model of the system's reader, before anything is built.

    The other arguments of an LlmReader that the system has stay. So a system with `--llm` is the system with that
    reader: its saved results and its report say so.

    Args:
        options: The command's, from jsonargparse; changed in place.

    Raises:
        UserError: If there is no system, or it has no reader.
    """
    from jsonargparse import Namespace

    if "system" not in options or (llm := options.pop("llm")) is None:  # a command without a system uses it itself
        return
    if options.system is None:
        raise UserError("--llm is the reader of a system, and --serving is a part alone: omit one of them.")
    module, _, name = options.system.class_path.rpartition(".")
    taken = inspect.signature(getattr(importlib.import_module(module), name)).parameters
    if "reader" not in taken:
        raise UserError(f"llm takes the place of the system's reader, and {name} has none: omit --llm.")
    given = options.system.init_args.get("reader")
    if given is None or given.class_path != READER:
        own = inspect.signature(LlmReader).parameters.values()
        defaults = {each.name: each.default for each in own if each.default is not each.empty}
        given = Namespace(class_path=READER, init_args=Namespace(**defaults))
    given.init_args.llm = llm
    options.system.init_args.reader = given
