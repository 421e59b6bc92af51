"""Build indexes, make training data, answer questions and evaluate, with exported checkpoints.

Training data are rewrites that it writes, mined hard negatives, labels of words and scores of passages.

    python infer.py index --corpus corpus.jsonl --kind dense --out indexes/dense
    python infer.py index --documents manuals --kind bm25 --out indexes/manuals
    python infer.py verify --index indexes/dense
    python infer.py distill --questions train.json --llm configs/llm/openai.yaml --out data/distilled
    python infer.py mine --config configs/infer/mine_nq.yaml
    python infer.py label --config configs/infer/label.yaml
    python infer.py score --questions data/nq/train.json --out data/scored/train.jsonl
    python infer.py tune --config configs/quickstart/msrag.yaml --questions validation.jsonl --out selector.json
    python infer.py ask --config configs/infer/drrag.yaml --question "Who wrote Hamlet?"
    python infer.py ask --config configs/infer/retrieve_read.yaml --json < questions.txt
    python infer.py serve --config configs/infer/drrag.yaml
    python infer.py mcp --config configs/infer/drrag.yaml
    python infer.py evaluate --config configs/infer/drrag.yaml --questions dev.json --out reports/hotpotqa
    python infer.py evaluate --config a.yaml --config b.yaml --questions dev.json --out reports/compared
    python infer.py evaluate --run bm25.trec --questions beir/scifact:test --out reports/bm25
    python infer.py export --serving checkpoints/drrag-hotpotqa/serving --out exports/drrag-onnx
    python infer.py export --form merged --serving checkpoints/dmqr-rrr-hotpot/serving --out exports/rewriter
    python infer.py ask --system.help harness.systems.drrag.DrRag

A config names a system (`harness/systems/`, one file per system) and its arguments.
"""

import os
import sys
from typing import Any

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # idle OpenMP threads sleep instead of spinning

from common.beginning import begin

if __name__ == "__main__":
    begin("infer.py")  # before the imports that take seconds

from jsonargparse import ArgumentParser, auto_cli, auto_parser, set_parsing_settings

from common.command_line import CommandLine, refuse_null_groups
from common.errors import exit_code
from common.garbage_collection import collect_less_often
from common.roots import ROOTS, TYPED, add_roots, refuse_unused, typed_in
from common.version import VERSION
from harness.commands.ask import ask
from harness.commands.compare import compare, configs_and_others, systems_of
from harness.commands.distill import distill
from harness.commands.evaluate import evaluate
from harness.commands.export import export
from harness.commands.index import index
from harness.commands.label import label
from harness.commands.llm_option import add_llm, move_to_reader
from harness.commands.mine import mine
from harness.commands.run_option import add_run, move_to_system
from harness.commands.score import score
from harness.commands.serve import mcp, serve
from harness.commands.tune import tune
from harness.commands.verify import verify
from harness.runtime.provenance import reusing

_ALL = (index, verify, distill, mine, label, score, tune, ask, serve, mcp, evaluate, export)
COMMANDS: dict[str, Any] = {command.__name__: command for command in _ALL}

set_parsing_settings(instantiate_subclass_spec_in_any=False)  # a study builds the objects in its options itself


class Parser(CommandLine, ArgumentParser):  # type: ignore[misc]
    """ArgumentParser with one-line errors."""

    command = "infer.py"
    alone = True  # else one of several systems, of which another may use a root

    def add_function_arguments(self, *args: Any, **kwargs: Any) -> Any:
        """Add a command's options, the roots of its paths, `--llm` to one of a system, and `--run` to evaluate."""
        added = super().add_function_arguments(*args, **kwargs)
        add_roots(self)
        add_llm(self)
        add_run(self)
        return added

    def instantiate(self, namespace: Any, *args: Any, **kwargs: Any) -> Any:
        """Build the objects of a configuration, a language model given by --llm as the system's reader."""
        if getattr(self, "parent_parser", None) is None and (command := namespace.get("subcommand")):
            if self.alone:
                refuse_unused(self._given, self.used_roots)
            for root in ROOTS:  # they stand in the paths
                namespace[command].pop(root)
            refuse_null_groups(vars(namespace[command]))
            move_to_system(namespace[command])
            move_to_reader(namespace[command])
        return super().instantiate(namespace, *args, **kwargs)


PARSER: dict[str, Any] = {
    "as_positional": False, "description": __doc__, "version": VERSION, "parser_class": Parser,
}  # fmt: skip


def main(args: list[str] | None = None) -> None:
    """Run one command."""
    given = sys.argv[1:] if args is None else args
    TYPED.set(typed_in(given))
    if systems := systems_of(given):
        compare(evaluations(systems, configs_and_others(given)[1]))
    else:
        auto_cli(named_in(given), args=given, instantiators=[(reusing(), object, True)], **PARSER)


def named_in(args: list[str]) -> dict[str, Any]:
    """The command that the arguments begin with, else all: a parser of all takes several times as long to build."""
    return {args[0]: COMMANDS[args[0]]} if args and args[0] in COMMANDS else COMMANDS


def evaluations(systems: dict[str, list[str]], shared: list[str]) -> dict[str, dict[str, Any]]:
    """The arguments with which `evaluate` would be called for every system, its objects built.

    Args:
        systems: Their command lines by name.
        shared: The command, and what is typed for all systems.
    """
    given, used, instantiators = {}, set[str](), [(reusing(), object, True)]
    for name, args in systems.items():
        parser: Any = auto_parser(named_in(args), **PARSER)
        options = parser.parse_args(args)
        refuse_unused(args[1 : len(args) - len(shared) + 1], parser.used_roots, f"{name}: ")
        used, parser.alone = used | parser.used_roots, False
        built = parser.instantiate(options, instantiators=instantiators).evaluate
        given[name] = {option: value for option, value in vars(built).items() if option != "config"}
    refuse_unused(shared, used)
    return given


def kept() -> str:
    """What is left of the command that Ctrl-C or a scheduler has stopped."""
    command = next((word for word in sys.argv[1:] if word in COMMANDS), "export")
    nothing = {"export": "Nothing was written.", **dict.fromkeys(("ask", "mcp", "serve", "verify"), "")}
    return nothing.get(command, "What is finished is kept: type the same command again to go on.")


def run() -> int:
    """Run the command line; returns the exit code."""
    collect_less_often()
    return exit_code("infer.py", main, kept)


if __name__ == "__main__":
    raise SystemExit(run())
