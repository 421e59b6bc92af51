"""The layouts by name, and the layout of a file by the fields of its first row.  Standard library only."""

import difflib
import importlib
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from common.errors import DataError, UserError
from datamodules.formats import layouts as layout_modules
from datamodules.formats.open_data import rows
from datamodules.formats.row_fields import Row, key, plain

AUTO = "auto"  # in the place of a layout's name: by the fields of the file's first row


def layouts() -> list[str]:
    """Names of all layouts, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(layout_modules.__path__))


def question_layouts() -> list[str]:
    """Names of the layouts that have questions, sorted."""
    return [name for name in layouts() if has_questions(layout_module(name))]


def check_layout(name: str, questions: bool = False) -> None:
    """Check a layout's name, which may be AUTO.

    Args:
        name: Of the layout.
        questions: Whether its rows are to be questions.

    Raises:
        UserError: If the layout is unknown, or a corpus in place of questions.
    """
    if name != AUTO and not has_questions(layout_module(name)) and questions:
        raise UserError(
            f"layout {name!r} is a corpus and has no questions: use {AUTO} or one of {', '.join(question_layouts())}"
        )


def layout_module(name: str) -> ModuleType:
    """The module of a layout.  Raises UserError if it is unknown."""
    known = layouts()
    if name not in known:
        near = difflib.get_close_matches(name, [AUTO, *known], n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise UserError(f"unknown layout {name!r}: use {AUTO} or one of {', '.join(known)}.{hint}")
    return importlib.import_module(f"{layout_modules.__name__}.{name}")


def layout_of(name: str, source: str, questions: bool = False) -> ModuleType:
    """The layout of a file: the named one, or that of its first row.

    Args:
        name: Of the layout, or AUTO.
        source: The file, see `datamodules.formats.open_data.rows`.
        questions: Whether its rows are to be questions.

    Raises:
        UserError: As `check_layout`.
        DataError: If the first row fits no layout, or several; names its fields.
    """
    check_layout(name, questions)
    if questions and Path(source).is_dir():
        raise UserError(f"{source} is a folder: of one of BEIR name the split too, as {source}:test.")
    return layout_module(name) if name != AUTO else layout_module(recognized(next(rows(source))[1], source, questions))


def recognized(row: Row, source: str, questions: bool = False) -> str:
    """The layout of questions, or of a corpus or questions, that a row has.  As `best_of`."""
    names = question_layouts() if questions else layouts()
    what = "questions" if questions else "a corpus or questions"
    return best_of({name: layout_module(name) for name in names}, row, source, what)


def best_of(known: Mapping[str, Any], row: Row, source: str, what: str) -> str:
    """The layout whose signature a row has; among several, the one with most fields.

    A layout of this project (`ANY_CASE`) is the row's if no other one is, whatever the case of its names.  One that is
    asked for by name alone (`BY_NAME`) is never.

    Args:
        known: The layouts by name: modules, or objects with the same attributes.
        row: The first row of a file.
        source: The file.
        what: What it is to hold.

    Raises:
        DataError: If there is none, or several; names its fields.
    """
    fits = fitting(known, row)
    fits = {name: count for name, count in fits.items() if not _any_case(known[name])} or fits
    best = [name for name, count in fits.items() if count == max(fits.values())]
    if len(best) == 1:
        return best[0]
    seen = f"the first row has the fields {', '.join(map(repr, row))}"
    if best:
        raise DataError(f"{source} may be {' or '.join(best)}: {seen}. Name its layout, one of these.")
    raise DataError(
        f"{source} is not recognized as {what}: {seen}. Name its layout, one of {', '.join(known)}, or give it the "
        "fields of docs/data.md."
    )


def fitting(known: Mapping[str, Any], row: Row) -> dict[str, int]:
    """The layouts whose signature a row has, and of how many fields that is."""
    named = {name: each for name, each in known.items() if not hasattr(each, "BY_NAME")}
    return {
        name: count
        for name, each in named.items()
        if not _has_foreign_lists(each, row) and (count := matched_fields(each, row))
    }


def check_first_row(module: ModuleType, source: str, row: Row) -> None:
    """Raise DataError if the row has the signature fields of another layout, and not or fewer of this one.

    The questions of this project have few fields, which rows of others may have, too: only its own layouts are told
    from each other.
    """
    known = {name: layout_module(name) for name in layouts()}
    if not hasattr(module, "FIELDS"):
        known = {name: each for name, each in known.items() if not hasattr(each, "FIELDS")}
    fits = {name: matched_fields(each, row) for name, each in known.items() if not hasattr(each, "BY_NAME")}
    best = max(fits, key=lambda name: fits[name])
    if fits[best] > matched_fields(module, row):
        raise DataError(f"{source} looks like {best}: use layout {best} instead of {name_of(module)}.")


def matched_fields(module: Any, row: Row) -> int:
    """How many fields a layout's signature has; 0 if the row lacks one of them."""
    row = row_of(module, row)
    signature = module.SIGNATURE_FIELDS if hasattr(module, "SIGNATURE_FIELDS") else module.REQUIRED_FIELDS
    return len(signature) if all(key(row, field) is not None for field in signature) else 0


def row_of(module: Any, row: Row) -> Row:
    """A row with the names that a layout's fields have."""
    return plain(row) if _any_case(module) else row


def _any_case(module: Any) -> bool:
    return getattr(module, "ANY_CASE", False)


def _has_foreign_lists(module: Any, row: Row) -> bool:
    """Whether a row has lists or objects that a layout of this project does not read: it is of another one."""
    if not hasattr(module, "FIELDS") or not _any_case(module):
        return False
    return any(isinstance(value, list | dict) and name not in module.FIELDS for name, value in plain(row).items())


def has_questions(module: ModuleType) -> bool:
    """Whether a layout is one of questions, and not of a corpus."""
    return hasattr(module, "question")


def name_of(module: ModuleType) -> str:
    """The name of a layout."""
    return module.__name__.rpartition(".")[2]
