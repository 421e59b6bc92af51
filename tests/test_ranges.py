"""Every number that can be typed has a type with its range, `common.ranges`: the parser refuses nan and absurd ones.

Followed from the commands' and trainers' parameters through all classes that a parameter accepts.
"""

import importlib
import inspect
import typing
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from typing import Any

import pytorch_lightning as pl

from infer import COMMANDS
from tests.test_imports import MODULES
from trainers.run.module import RunModule

ANY_NUMBER = {"seed", "sampling_seed", "resamples_seed"}
FOLDERS = (  # of the classes that configs and command lines name
    "trainers", "datamodules", "harness.systems", "harness.retrievers", "harness.readers", "harness.rewriters",
    "harness.context_sources", "harness.answer_selection", "harness.llm",
    "harness.indexing.documents",
)  # fmt: skip


@cache
def project_classes() -> tuple[type, ...]:
    """All classes of these folders."""
    modules = [importlib.import_module(name) for name in MODULES if name.rpartition(".")[0] in FOLDERS]
    found = [each for module in modules for _, each in inspect.getmembers(module, inspect.isclass)]
    return tuple(dict.fromkeys(each for each in found if each.__module__.rpartition(".")[0] in FOLDERS))


def accepted(kind: type) -> list[type]:
    """The classes that a parameter of this type accepts: those whose docstring explains the arguments, for a user."""
    methods = [name for name, each in vars(kind).items() if callable(each) and name[0] != "_"]
    is_protocol = getattr(kind, "_is_protocol", False)
    return [
        each
        for each in project_classes()
        if "\n    Args:\n" in (each.__doc__ or "")
        if (methods and all(hasattr(each, name) for name in methods) if is_protocol else issubclass(each, kind))
    ]


def leaves(hint: Any) -> Iterator[Any]:
    """The types in a hint."""
    parts = typing.get_args(hint)
    if typing.get_origin(hint) is typing.Literal or not parts:
        yield hint
    for part in parts:
        yield from leaves(part)


def without_a_range(built: Any, seen: set[Any]) -> Iterator[str]:
    """The plain numbers among the parameters of a function or class, and of what these accept."""
    if built in seen:
        return
    seen.add(built)
    for name, parameter in inspect.signature(built).parameters.items():
        for kind in leaves(parameter.annotation) if name not in ANY_NUMBER else ():
            if kind in (int, float):
                yield f"{built.__module__}.{built.__qualname__}: {name}"
            elif inspect.isclass(kind) and kind.__module__ in MODULES:
                options = [kind] if is_dataclass(kind) and kind.__module__ != "common.records" else []
                for each in [*options, *accepted(kind)]:
                    yield from without_a_range(each, seen)


def test_every_number_has_a_range() -> None:
    seen: set[Any] = set()
    trained = [*accepted(RunModule), *accepted(pl.LightningDataModule)]
    found = [line for each in [*COMMANDS.values(), *trained] for line in without_a_range(each, seen)]
    assert len(seen) > 60
    assert found == []
