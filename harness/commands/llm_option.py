"""The option `--llm`: a language model as the reader of the configured system, whatever that is."""

import importlib
import inspect
from typing import Any

from common.errors import UserError
from harness.readers.llm import NO_READER, LlmReader

READER = f"{LlmReader.__module__}.{LlmReader.__qualname__}"


def move_to_reader(options: Any) -> None:
    """Make the option `llm` of a parsed command the language model of the system's reader, before anything is built.

    The other arguments of an LlmReader that the system has stay. So a system with `--llm` is the system with that
    reader: its saved results and its report say so.

    Args:
        options: The command's, from jsonargparse; changed in place.

    Raises:
        UserError: If the system has no reader.
    """
    from jsonargparse import Namespace

    llm = options.get("llm")
    if llm is None or options.get("system") is None:  # a command without a system uses the model itself
        return
    module, _, name = options.system.class_path.rpartition(".")
    taken = inspect.signature(getattr(importlib.import_module(module), name)).parameters
    if "reader" not in taken:
        raise UserError(NO_READER.format(system=name))
    given = options.system.init_args.get("reader")
    if given is None or given.class_path != READER:
        own = inspect.signature(LlmReader).parameters.values()
        defaults = {each.name: each.default for each in own if each.default is not each.empty}
        given = Namespace(class_path=READER, init_args=Namespace(**defaults))
    given.init_args.llm = llm
    options.system.init_args.reader = given
    options.llm = None
