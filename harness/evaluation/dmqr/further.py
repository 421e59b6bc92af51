"""Further rewriters of DMQR-RAG's study (`--study.rewriters`): a rewriter, or the config of another system."""

from argparse import ArgumentError
from dataclasses import dataclass, replace
from pathlib import Path

from jsonargparse import ArgumentParser

from common.command_line import in_one_line
from common.errors import MissingInputError, UserError
from harness.evaluation.dmqr.methods import ALL_STRATEGIES, OWN_REWRITER, Rewriting
from harness.interfaces import FeedbackRewriter, Retriever, Rewriter
from harness.rewriters.chosen_strategies import check_strategies
from harness.runtime.provenance import reusing
from harness.strategies.dmqr import Dmqr

_ALLOWED = (
    "give the config file of a system of class harness.strategies.dmqr.Dmqr, or class_path and init_args of a rewriter"
)


@dataclass(slots=True)
class Further:
    """A rewriter with what it searches with, none of them loaded."""

    rewriting: Rewriting  # its options, with the name of its retriever
    rewriter: Rewriter | None
    retriever: Retriever
    feedback: Retriever | None  # finds the passages that the rewriter reads


def further_rewriter(name: str, given: Rewriter | Path, strategy: Dmqr) -> Further:
    """One entry of the option.

    Args:
        name: Of its rows.
        given: Path of a config whose strategy is a Dmqr, or a rewriter, which takes the options of the measured system.
        strategy: The measured system; parts that are configured like its own are its own.

    Raises:
        UserError: If the config is of another kind, an option is out of range, or the rewriter does not know a
            strategy.
        MissingInputError: If the file does not exist.
    """
    own = Rewriting.of(strategy)
    if isinstance(given, Path):
        system = _system(f"study.rewriters.{name}", given, strategy)
        place = OWN_REWRITER if system.retriever is strategy.retriever else name
        options = replace(Rewriting.of(system), retriever=place)
        if system.rewriter is not None:
            check_strategies(system.rewriter, options.strategies)
        return Further(options, system.rewriter, system.retriever, system.feedback)
    feedback = strategy.feedback if isinstance(given, FeedbackRewriter) else None
    check_strategies(given, own.strategies)
    options = replace(own, rewrites=True, original=own.original or not own.rewrites)
    return Further(options, given, strategy.retriever, feedback)


def without_choice(strategy: Dmqr) -> dict[str, Further]:
    """The row of the same system with all strategies for every question, if its rewriter chooses; else nothing."""
    if not getattr(strategy.rewriter, "adaptive", False):
        return {}
    rewriter = strategy.rewriter.without_choice()  # type: ignore[union-attr]  # what chooses has it
    return {ALL_STRATEGIES: Further(Rewriting.of(strategy), rewriter, strategy.retriever, strategy.feedback)}


def _config(strategy: Dmqr) -> None:
    """What a config holds."""


def _system(option: str, file: Path, own: Dmqr) -> Dmqr:
    """The system of a config."""
    if not file.is_file():
        raise MissingInputError(f"{option}: {file} does not exist: {_ALLOWED}.")
    parser = ArgumentParser(exit_on_error=False)
    parser.add_function_arguments(_config, sub_configs=True)  # objects can be files, as on the command line
    try:
        options = parser.parse_path(file)
    except ArgumentError as error:
        raise UserError(f"{option}: {in_one_line(str(error))}: {_ALLOWED}.") from error
    system: Dmqr = parser.instantiate(options, instantiators=[(reusing(own), object, True)]).strategy
    return system
