"""What the parsers of all commands share: one-line errors, and a check of all options before anything is loaded.

Standard library only; the parser's class comes from jsonargparse or Lightning.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Any, ClassVar, NoReturn

from common.errors import UserError, as_typed
from common.moved import advice
from common.parser_messages import in_plain_words


class StandIn:
    """Stands for an object that has not been built, while options are checked."""


class CommandLine:
    """Mixin for argument parsers."""

    command: str  # as typed in a checkout: "infer.py", or "python -m package.module"
    checks: ClassVar[Mapping[str, Callable[..., None]]] = {}  # per command: checks some of its arguments, by name
    built_in_checks: ClassVar[tuple[type, ...]] = ()  # classes that load nothing in their constructor
    prog: str
    exit_on_error: bool
    parent_parser: Any
    _option_string_actions: dict[str, Any]

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Print the error in one line, then the command that lists the keys in question, and exit with code 2.

        Raises:
            Exception: In the parser of a nested class, for the parser around it.
        """
        if not self.exit_on_error:
            super().error(message, ex)  # type: ignore[misc]
        parser = getattr(ex, "subcommand_parser", None) or self
        words = parser.prog.replace("[options]", "").split()[1:]
        subcommands = getattr(getattr(parser, "_subcommands_action", None), "choices", None) or ()
        for name in subcommands:  # "ask.strategy": what the root misses is the command's
            if not words and f"{name}." in message:
                words, message = [name], message.replace(f"{name}.", "")
        problem = in_plain_words(message, list(parser._option_string_actions))
        python = self.command if self.command.startswith("python") else f"python {self.command}"
        typed = [python] if self.command.startswith("python") else [python, *words]
        options = [f"--{key}.help {path}".strip() for key, path in problem.classes]
        print(as_typed(f"{self.command}: {advice(message, problem.text)}."), file=sys.stderr)
        print(as_typed(f"All keys: {' '.join([*typed, *(options or ['--help'])])}"), file=sys.stderr)
        raise SystemExit(UserError.exit_code)

    def instantiate(self, namespace: Any, *args: Any, instantiators: Any = None, **kwargs: Any) -> Any:
        """Build the objects of a configuration; all their options are checked before the first is built.

        Raises:
            UserError: If an option is out of range, from a class's `check_options` or a command's check.
        """
        build = super().instantiate  # type: ignore[misc]
        if getattr(self, "parent_parser", None) is None:
            checked = build(namespace, *args, instantiators=[(self._check, object, True)], **kwargs)
            command = checked.get("subcommand")
            if command in self.checks:
                call_with_known(self.checks[command], vars(checked[command]))
        return build(namespace, *args, instantiators=instantiators, **kwargs)

    def _check(self, class_type: type, *args: Any, **kwargs: Any) -> Any:
        """Check an object's options instead of building it; what loads nothing is built."""
        if is_dataclass(class_type) or issubclass(class_type, self.built_in_checks):
            return class_type(*args, **kwargs)
        if check := getattr(class_type, "check_options", None):
            call_with_known(check, kwargs)
        return StandIn()


def call_with_known(function: Callable[..., None], arguments: Mapping[str, Any]) -> None:
    """Call a function with those of the arguments that it takes."""
    function(**{name: arguments[name] for name in inspect.signature(function).parameters})
