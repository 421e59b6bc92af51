"""Lists the classes that an option accepts, read from the source files: nothing is imported, so that help is quick."""

import ast
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHOICES = {  # last part of the option's key -> the folder of the classes, and a method that they all define
    "model": ("trainers", "configure_optimizers"),
    "data": ("datamodules", "setup"),
    "strategy": ("harness/strategies", "answer"),
    "retriever": ("harness/retrievers", "search"),
    "retrievers": ("harness/retrievers", "search"),
    "reader": ("harness/readers", "read"),
    "rewriter": ("harness/rewriters", "rewrite"),
    "llm": ("harness/llm", "reply"),
}


def classes(key: str) -> dict[str, str]:
    """Paths of the classes that the project has for a key of CHOICES, with the first sentence of their docstrings."""
    folder, method = CHOICES[key]
    found = {}
    for file in sorted((ROOT / folder).glob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.ClassDef) or "Protocol" in [getattr(base, "id", "") for base in node.bases]:
                continue
            if any(getattr(each, "name", "") == method for each in node.body):
                summary = (ast.get_docstring(node) or "").partition("\n\n")[0].partition(".  ")[0]
                found[f"{folder.replace('/', '.')}.{file.stem}.{node.name}"] = " ".join(summary.split())
    return found


def listing(key: str, indent: str = "  ") -> str:
    """Those classes as lines."""
    return "\n".join(f"{indent}{path}\n{indent}    {summary}" for path, summary in classes(key).items())


def asked(arguments: Sequence[str]) -> str | None:
    """The option, without dashes and `.help`, if its classes are asked for.

    The last `--OPTION.help` without a class.
    """
    for number, word in enumerate(arguments):
        option = word.removeprefix("--").removesuffix(".help")
        last = number + 1 == len(arguments) or arguments[number + 1].startswith("-")
        if word == f"--{option}.help" and last and option.rpartition(".")[2] in CHOICES:
            return option
    return None


def answer(option: str, typed: str) -> str:
    """The answer to `--OPTION.help`.

    Args:
        option: The option, without dashes.
        typed: The command line before `--OPTION.help`.
    """
    return (
        f"Classes for --{option}:\n\n{listing(option.rpartition('.')[2])}\n\n"
        f"Keys of a class: {typed} --{option}.help CLASS.  Your own class is named by its path, too."
    )
