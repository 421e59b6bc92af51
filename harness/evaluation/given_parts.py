"""A part of a system that a study takes as an option, such as a reader: checked at once, built when its turn comes."""

import inspect
from argparse import ArgumentError
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from jsonargparse import ArgumentParser, Namespace

from common.command_line import CommandLine
from common.errors import UserError
from common.parser_messages import in_plain_words
from harness.runtime.provenance import reusing


class CheckingParser(CommandLine, ArgumentParser):  # type: ignore[misc]
    """Parses a config and checks its options without building anything."""

    command = "infer.py"
    only_check: ClassVar[bool] = True


class GivenPart:
    """One part, as class_path and init_args.

    Args:
        option: Name of the option, for error messages.
        takes: A function whose only parameter has the part's name and type, e.g. `def takes(reader: Reader) -> None`.
        given: A mapping with class_path and init_args; objects in it can be files, as on the command line.

    Raises:
        UserError: If it is something else, or an option of the class is unknown or out of range.
    """

    def __init__(self, option: str, takes: Callable[..., None], given: object) -> None:
        (self._name,) = inspect.signature(takes).parameters
        given = given.as_dict() if isinstance(given, Namespace) else given  # as the command line parses a mapping
        if not isinstance(given, Mapping) or "class_path" not in given:
            raise UserError(f"{option} is {given!r}: give class_path and init_args of a {self._name}.")
        checking = CheckingParser(exit_on_error=False)
        checking.add_function_arguments(takes, sub_configs=True)
        try:
            self._options = checking.parse_object({self._name: dict(given)})
        except ArgumentError as error:
            raise UserError(f"{option}: {in_plain_words(str(error), [self._name]).text}.") from error
        checking.instantiate(self._options)  # checks the classes' options with a `StandIn` for every object
        self._parser = ArgumentParser(exit_on_error=False)
        self._parser.add_function_arguments(takes, sub_configs=True)

    def build(self, known: Sequence[object] = ()) -> Any:
        """The part.

        Args:
            known: Objects of the measured system, which are used again where a class and its arguments are the same.
        """
        instantiators = [(reusing(known), object, True)]
        return self._parser.instantiate(self._options, instantiators=instantiators).get(self._name)
