"""A study: the measures of one system's paper; the system's class names it.

Also the records that an evaluation shares with it.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Literal, Protocol

from common.command_line import in_one_line, refuse_null_groups
from common.errors import UserError
from common.outputs import OutputFile
from common.records import Answer, Question
from harness.evaluation.page import QuestionCase
from harness.evaluation.settings import Settings
from harness.evaluation.tables import ReportTable
from harness.interfaces import System
from harness.runtime.memo import Memo
from harness.runtime.provenance import reusing

What = Literal["study", "tuning"]


@dataclass(frozen=True, slots=True)
class RowAnswers:
    """What the rows of a study answered."""

    rows: Mapping[Any, Sequence[Answer]]  # by what the study calls them; one answer per question
    own: Any  # the row of the system itself
    memo: Memo

    @property
    def answers(self) -> Sequence[Answer]:
        """Of the system itself."""
        return self.rows[self.own]


@dataclass(slots=True)
class Findings:
    """The tables and values that a study makes from the answers. All lists have one entry per question."""

    tables: list[ReportTable] = field(default_factory=list)
    variants: Mapping[str, Sequence[Answer]] = field(default_factory=dict)  # rows shown beside the system, by name
    facts: list[str] = field(default_factory=list)
    notes: str = ""  # below the tables
    settings: dict[str, object] = field(default_factory=dict)  # for report.json
    records: Sequence[Mapping[str, object]] = ()  # further fields of questions.jsonl
    cases: Sequence[Sequence[QuestionCase]] = ()
    plots: dict[str, Callable[[Path], None]] = field(default_factory=dict)  # file name -> draws the plot into a file
    paper: str = ""  # name of the paper whose figures stand in the study's own tables; else `Settings.paper` chooses


class Study(Protocol):
    """The measures of one system's paper.

    The system's class names it: `study = "module:class"`.

    The constructor's parameters are the options `--study.*`. A method `check(system)` is called before anything is
    loaded, where there is one. A class attribute `needs_gold` that is true makes an index without any of the gold
    passages an error; otherwise the report only says so.
    """

    def rows_of(self, system: Any) -> Mapping[Any, System]:
        """The system, and the same system at other settings, in the order in which they are asked.

        Args:
            system: Loaded. It is one of the rows, and its parts are those of the others.
        """

    def measure(self, system: Any, questions: Sequence[Question], asked: RowAnswers, settings: Settings) -> Findings:
        """Make tables of the answers to questions with gold answers or gold passages.

        Args:
            system: The system.
            questions: All of them; a value that a question cannot have is NaN, or left out and counted.
            asked: What the rows answered.
            settings: Of the evaluation.
        """


class Tuning(Protocol):
    """The fit of a system on validation questions, written to a file that the system or its study reads.

    The system's class names it: `tuning = "module:class"`. The constructor's parameters are the options `--tuning.*`.
    A method `check(system)` is called before anything is loaded, where there is one.
    """

    output: OutputFile  # what the file is: another one is not replaced

    def tune(self, system: Any, questions: Sequence[Question], out: Path, settings: Settings) -> list[str]:
        """Fit on questions with gold answers or gold passages, and write the file.  Returns lines on what was chosen.

        Args:
            system: Loads its parts as they are used.
            questions: Validation questions.
            out: The file.
            settings: Layout and normalization, and the folder for resumable results.
        """


def word_of(system: System) -> str:
    """A system's word: the name of its module, or of the package if the module is `system`."""
    *packages, module = type(system).__module__.split(".")
    return packages[-1] if packages and module == "system" else module


def class_of(system: System, what: What) -> type | None:
    """The class that a system's attribute `study` or `tuning` names, as module:class; None if it has none.

    Raises:
        UserError: If there is no such class.
    """
    if (named := getattr(system, what, None)) is None:
        return None
    try:
        found: type = resolve_name(named)
    except (ImportError, AttributeError) as error:
        raise UserError(f"{type(system).__name__}.{what} is {named!r}, a module and a class: {error}.") from error
    return found


def study_options(system: System) -> list[str]:
    """The names of the options that a system's study takes; none if its system has no study."""
    kind = class_of(system, "study")
    return list(inspect.signature(kind).parameters) if kind else []


def build(system: System, what: What, options: Mapping[str, Any] | None) -> Any:
    """The study of a system, or its tuning, with checked options; None if the system has none.

    A part that an option names, such as a reader, is the system's own where class and arguments are the same.

    Args:
        system: The system.
        what: Which of both.
        options: Of the command line.

    Raises:
        UserError: If an option is unknown, of another type or out of range, or there is nothing to take it.
    """
    from argparse import ArgumentError

    from jsonargparse import ArgumentParser

    kind, word = class_of(system, what), word_of(system)
    if kind is None:
        if options:
            raise UserError(f"{what}.{next(iter(options))}: {word} has no {what} of its own: omit the option.")
        return None
    allowed = list(inspect.signature(kind).parameters)
    if unknown := [name for name in options or {} if name not in allowed]:
        raise UserError(f"{what}.{unknown[0]} is no option of {word}'s {what}; allowed: {', '.join(allowed)}.")
    parser = ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(kind, what, sub_configs=True)
    try:
        given = parser.parse_object({what: dict(options or {})})
    except ArgumentError as error:
        raise UserError(f"{in_one_line(str(error))}.") from error
    refuse_null_groups(vars(given.get(what, given)), what, kind)
    built = parser.instantiate(given, instantiators=[(reusing(system), object, True)])[what]
    if hasattr(built, "check"):
        built.check(system)
    return built
