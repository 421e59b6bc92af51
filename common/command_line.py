"""What the parsers of all commands share.

One-line errors, readable help, and a check of all options before anything is loaded.

Standard library only; the parser's class comes from jsonargparse or Lightning.
"""

import argparse
import ast
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, ClassVar, NoReturn, get_args, get_origin

from common.class_help import answer, asked
from common.errors import UserError, as_typed
from common.moved import advice
from common.parser_messages import in_plain_words


class KeepsExamples:
    """Mixin for help formatters: indented lines of a description stay lines, the other paragraphs are filled."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = [each.strip("\n") for each in text.split("\n\n")]
        filled = [
            each if each.startswith("    ") else textwrap.fill(" ".join(each.split()), width) for each in paragraphs
        ]
        return textwrap.indent("\n\n".join(filled), indent)


class StandIn:
    """Stands for an object that has not been built, while options are checked.

    The object's arguments are its attributes.

    Args:
        class_type: The object's class.
        arguments: The arguments of its constructor.
    """

    def __init__(self, class_type: type, arguments: Mapping[str, Any]) -> None:
        self.class_type = class_type
        vars(self).update(arguments)

    @property
    def class_path(self) -> str:
        """The class as a config names it."""
        return f"{self.class_type.__module__}.{self.class_type.__qualname__}"

    @property
    def init_args(self) -> dict[str, Any]:
        """The arguments of its constructor."""
        return {name: value for name, value in vars(self).items() if name != "class_type"}


class KeepsNested:
    """Mixin for the action of an option that is a dict: `--study.grid.k1 X` keeps what is in `study.grid` already.

    Without it the parser replaces all of `study.grid` (jsonargparse 4.53), so that only the last of several such
    options counts.
    """

    dest: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Parse one option; the rest of its dict is that of a config or of the options before it."""
        if args:
            parser, config, value, option = args
            base = self.get_option_string_base(option)  # type: ignore[attr-defined]
            first, *rest = option.removeprefix(f"{base}.").split(".") if base else [""]
            if rest:
                before = (config.get(self.dest) or {}).get(first)
                args = parser, config, _with_nested(before, rest, value), f"{base}.{first}"
        return super().__call__(*args, **kwargs)  # type: ignore[misc]


def _is_dict(kind: Any) -> bool:
    """Whether an option's type is `dict[...]`, or that or None."""
    return dict in {get_origin(each) for each in (kind, *get_args(kind))}


def _with_nested(before: Any, names: Sequence[str], value: Any) -> dict[str, Any]:
    """A dict in which what stands under `names`, one within the other, is replaced."""
    first, *rest = names
    known = dict(before) if isinstance(before, Mapping) else {}
    return known | {first: _with_nested(known.get(first), rest, value) if rest else value}


def _with_null(option: str) -> str:
    """`--reward.k=None` as `--reward.k=null`, also within a list or a dict.

    jsonargparse (4.53) hands the options of a class within a class to a parser of their own as Python writes their
    values, which YAML then reads as the text "None".
    """
    name, _, text = option.partition("=")
    if "None" not in text:
        return option
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return option  # a text that has the word in it
    return option if isinstance(value, str) else f"{name}={json.dumps(value)}"


class CommandLine:
    """Mixin for argument parsers."""

    command: str  # as typed in a checkout: "infer.py", or "python -m package.module"
    checks: ClassVar[Mapping[str, Callable[..., None]]] = {}  # per command: checks some of its arguments, by name
    built_in_checks: ClassVar[tuple[type, ...]] = ()  # classes that load nothing in their constructor
    explained_groups: ClassVar[Sequence[str]] = ()  # keys whose `--KEY.help` explains a group of options
    only_check: ClassVar[bool] = False  # build nothing: commands get a `StandIn` for every object
    prog: str
    exit_on_error: bool
    parent_parser: Any
    formatter_class: type
    _subcommands_action: Any
    _option_string_actions: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._given: Sequence[str] = ()
        super().__init__(*args, **kwargs)
        self.formatter_class = type("HelpFormatter", (KeepsExamples, self.formatter_class), {})

    def format_help(self) -> str:
        """The help, with the names of types as they are written in Python."""
        return as_typed(re.sub(r"<class\s+'([\w.]+)'>", r"\1", super().format_help()))  # type: ignore[misc]

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print; unlike argparse's, it does not hide that the reader of the output has gone."""
        if message:
            (file or sys.stderr).write(message)

    def parse_args(self, args: Sequence[str] | None = None, *more: Any, **kwargs: Any) -> Any:
        """Parse the arguments; `--OPTION.help` without a class lists the classes that the option accepts, and exits.

        A program's own options that are true or false can be given without a value, which means true.
        """
        if args is not None and not self.exit_on_error:  # the parser of a nested class
            args = [_with_null(each) for each in args]
        given = self._given = sys.argv[1:] if args is None else args
        for parser in (self, *(getattr(getattr(self, "_subcommands_action", None), "choices", None) or {}).values()):
            for action in parser._actions:
                kind = getattr(action, "_typehint", None)
                if kind is bool:
                    action.nargs, action.const = "?", True
                elif _is_dict(kind) and not isinstance(action, KeepsNested):
                    action.__class__ = type("NestedOption", (KeepsNested, type(action)), {})
        text = None
        if option := asked(given):
            text = answer(option, " ".join([self._program(), *given[: given.index(f"--{option}.help")]]))
        for group in self.explained_groups:
            if f"--{group}.help" in given:
                text = self._group_help(group, given)
        if text is not None:
            print(as_typed(text))
            raise SystemExit(0)
        return super().parse_args(args, *more, **kwargs)  # type: ignore[misc]

    def _program(self) -> str:
        """What a user types to start the program."""
        return self.command if self.command.startswith("python") else f"python {self.command}"

    def _group_help(self, key: str, given: Sequence[str]) -> str:
        """The help of one group of options of the command that is given; the parser is of no use afterwards."""
        commands = self._subcommands_action.choices
        parser = commands[next((word for word in given if word in commands), next(iter(commands)))]
        parser.usage, parser.description = argparse.SUPPRESS, ""
        parser._action_groups = [
            group
            for group in parser._action_groups
            if group.title != "Linked arguments"
            and any(action.dest.startswith(f"{key}.") for action in group._group_actions)
        ]
        return parser.format_help().strip()

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Print the error in one line, then the command that lists the keys in question, and exit with code 2.

        Raises:
            Exception: In the parser of a nested class, for the parser around it.
        """
        if not self.exit_on_error:
            super().error(message, ex)  # type: ignore[misc]
        parser = getattr(ex, "subcommand_parser", None) or self
        words = parser.prog.replace("[options]", "").split()[1:]
        commands = getattr(getattr(parser, "_subcommands_action", None), "choices", None) or ()
        if not words and (name := next((word for word in self._given if word in commands), None)):
            # "ask.strategy": an option that the program misses is one of the command
            words, message = [name], message.replace(f"{name}.", "")
        problem = in_plain_words(message, list(parser._option_string_actions))
        typed = [self._program()] if self.command.startswith("python") else [self._program(), *words]
        options = [f"--{key}.help {path}".strip() for key, path in problem.classes]
        if not options and problem.text.partition(".")[0].lstrip("-") in self.explained_groups:
            options = [f"--{problem.text.partition('.')[0].lstrip('-')}.help"]
        print(as_typed(f"{self.command}: {advice(message, problem.text, [*words, *self._given])}."), file=sys.stderr)
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
            if self.only_check:
                return checked
        return build(namespace, *args, instantiators=instantiators, **kwargs)

    def _check(self, class_type: type, *args: Any, **kwargs: Any) -> Any:
        """Check an object's options instead of building it; what loads nothing is built."""
        if is_dataclass(class_type) or issubclass(class_type, self.built_in_checks):
            return class_type(*args, **kwargs)
        if check := getattr(class_type, "check_options", None):
            call_with_known(check, kwargs)
        return StandIn(class_type, kwargs)


def call_with_known(function: Callable[..., None], arguments: Mapping[str, Any]) -> None:
    """Call a function with those of the arguments that it takes."""
    function(**{name: arguments[name] for name in inspect.signature(function).parameters})
