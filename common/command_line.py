"""What the parsers of all commands share: errors in one line, readable help.

Standard library only; the parser's class comes from jsonargparse or Lightning.
"""

import argparse
import ast
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from inspect import signature
from pkgutil import resolve_name
from typing import Any, NoReturn, get_args, get_origin

from common.errors import UserError, as_typed
from common.roots import resolve
from common.shown_text import terminal
from common.yaml_texts import use_in_parsers

_WORDS = ("question",)  # options whose value is the words of a person


def check_type(action: Any, value: Any, append: bool = False, cfg: Any = None, mode: Any = None) -> Any:
    """Parse a value of an option that is a dict, a list or typed words; jsonargparse (4.53) calls `action._check_type`.

    Typed words are no YAML: `--question null` asks what null is.

    `--study.grid.k1 X` keeps what is in `study.grid` already, where the parser would replace all of it, so that only
    the last of several such options counted. A list given whole replaces the one before it, where the parser would
    merge the items of two lists of one length: options that a config gave to the first item stayed on the first item of
    a list typed after it.
    """
    if action.dest in _WORDS and isinstance(value, str):
        return value
    kind, nested = action._typehint, type(value).__name__ == "NestedArg"
    if nested and "." in value.key and _holds(kind, dict):
        first, *rest = value.key.split(".")
        before = ((cfg and cfg.get(action.dest)) or {}).get(first)
        value = value._replace(key=first, val=_with_nested(before, rest, value.val))
    elif _holds(kind, list) and not append and not nested:
        cfg = None
    return type(action)._check_type(action, value, append=append, cfg=cfg, mode=mode)


def _holds(kind: Any, container: type) -> bool:
    """Whether an option's type is a container, such as `dict[...]`, or a union with one."""
    return container in {get_origin(each) for each in (kind, *get_args(kind))}


def _with_nested(before: Any, names: Sequence[str], value: Any) -> dict[str, Any]:
    """A copy of a nested dict with the value at the path `names` replaced."""
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


_TYPE = r"(?:<class\s+'|typing\.(?=\w))(?:jsonargparse\.typing\.)?([\w.]+)(?:(?<=\w)'>)?"  # as Python prints it
_HEADINGS = (  # of the parser's messages, jsonargparse 4.53; what they head is in the lines below them
    r"Problem with given class_path '[^']*':|Does not validate against .*|Subtypes: .*|Errors:|Given value type: .*|"
    r"Expected a NoneType|Given value: (?:Namespace|\{).*"
)


def in_one_line(message: str) -> str:
    """A parser's message, a tree of lines, as `key.of.the.option: what is wrong; what was given`."""
    message = re.sub(r"NestedArg\(key='.*?', val='?(.*?)'?\)", r"\1", re.sub(_TYPE, r"\1", message))
    keys = re.findall(r'Parser key "([^"]+)":', message)
    lines = re.sub(r'Parser key "[^"]+":', "", message).splitlines()
    told = [line.strip().removeprefix("- ").rstrip(".") for line in lines]
    said = "; ".join(dict.fromkeys(each for each in told if each and not re.fullmatch(_HEADINGS, each)))
    return ": ".join(filter(None, (".".join(keys), said)))


def refuse_null_groups(options: Mapping[str, Any], name: str = "", kind: Any = None) -> None:
    """Raise UserError if a group of options of a class, or of one within it, is null: nothing can be made of it.

    Args:
        options: Parsed options.
        name: What they are options of, before their own names.
        kind: The class that takes them; None if none of them is such a group.
    """
    parameters = {} if kind is None else signature(kind).parameters
    for option, value in options.items():
        place, of = f"{name}.{option}".lstrip("."), getattr(parameters.get(option), "annotation", None)
        if value is None and isinstance(of, type) and is_dataclass(of):
            first = fields(of)[0]
            example = f"{{{first.name}: {'null' if first.default is None else 'VALUE'}}}"
            raise UserError(f"{place}: null is no group of options: give {example}, or leave it out.")
        if hasattr(value, "init_args"):
            refuse_null_groups(vars(value.init_args), place, resolve_name(value.class_path))


class CommandLine:
    """Mixin for argument parsers."""

    command: str  # as typed in a checkout: "infer.py", or "python -m package.module"
    exit_on_error: bool
    formatter_class: type
    prog: str
    _subcommands_action: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._given: Sequence[str] = ()
        self.used_roots: set[str] = set()  # of the last arguments
        use_in_parsers()
        kwargs.setdefault("allow_abbrev", False)  # in a class's own parser, too: `--trainer.max_epoch` is a mistake
        super().__init__(*args, **kwargs)
        lines_kept = (argparse.RawDescriptionHelpFormatter, self.formatter_class)
        self.formatter_class = type("HelpFormatter", lines_kept, {})

    def format_help(self) -> str:
        """The help, with the names of types as they are written in Python."""
        return as_typed(re.sub(_TYPE, r"\1", super().format_help()))  # type: ignore[misc]

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print. Unlike argparse's, it raises if the output pipe is closed."""
        if message:
            (file or sys.stderr).write(message)

    def parse_args(self, args: Sequence[str] | None = None, *more: Any, **kwargs: Any) -> Any:
        """Parse the arguments.

        A program's own options that are true or false can be given without a value, which means true.
        """
        if args is not None and not self.exit_on_error:  # the parser of a nested class
            args = [_with_null(each) for each in args]
        self._given = sys.argv[1:] if args is None else args
        for parser in (self, *(getattr(getattr(self, "_subcommands_action", None), "choices", None) or {}).values()):
            parser._adapt_actions()
        parsed = super().parse_args(args, *more, **kwargs)  # type: ignore[misc]
        if (command := parsed.get("subcommand")) and parsed[command] is not None and "data_root" in parsed[command]:
            self.used_roots = resolve(parsed[command])
        return parsed

    def _apply_actions(self, *args: Any, **kwargs: Any) -> Any:
        """Parse the values of a config."""
        self._adapt_actions()
        return super()._apply_actions(*args, **kwargs)  # type: ignore[misc]

    def _adapt_actions(self) -> None:
        for action in self._actions:  # type: ignore[attr-defined]
            kind = getattr(action, "_typehint", None)
            if kind is bool:
                action.nargs, action.const = "?", True
            if _holds(kind, dict) or _holds(kind, list) or action.dest in _WORDS:
                action._check_type = partial(check_type, action)

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Print the error in one line, which ends with the command that lists the options, and exit with code 2.

        Raises:
            Exception: In the parser of a nested class, for the parser around it.
        """
        if not self.exit_on_error:
            super().error(message, ex)  # type: ignore[misc]
        commands = getattr(getattr(self, "_subcommands_action", None), "choices", None) or ()
        words = self.prog.replace("[options]", "").split()[1:] or [word for word in self._given if word in commands][:1]
        typed = [self.command] if self.command.startswith("python") else ["python", self.command, *words]
        options = " ".join([*typed, "--help"])
        told = in_one_line(message)
        print(terminal(as_typed(f"{self.command}: {told}. All options: {options}")), file=sys.stderr)
        raise SystemExit(UserError.exit_code)
