"""Paths of a configuration that begin with `$data_root` or `$index_root`: one config serves any folder of data.

Standard library only.
"""

import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from common.errors import UserError

ROOTS = {  # option -> its default, and its help
    "data_root": ("data", "Folder that $data_root at the start of a path of the configuration stands for."),
    "index_root": ("indexes", "Folder of one collection's indexes, for which $index_root stands."),
}
TYPED: ContextVar[Mapping[str, str]] = ContextVar("TYPED", default={})  # noqa: B039 (never changed); roots of the command
PLACED = re.compile(r"\$([A-Za-z_]\w*)(?=/)|\$(data_root|index_root)$")


def add_roots(parser: Any) -> None:
    """Give a jsonargparse parser the options."""
    for name, (default, explained) in ROOTS.items():
        parser.add_argument(f"--{name}", type=str, default=default, help=explained)


def resolve(options: Any) -> set[str]:
    """Put the roots of parsed options into their paths, in place; returns the roots that some path begins with.

    Args:
        options: A command's, from jsonargparse.

    Raises:
        UserError: If a root is empty, or a path begins with another `$name/`.
    """
    roots, used = {name: str(options.get(name)) for name in ROOTS}, set()
    if empty := [name for name, root in roots.items() if not root.strip()]:
        raise UserError(f"{empty[0]} is empty: give a folder; the working folder is . (a full stop).")

    def resolved(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(map(resolved, value))
        if isinstance(value, dict):
            return {key: resolved(each) for key, each in value.items()}
        if isinstance(value, Namespace):
            for key, each in vars(value).items():
                setattr(value, key, resolved(each))
            return value
        if isinstance(value, str | Path) and (found := PLACED.match(str(value))):
            name = found[1] or found[2]
            if name not in roots:
                allowed = ", ".join(f"${each}" for each in ROOTS)
                raise UserError(f"{value}: a path cannot begin with ${name}; allowed: {allowed}.")
            used.add(name)
            return type(value)(f"{roots[name].rstrip('/')}{str(value)[found.end() :]}" or "/")
        return value

    for key, value in vars(options).items():
        if key not in {*ROOTS, "config", "question"}:
            setattr(options, key, resolved(value))
    return used


def typed_in(given: Sequence[str]) -> dict[str, str]:
    """The roots that a command line's arguments give, the last of each; for `TYPED`.

    A typed root also applies to the paths in files that options name, such as another system's config.
    """
    found = {}
    for word, following in zip(given, [*given[1:], ""], strict=False):
        option, equals, value = word.removeprefix("--").partition("=")
        if word.startswith("--") and option in ROOTS:
            found[option] = value if equals else following
    return found


def refuse_unused(given: Sequence[str], used: set[str], whose: str = "") -> None:
    """Raise UserError if a typed root would have no effect.

    It has none if no path begins with it, or if a `--config` follows it, whose values override earlier ones.

    Args:
        given: The command line's arguments.
        used: What `resolve` returned.
        whose: The beginning of the error.
    """
    words = [word.partition("=")[0] for word in given]
    for name in typed_in(given):
        if "--config" in words[words.index(f"--{name}") :]:
            raise UserError(
                f"{whose}--{name} stands before a --config, which may set another one: type it after the config."
            )
        if name not in used:
            raise UserError(
                f"{whose}--{name} would change nothing: no path of this configuration begins with ${name}. "
                "A saved config.yaml holds the paths of its run."
            )
