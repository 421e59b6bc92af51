"""Help of train.py, written without importing torch or Lightning, which takes several seconds.

The project's own options come first, Lightning's by name, and the classes are read from their source files.

A test compares the options with those of the real parser.
"""

import ast
import textwrap
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from common.errors import as_typed
from common.roots import ROOTS
from common.version import VERSION

COMMANDS = {
    "fit": "Train, and write checkpoints/<name>/ with checkpoints, metrics, plots and the serving folder.",
    "validate": "Measure a checkpoint on the validation data.",
}
OPTIONS = {  # of every command, in the order of the help
    "config": (
        "FILE",
        "Configuration in YAML, one of configs/train; several are merged, and later options override it.",
    ),
    "name": ("NAME", "The run's name: its files go to checkpoints/<name>."),
    "resume": (
        "auto",
        "Take the run's newest checkpoint that verifies; fit starts if there is none, and refuses other options than "
        "the run's, but for those that docs/operate.md lists.",
    ),
    "ckpt_path": (
        "FILE",
        "Checkpoint to continue from, e.g. checkpoints/<name>/last.ckpt, with its optimizer; for its weights alone "
        "name it as model.pretrained.",
    ),
    **{name: ("FOLDER", f"{explained[:-1]}; {default} when omitted.") for name, (default, explained) in ROOTS.items()},
    "seed_everything": ("INT", "Seed of all random generators; 0 when omitted."),
    "weights_only": ("true|false", "Lightning's argument of the same name; checkpoints are always loaded with true."),
    "verbose": ("true|false", "Print the metrics; true when omitted."),
    "print_config": ("", "Print the complete configuration and exit."),
    "version": ("", "Print the version and exit."),
}
ONLY = {"verbose": ("validate",), "version": ()}  # options of these commands alone
GROUPS = {  # Lightning's classes, and ours that extend them: files, classes, and the keys that follow from others
    "trainer": (
        [(__file__.replace("help.py", "trainer.py"), "RunTrainer"), ("trainer/trainer.py", "Trainer")],
        {"default_root_dir"},
    ),
    "checkpoint": (
        [
            (__file__.replace("help.py", "checkpoints.py"), "RunCheckpoint"),
            ("callbacks/model_checkpoint.py", "ModelCheckpoint"),
        ],
        {"dirpath"},
    ),
    "early_stopping": (
        [
            (__file__.replace("help.py", "early_stopping.py"), "EarlyStopping"),
            ("callbacks/early_stopping.py", "EarlyStopping"),
        ],
        {"monitor"},
    ),
    "card": ([(__file__.replace("help.py", "model_card.py"), "Card")], set()),
}
CLASSES = {  # key -> the folder of its classes, and the method that only those define which are not abstract
    "model": ("trainers", "training_step"),
    "data": ("datamodules", "setup"),
}
WIDTH = 110


def quick_answer(arguments: Sequence[str], description: str) -> str | None:
    """What to print for a command line that asks for help, for the classes of an option or for the version; else None.

    Args:
        arguments: The command line, without the program.
        description: Of the program.
    """
    command = next((word for word in arguments if word in COMMANDS), None)
    if "--version" in arguments:
        return as_typed(f"train.py {VERSION}")
    for key in CLASSES:
        if list(arguments[-1:]) == [f"--{key}.help"]:
            return as_typed(class_listing(key, command or "fit"))
    if not {"-h", "--help"} & set(arguments):
        return None
    return as_typed(command_help(command) if command else program_help(description))


def program_help(description: str) -> str:
    """The help of train.py."""
    commands = "\n".join(f"  {name:<10}{text}" for name, text in COMMANDS.items())
    return (
        f"usage: train.py {{{','.join(COMMANDS)}}} --config FILE [--KEY VALUE ...]\n\n{description.strip()}\n\n"
        f"commands:\n{commands}\n\nOptions of a command: python train.py fit --help.  Version: python train.py "
        "--version."
    )


def command_help(command: str) -> str:
    """The help of one command."""
    lines = [f"usage: train.py {command} --config FILE [--KEY VALUE ...]", "", COMMANDS[command], "", "options:"]
    for name, (value, text) in OPTIONS.items():
        if command in ONLY.get(name, COMMANDS):
            lines += [f"  --{name} {value}".rstrip(), _indented(text, 8)]
    for key in CLASSES:
        lines += ["", class_listing(key, command)]
    for group in GROUPS:
        lines += ["", f"--{group}.KEY VALUE, explained by: python train.py {command} --{group}.help"]
        lines.append(_indented(", ".join(keys(group)), 4))
    return "\n".join(lines)


def classes(key: str) -> dict[str, str]:
    """Paths of the classes that a key accepts, with the first sentence of their docstrings."""
    folder, method = CLASSES[key]
    return {
        f"{folder}.{file.stem}.{node.name}": " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
        for file in sorted((Path(__file__).parents[2] / folder).glob("*.py"))
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and any(getattr(each, "name", "") == method for each in node.body)
    }


def class_listing(key: str, command: str) -> str:
    """The classes that a key accepts, and how to ask for the keys of one."""
    listed = (f"  {path}\n      {summary}" for path, summary in classes(key).items())
    asking = f"python train.py {command} --{key}.help CLASS"
    return "\n".join([f"--{key} CLASS, or your own by its path; keys of a class: {asking}", *listed])


def keys(group: str) -> list[str]:
    """The keys of a group, read from the classes' source files."""
    sources, linked = GROUPS[group]
    spec = find_spec("pytorch_lightning")
    assert spec is not None
    assert spec.origin is not None
    parameters: list[str] = []
    for file, name in sources:
        tree = ast.parse((Path(spec.origin).parent / file).read_text(encoding="utf-8"))
        (found,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
        for node in found.body:
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                parameters += [each.arg for each in (*node.args.args[1:], *node.args.kwonlyargs)]
            elif isinstance(node, ast.AnnAssign):  # of a dataclass
                parameters.append(ast.unparse(node.target))
    return [each for each in dict.fromkeys(parameters) if each not in linked]


def _indented(text: str, blanks: int) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=" " * blanks, subsequent_indent=" " * blanks)
