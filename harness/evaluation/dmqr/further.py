"""Further rewriters of DMQR-RAG's study (`--study.rewriters`).

Each is a rewriter, or the config of another system, and is built only when its turn comes.
"""

from argparse import ArgumentError
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from common.errors import MissingInputError, UserError
from common.parser_messages import in_plain_words
from harness.evaluation.dmqr.methods import OWN_REWRITER, Rewriting
from harness.evaluation.given_parts import CheckingParser
from harness.interfaces import FeedbackRewriter, Retriever, Rewriter
from harness.retrievers.multi_query import ORIGINAL, MultiQueryRetriever
from harness.runtime.provenance import reusing
from harness.strategies.dmqr import Dmqr

_ALLOWED = (
    "give the config file of a system of class harness.strategies.dmqr.Dmqr, or class_path and init_args of a rewriter"
)


def _config(strategy: Dmqr) -> None:
    """What a config holds."""


def _rewriter(rewriter: Rewriter) -> None:
    """What an entry holds that is no config."""


class FurtherRewriter:
    """One entry of the option.

    Args:
        name: Of its rows.
        given: Path of a config whose strategy is a Dmqr, or a mapping with class_path and init_args of a rewriter.

    Raises:
        UserError: If it is neither, or an option is unknown or out of range.
        MissingInputError: If the file does not exist.
    """

    def __init__(self, name: str, given: object) -> None:
        self.name, self._key = name, f"study.rewriters.{name}"
        self.has_config = isinstance(given, str | Path)
        given = given.as_dict() if isinstance(given, Namespace) else given  # as the command line parses a mapping
        parser = CheckingParser(exit_on_error=False)
        if isinstance(given, str | Path):
            if not Path(given).is_file():
                raise MissingInputError(f"{self._key}: {given} does not exist: {_ALLOWED}.")
            parser.add_function_arguments(_config, sub_configs=True)  # objects can be files, as on the command line
            options = self._plain(lambda: parser.parse_path(given))
        elif isinstance(given, Mapping) and "class_path" in given:
            parser.add_function_arguments(_rewriter, sub_configs=True)
            options = self._plain(lambda: parser.parse_object({"rewriter": dict(given)}))
        else:
            raise UserError(f"{self._key} is {given!r}: {_ALLOWED}.")
        self._options = options.strategy.init_args if self.has_config else options
        self._checked = parser.instantiate(options)  # with a `StandIn` for every object

    def _plain(self, parse: Callable[[], Namespace]) -> Namespace:
        """What the parser returns, its errors in plain words."""
        try:
            return parse()
        except ArgumentError as error:
            problem = in_plain_words(str(error), ["strategy", "rewriter"]).text
            raise UserError(f"{self._key}: {problem}: {_ALLOWED}.") from error

    def rewriting(self, own: Rewriting) -> Rewriting:
        """Its options.  An entry that is a rewriter alone takes those of the measured system.

        Args:
            own: Of the measured system.

        Raises:
            UserError: If the rewriter does not know a strategy.
        """
        if self.has_config:
            return replace(Rewriting.of(self._checked.strategy), retriever=self.name)
        rewriter = self._checked.rewriter
        found = replace(own, rewriter=rewriter, original=own.original or own.rewriter is None)
        MultiQueryRetriever.check_options(rewriter, found.strategies, found.per_query, "rrf", None, 60, None, ORIGINAL)
        return found

    def build(self, part: str, known: Sequence[object] = ()) -> Any:
        """Its rewriter, its retriever or its feedback; None for one that it does not have.

        Args:
            part: `rewriter`, `retriever` or `feedback`.
            known: Objects of the measured system, which are used again where a class and its arguments are the same.
        """
        options = self._options.get(part)
        if options is None:
            return None
        parser = ArgumentParser(exit_on_error=False)
        parser.add_argument(f"--{part}", type=Rewriter if part == "rewriter" else Retriever)
        instantiators = [(reusing(known), object, True)]
        return parser.instantiate(Namespace(**{part: options}), instantiators=instantiators).get(part)


def retriever_of(entry: FurtherRewriter, own: Retriever) -> tuple[str, Retriever]:
    """The retriever that an entry searches with, and its name; the measured system's if it is configured alike."""
    found = entry.build("retriever", parts_of(own))
    return (OWN_REWRITER, own) if found is None or found is own else (entry.name, found)


def feedback_of(entry: FurtherRewriter, strategy: Dmqr, rewriter: object) -> Retriever | None:
    """The retriever whose passages an entry's rewriter reads.

    That of its own config, or the measured system's for a rewriter alone.
    """
    if entry.has_config:
        found: Retriever | None = entry.build("feedback", [*parts_of(strategy.retriever), *parts_of(strategy.feedback)])
        return found
    return strategy.feedback if isinstance(rewriter, FeedbackRewriter) else None


def parts_of(retriever: object) -> list[object]:
    """A retriever and the retrievers that it searches through."""
    inner = [
        *getattr(retriever, "retrievers", ()),
        getattr(retriever, "retriever", None),
        getattr(retriever, "feedback", None),
    ]
    return [retriever, *(part for each in inner if each is not None for part in parts_of(each))]
